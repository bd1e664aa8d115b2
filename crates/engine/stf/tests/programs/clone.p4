// Clones from ingress are the packet as it arrived, from egress as it leaves; both go through
// egress. Metadata is kept only where a field list names it; instance_type tells them apart.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> kind;
    bit<8> count;
    bit<8> kept;
    bit<8> lost;
    bit<8> instance;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    @field_list(1)
    bit<8> kept;
    bit<8> lost;
}

#include "one_header.p4"

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (standard.instance_type == 0) {
            if (hdr.h.kind == 3) {
                clone(CloneType.E2E, 5);
            } else if (hdr.h.kind == 4) {
                clone_preserving_field_list(CloneType.E2E, 5, 1);
            }
        }
        hdr.h.count = hdr.h.count + 0x10;
        hdr.h.kept = meta.kept;
        hdr.h.lost = meta.lost;
        hdr.h.instance = (bit<8>)standard.instance_type;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        meta.kept = 0xaa;
        meta.lost = 0xbb;
        hdr.h.count = hdr.h.count + 1;
        standard.egress_spec = 1;
        if (hdr.h.kind == 1) {
            clone(CloneType.I2E, 5);
        } else if (hdr.h.kind == 2) {
            clone_preserving_field_list(CloneType.I2E, 5, 1);
        }
        meta.kept = meta.kept + 1;
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), MyEgress(), NoChecksum(), Emit()) main;
