// A table is no state of packets.

#include <core.p4>
#include <v1model.p4>

struct metadata_t {
    bit<32> index;
}

#include "../programs/common.p4"

control MyIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    @replicated(key = {hdr.ipv4.src})
    table known {
        key = { hdr.ipv4.src: exact; }
        actions = { NoAction; }
        default_action = NoAction();
    }

    apply {
        known.apply();
    }
}

control NoEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    apply {}
}

V1Switch(
    CommonParser(),
    CommonVerify(),
    MyIngress(),
    NoEgress(),
    CommonCompute(),
    CommonDeparser()
) main;
