#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action set(bit<8> value) {
        hdr.h.a = value;
    }
    table t {
        key = { hdr.h.a : exact; }
        actions = { set; }
        const entries = {
            1 : set(1);
            2 : set(2);
            1 : set(3);
        }
    }
    apply {
        t.apply();
    }
}

SWITCH(EmptyParser, C);
