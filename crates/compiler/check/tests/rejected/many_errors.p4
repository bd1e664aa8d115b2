#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.h.a = hdr.h.b;
        meta.z = 1;
        if (meta.x) {
            u.apply();
        }
    }
}

SWITCH(EmptyParser, C);
