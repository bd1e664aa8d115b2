#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action set(bit<8> value) { meta.x = value; }
    table doubtful {
        key = { hdr.h.a : ternary; }
        actions = { set; }
        default_action = set(0);
        entries = {
            priority = 10 : 1 : set(1);
            priority = 20 : 2 : set(2);
            priority = 10 : 3 : set(3);
        }
    }
    table least_wins {
        key = { hdr.h.a : ternary; }
        actions = { set; }
        default_action = set(0);
        largest_priority_wins = false;
        entries = {
            priority = 20 : 1 : set(1);
            2 : set(2);
            priority = 15 : 3 : set(3);
        }
    }
    table meant {
        key = { hdr.h.a : ternary; }
        actions = { set; }
        default_action = set(0);
        @noWarn("duplicate_priorities")
        @noWarn("entries_out_of_priority_order")
        entries = {
            priority = 10 : 1 : set(1);
            priority = 20 : 2 : set(2);
            priority = 10 : 3 : set(3);
        }
    }
    apply {
        doubtful.apply();
        least_wins.apply();
        meant.apply();
    }
}

SWITCH(EmptyParser, C);
