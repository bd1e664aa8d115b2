#include "shell.p4"

const bit<8> N = 1;

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        N = 2;
    }
}

SWITCH(EmptyParser, C);
