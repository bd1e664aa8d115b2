// A small router: everything that a usual v1model program has.
#include <core.p4>
#include <v1model.p4>

#define PORT_BITS 9
#define FIELD(width, name) bit<width> name;

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
type bit<PORT_BITS> port_t;

header ethernet_t {
    FIELD(48, dst)
    FIELD(48, src)
    FIELD(16, type)
}

header ipv4_t_h {
    bit<4> version;
    bit<4> ihl;
    bit<8> ttl;
    bit<16> checksum;
    ipv4_t src;
    ipv4_t dst;
    varbit<320> options;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t_h ipv4;
}

struct meta_t {
    @field_list(1) bit<8> clones;
}

parser MyParser(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) {
            0x0800: ipv4;
            0x8100 &&& 0xff00: reject;
            default: accept;
        }
    }
    state ipv4 {
        p.extract(h.ipv4, (bit<32>) (h.ipv4.ihl - 5) << 5);
        verify(h.ipv4.version == 4, error.ParserInvalidArgument);
        transition accept;
    }
}

control MyVerify(inout headers_t h, inout meta_t m) { apply { } }

control MyIngress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<32>>(1024) seen;
    counter(16, CounterType.packets_and_bytes) counts;

    action drop() { mark_to_drop(s); }
    action forward(mac_t dst, bit<PORT_BITS> port) {
        h.ethernet.src = h.ethernet.dst;
        h.ethernet.dst = dst;
        h.ipv4.ttl = h.ipv4.ttl - 1;
        s.egress_spec = port;
    }
    table routes {
        key = { h.ipv4.dst : lpm; s.ingress_port : ternary @name("in"); }
        actions = { drop; forward; @defaultonly NoAction; }
        const entries = {
            (0x0a000000 &&& 0xff000000, _) : forward(1, 2);
            (default, 9w1 &&& 9w3) : drop();
        }
        size = 1024;
        default_action = drop();
    }
    apply {
        bit<32> n;
        if (h.ipv4.isValid() && h.ipv4.ttl > 1) {
            @atomic {
                seen.read(n, (bit<32>) s.ingress_port);
                seen.write((bit<32>) s.ingress_port, n + 1);
            }
            switch (routes.apply().action_run) {
                forward: { counts.count((bit<32>) s.egress_spec); }
                drop: 
                default: { exit; }
            }
        } else {
            drop();
        }
    }
}

control MyEgress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (s.instance_type == 0) clone_preserving_field_list(CloneType.E2E, 5, 1);
    }
}

control MyCompute(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum(h.ipv4.isValid(), { h.ipv4.version, h.ipv4.ihl, h.ipv4.ttl,
            h.ipv4.src, h.ipv4.dst }, h.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control MyDeparser(packet_out p, in headers_t h) { apply { p.emit(h); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
