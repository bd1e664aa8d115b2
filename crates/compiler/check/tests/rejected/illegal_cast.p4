#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.h.c = (int<8>)hdr.h.b;
    }
}

SWITCH(EmptyParser, C);
