// truncate() cuts what leaves, headers included, and adds nothing to a shorter packet.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>  length;
    bit<24> more;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        truncate((bit<32>)hdr.h.length);
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
