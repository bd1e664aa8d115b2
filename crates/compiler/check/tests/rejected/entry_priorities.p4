#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action set(bit<8> value) { meta.x = value; }
    table none_at_first {
        key = { hdr.h.a : ternary; hdr.h.b : exact; }
        actions = { set; }
        default_action = set(0);
        entries = {
            (1 &&& 3, 1) : set(1);
            priority = 10 : (1, 2) : set(2);
        }
    }
    table useless {
        key = { hdr.h.a : lpm; hdr.h.b : exact; }
        actions = { set; }
        default_action = set(0);
        entries = {
            (1, 1) : set(1);
            priority = 10 : (2, 2) : set(2);
        }
    }
    table too_early {
        const entries = {
            1 : set(1);
        }
        key = { hdr.h.a : exact; }
        actions = { set; }
        default_action = set(0);
    }
    table out_of_range {
        key = { hdr.h.a : range; }
        actions = { set; }
        default_action = set(0);
        entries = {
            priority = 1 : 1 .. 2 : set(1);
            3 .. 4 : set(2);
            5 .. 6 : set(3);
        }
    }
    apply {
        none_at_first.apply();
        useless.apply();
        too_early.apply();
        out_of_range.apply();
    }
}

SWITCH(EmptyParser, C);
