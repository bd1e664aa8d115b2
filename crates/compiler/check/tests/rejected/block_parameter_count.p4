#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

SWITCH(EmptyParser, C);
