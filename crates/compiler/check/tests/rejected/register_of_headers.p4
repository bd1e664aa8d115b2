#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<h_t>(4) r;

    apply {
    }
}

SWITCH(EmptyParser, C);
