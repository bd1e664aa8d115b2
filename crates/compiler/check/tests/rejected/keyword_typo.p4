#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    acton set() {
        hdr.h.a = 1;
    }
    apply {
        set();
    }
}

SWITCH(EmptyParser, C);
