// mark_to_drop() without argument in actions outside of controls, called and from a table.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> key;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "blocks.p4"

action discard() {
    mark_to_drop();
}

action discard_if(in bool condition) {
    if (condition) {
        discard();
    }
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table keys {
        key = { hdr.h.key : exact; }
        actions = { discard; NoAction; }
        const entries = { 1 : discard(); }
    }

    apply {
        standard.egress_spec = 1;
        discard_if(hdr.h.key == 2);
        keys.apply();
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        discard_if(hdr.h.key == 3);
    }
}

V1Switch(Parse(), NoChecksum(), MyIngress(), MyEgress(), NoChecksum(), Emit()) main;
