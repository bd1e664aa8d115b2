#include "shell.p4"

void f(in bit<8> x, in bit<8> y) {}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        f(meta.x);
    }
}

SWITCH(EmptyParser, C);
