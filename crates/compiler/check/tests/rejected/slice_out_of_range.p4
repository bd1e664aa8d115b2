#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        meta.x[3:0] = hdr.h.a[9:6];
    }
}

SWITCH(EmptyParser, C);
