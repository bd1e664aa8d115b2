// A value set is empty until the control plane fills it, and is then matched like the other
// cases, in their order.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<16> kind;
    bit<8>  branch;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    bit<8> branch;
}

#include "blocks.p4"

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard) {
    value_set<bit<16>>(4) known;

    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.kind) {
            0x0800: first;
            known: second;
            default: accept;
        }
    }

    state first {
        meta.branch = 1;
        transition accept;
    }

    state second {
        meta.branch = 2;
        transition accept;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.h.branch = meta.branch;
        standard.egress_spec = 1;
    }
}

V1Switch(Parse(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
