#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        f(meta.x);
    }
}

void f(in bit<8> x) {}

SWITCH(EmptyParser, C);
