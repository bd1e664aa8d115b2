#include "shell.p4"

extern void blink(in bit<8> times);

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        blink(3);
    }
}

SWITCH(EmptyParser, C);
