#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<8>>(4) r;

    apply {
        r.read(hdr.h.a + 1, 0);
    }
}

SWITCH(EmptyParser, C);
