// A resubmitted packet begins ingress again as it arrived, with the metadata of its field list
// only. egress_spec of the first round does not matter.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> kind;
    bit<8> kept;
    bit<8> lost;
    bit<8> instance;
    bit<8> port;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    @field_list(3)
    bit<8> kept;
    bit<8> lost;
}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<8>>(1) rounds;
    apply {
        bit<8> round;
        rounds.read(round, 0);
        rounds.write(0, round + 1);
        standard.egress_spec = 1;
        if (standard.instance_type == 0 && hdr.h.kind == 1) {
            meta.kept = 0xaa;
            meta.lost = 0xbb;
            hdr.h.kind = 0xff;
            standard.egress_spec = 2;
            resubmit_preserving_field_list(3);
        } else {
            hdr.h.kept = meta.kept;
            hdr.h.lost = meta.lost;
            hdr.h.instance = (bit<8>)standard.instance_type;
            hdr.h.port = (bit<8>)standard.ingress_port;
        }
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
