#include "shell.p4"

// Reads before writes, and what is no such read.

action unset(in bit<8> from, out bit<8> to) {
    if (from == 0) {
        return;
    }
    to = from;
}

bit<8> both(in bool which) {
    bit<8> value;
    if (which) {
        value = 1;
    } else {
        value = 2;
    }
    return value;
}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<8>  early;
    bit<8>  from_action;
    bit<16> never;
    register<bit<8>>(4) store;

    action set() {
        from_action = 4;
    }
    table t {
        key = {
            meta.x : exact;
        }
        actions = {
            set;
        }
        default_action = set;
    }
    apply {
        bit<8> some;
        bit<8> loaded;
        meta.x = early;
        early = 1;
        if (meta.flag) {
            some = 3;
        }
        meta.x = some;
        meta.x = some;
        store.read(loaded, 0);
        meta.x = loaded + both(meta.flag);
        t.apply();
        meta.x = from_action;
        unset(meta.x, meta.x);
        for (bit<8> i in 1 .. 3) {
            if (i == 2) {
                meta.y = never;
                continue;
            }
            never = 1;
        }
    }
}

SWITCH(EmptyParser, C);
