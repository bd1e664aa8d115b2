#include "shell.p4"

type bit<9> port_t;

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        port_t p = (port_t)1;
        p = p + 1;
    }
}

SWITCH(EmptyParser, C);
