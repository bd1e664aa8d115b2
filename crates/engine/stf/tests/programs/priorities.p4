// Where several entries match: of const entries the first of the program wins; of others the
// least priority that the program writes, or the greatest that the control plane gives.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> key;
    bit<8> fixed;
    bit<8> initial;
    bit<8> added;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action fixed(bit<8> value) {
        hdr.h.fixed = value;
    }
    action initial(bit<8> value) {
        hdr.h.initial = value;
    }
    action added(bit<8> value) {
        hdr.h.added = value;
    }

    table constants {
        key = {
            hdr.h.key : ternary;
        }
        actions = {
            fixed;
        }
        const default_action = fixed(0xff);
        const entries = {
            0x10 &&& 0xf0 : fixed(1);
            0x11          : fixed(2);
            0x01 &&& 0x0f : fixed(3);
        }
    }

    table initials {
        key = {
            hdr.h.key : ternary;
        }
        actions = {
            initial;
        }
        default_action = initial(0xff);
        largest_priority_wins = false;
        @noWarn("entries_out_of_priority_order")
        entries = {
            priority = 30 : 0x10 &&& 0xf0 : initial(1);
            priority = 10 : 0x11          : initial(2);
            priority = 20 : 0x01 &&& 0x0f : initial(3);
        }
    }

    table run_time {
        key = {
            hdr.h.key : ternary;
        }
        actions = {
            added;
        }
        default_action = added(0xff);
    }

    apply {
        standard.egress_spec = 1;
        constants.apply();
        initials.apply();
        run_time.apply();
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
