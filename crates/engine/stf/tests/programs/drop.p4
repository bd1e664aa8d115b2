// mark_to_drop() only writes metadata: a later egress_spec takes the packet out again in
// ingress, egress drops what is marked there, and marking undoes a multicast group.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> kind;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (hdr.h.kind == 5) {
            mark_to_drop(standard);
        }
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.h.kind == 1) {
            mark_to_drop(standard);
        } else if (hdr.h.kind == 2) {
            mark_to_drop(standard);
            standard.egress_spec = 2;
        } else if (hdr.h.kind == 3) {
            standard.mcast_grp = 1;
            mark_to_drop(standard);
        } else if (hdr.h.kind == 4) {
            standard.egress_spec = 511;
        }
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), MyEgress(), NoChecksum(), Emit()) main;
