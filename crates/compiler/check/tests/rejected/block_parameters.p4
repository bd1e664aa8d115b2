#include "shell.p4"

control C(inout headers_t hdr, in metadata_t meta, inout standard_metadata_t std) {
    apply {}
}

SWITCH(EmptyParser, C);
