#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action set(in bit<8> from, bit<8> more) {
        hdr.h.a = from + more;
    }
    table t {
        key = { hdr.h.a : exact; }
        actions = { set(hdr.g.a); }
        default_action = set(hdr.h.a, 1);
    }
    apply {
        t.apply();
    }
}

SWITCH(EmptyParser, C);
