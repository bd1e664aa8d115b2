// Entries of tables that share an action profile name members; a selector chooses among those
// of a group by a hash of the fields marked `selector`.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>  key;
    bit<32> flow;
    bit<8>  member;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action_profile(8) shared;
    action_selector(HashAlgorithm.identity, 8, 8) chosen;

    action set(bit<8> member) {
        hdr.h.member = member;
    }

    table direct {
        key = {
            hdr.h.key : exact;
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
        implementation = shared;
    }

    table selected {
        key = {
            hdr.h.key  : exact;
            hdr.h.flow : selector;
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
        implementation = chosen;
    }

    apply {
        standard.egress_spec = 1;
        if (hdr.h.key < 0x80) {
            direct.apply();
        } else {
            selected.apply();
        }
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
