#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action a(bit<8> d, in bit<8> x) {}

    apply {
    }
}

SWITCH(EmptyParser, C);
