// Writes wherever a program may have them.

#include <core.p4>
#include <v1model.p4>

#include "common.p4"

register<bit<16>>(16) parsed;
register<bit<32>>(16) by_function;

// The words of the library, and a name that it has too.
const bit<16> ETHERTYPE_IPV4 = 0x0800;

void add_one(in bit<32> index) {
    bit<32> value;
    by_function.read(value, index);
    .by_function.write(index, value + 1);
}

parser PlacesParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    bit<16> count;

    state start {
        packet.extract(hdr.ethernet);
        parsed.read(count, hdr.ethernet.src[31:0] & 15);
        parsed.write(hdr.ethernet.src[31:0] & 15, count + 1);
        transition accept;
    }
}

// Has a register of its own, by a name that others have.
control Tally(in bit<32> index) {
    register<bit<8>>(16) total;
    bit<8> count;

    apply {
        total.read(count, index);
        if (count < 200)
            total.write(index, count + 1);
    }
}

control PlacesIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    register<bit<32>>(16) total;
    @name("refused_packets")
    register<bit<32>>(16) refused;
    Tally() tally;
    bit<32> count;

    action remember(bit<32> step) {
        total.read(count, meta.index);
        total.write(meta.index, count + step);
    }

    table kinds {
        key = { hdr.ethernet.kind: exact; }
        actions = { remember; NoAction; }
        const entries = {
            ETHERTYPE_IPV4: remember(2);
            0x86dd: remember(5);
        }
        default_action = NoAction();
    }

    apply {
        meta.index = hdr.ethernet.src[31:0] & 15;
        standard.egress_spec = 1;
        tally.apply(meta.index);
        add_one(meta.index);
        kinds.apply();
        if (hdr.ethernet.dst[0:0] == 1) {
            refused.read(result = count, index = meta.index);
            refused.write(value = count + 1, index = meta.index);
            mark_to_drop(standard);
            exit;
        }
    }
}

control PlacesEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    register<bit<64>>(16) sent;
    bit<64> bytes;

    apply {
        sent.read(bytes, meta.index);
        bytes = bytes + (bit<64>)standard.packet_length;
        sent.write(meta.index, bytes);
        if (hdr.ethernet.dst[1:1] == 1) {
            exit;
        }
        hdr.ethernet.dst = 0;
    }
}

V1Switch(
    PlacesParser(),
    NoVerify(),
    PlacesIngress(),
    PlacesEgress(),
    NoCompute(),
    CommonDeparser()
) main;
