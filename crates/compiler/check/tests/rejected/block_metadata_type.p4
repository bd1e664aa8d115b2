#include "shell.p4"

struct other_t {
    bit<8> x;
}

control C(inout headers_t hdr, inout other_t meta, inout standard_metadata_t std) {
    apply {}
}

SWITCH(EmptyParser, C);
