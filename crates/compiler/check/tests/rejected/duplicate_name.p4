#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        bit<8> x = 1;
        bit<16> x = 2;
        meta.x = 0;
    }
}

SWITCH(EmptyParser, C);
