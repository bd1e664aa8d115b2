#include "shell.p4"

void f() {}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        meta.x = f();
    }
}

SWITCH(EmptyParser, C);
