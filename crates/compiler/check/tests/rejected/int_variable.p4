#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        int x = 5;
        meta.x = 5;
    }
}

SWITCH(EmptyParser, C);
