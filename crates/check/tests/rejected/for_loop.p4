#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        for (bit<8> i = 0; i < 3; i = i + 1) {
            meta.x = i;
        }
    }
}

SWITCH(EmptyParser, C);
