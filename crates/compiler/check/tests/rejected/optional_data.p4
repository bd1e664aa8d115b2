#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action set(@optional bit<8> value) {
        hdr.h.a = value;
    }
    table t {
        key = { hdr.h.a : exact; }
        actions = { set; }
    }
    apply {
        t.apply();
    }
}

SWITCH(EmptyParser, C);
