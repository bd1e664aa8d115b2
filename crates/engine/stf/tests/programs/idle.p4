// An entry of a table with idle timeouts stays until somebody removes it.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> key;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action forward(bit<9> port) {
        standard.egress_spec = port;
    }

    table known {
        key = {
            hdr.h.key : exact;
        }
        actions = {
            forward;
        }
        default_action = forward(1);
        support_timeout = true;
    }

    apply {
        known.apply();
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
