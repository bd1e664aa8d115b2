#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    table t {
        key = { hdr.h.a : exact; }
    }

    apply {
        t.apply();
    }
}

SWITCH(EmptyParser, C);
