// A recirculated packet begins ingress again as it left egress, with the metadata of its field
// list only.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> rounds;
    bit<8> kept;
    bit<8> lost;
    bit<8> instance;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    @field_list(2)
    bit<8> kept;
    bit<8> lost;
}

#include "one_header.p4"

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (hdr.h.rounds > 0) {
            hdr.h.rounds = hdr.h.rounds - 1;
            meta.kept = meta.kept + 0x10;
            meta.lost = 0xbb;
            recirculate_preserving_field_list(2);
        }
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.kept = meta.kept;
        hdr.h.lost = meta.lost;
        hdr.h.instance = (bit<8>)standard.instance_type;
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), MyEgress(), NoChecksum(), Emit()) main;
