// Match kinds: exact, lpm, ternary, range, optional; and what apply() tells.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>  exact_key;
    bit<16> prefix;
    bit<8>  ranged;
    bit<8>  optional_key;
    bit<8>  result;
    bit<8>  told;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<8> value) {
        hdr.h.result = value;
    }
    action nothing() {}

    table longest {
        key = {
            hdr.h.exact_key : exact;
            hdr.h.prefix    : lpm;
        }
        actions = {
            set;
            nothing;
        }
        default_action = nothing();
        size = 16;
    }

    table ranges {
        key = {
            hdr.h.ranged       : range;
            hdr.h.optional_key : optional;
        }
        actions = {
            set;
            nothing;
        }
        default_action = nothing();
    }

    apply {
        standard.egress_spec = 1;
        switch (longest.apply().action_run) {
            set: {
                hdr.h.told = 1;
            }
            nothing: {
                hdr.h.told = 2;
            }
        }
        if (ranges.apply().miss) {
            hdr.h.told = hdr.h.told + 0x10;
        }
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
