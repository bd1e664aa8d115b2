// A little of everything that a trace shows.
#include <v1model.p4>

header tag_t {
    bit<4> kind;
    bit<3> level;
    bit<1> last;
}

header body_t {
    bit<8>     hops;
    int<8>     offset;
    bit<16>    checksum;
    bit<48>    address;
    bit<8>     size;
}

header options_t {
    varbit<64> bytes;
}

enum color_t { red, green }

struct headers_t {
    tag_t[4]  tags;
    body_t    body;
    options_t options;
}

struct metadata_t {
    @field_list(1)
    bit<8>  rounds;
    bit<16> bucket;
    bit<8>  draw;
    color_t color;
}

error { TooManyHops }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard) {
    state start {
        transition select(packet.lookahead<bit<4>>()) {
            0xf: accept;
            default: tag;
        }
    }
    state tag {
        packet.extract(hdr.tags.next);
        transition select(hdr.tags.last.last) {
            1: body;
            default: tag;
        }
    }
    state body {
        packet.extract(hdr.body);
        verify(hdr.body.hops < 100, error.TooManyHops);
        packet.extract(hdr.options, (bit<32>)hdr.body.size * 8);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.body.isValid(), { hdr.body.hops, hdr.body.offset, hdr.body.address },
                        hdr.body.checksum, HashAlgorithm.csum16);
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard) {
    register<bit<32>>(4) seen;
    counter(4, CounterType.packets) packets;

    action drop() {
        mark_to_drop(standard);
    }
    action forward(bit<9> port, bit<8> draws) {
        standard.egress_spec = port;
        random(meta.draw, 0, draws);
    }
    table routes {
        key = {
            hdr.body.address          : ternary;
            standard.parser_error     : optional;
            hdr.tags[0].isValid()     : exact;
        }
        actions = { forward; drop; NoAction; }
        default_action = drop();
    }
    table levels {
        key = { hdr.tags[0].level : exact; }
        actions = { NoAction; }
    }

    apply {
        if (routes.apply().hit) {
            bit<32> count;
            hash(meta.bucket, HashAlgorithm.crc16, 16w0, { hdr.body.address }, 16w4);
            seen.read(count, (bit<32>)meta.bucket);
            seen.write((bit<32>)meta.bucket, count + 1);
            seen.read(count, 9);
            packets.count(2);
            meta.color = color_t.green;
            clone_preserving_field_list(CloneType.I2E, 5, 1);
        } else {
            log_msg("no route to {}", { hdr.body.address });
            digest(1, hdr.body.hops);
        }
        levels.apply();
        hdr.body.hops = hdr.body.hops - 1;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard) {
    apply {
        switch (standard.instance_type) {
            0: {
                if (meta.rounds == 0) {
                    meta.rounds = meta.rounds + 1;
                    recirculate_preserving_field_list(1);
                } else {
                    truncate(14);
                }
            }
            1: { hdr.options.setInvalid(); }
            default: { truncate(14); }
        }
    }
}

control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.body.isValid(), { hdr.body.hops, hdr.body.offset, hdr.body.address },
                        hdr.body.checksum, HashAlgorithm.csum16);
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
