#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        meta.flag = (bool)hdr.h.a;
    }
}

SWITCH(EmptyParser, C);
