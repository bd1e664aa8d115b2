#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.h.a = meta.flag + 1;
    }
}

SWITCH(EmptyParser, C);
