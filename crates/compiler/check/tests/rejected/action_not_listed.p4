#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action a(bit<8> v) {
        meta.x = v;
    }
    table t {
        key = { hdr.h.a : exact; }
        actions = { NoAction; }
        default_action = a(1);
    }

    apply {
        t.apply();
    }
}

SWITCH(EmptyParser, C);
