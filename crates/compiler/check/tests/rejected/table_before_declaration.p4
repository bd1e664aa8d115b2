#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action look() {
        t.apply();
    }
    table t {
        actions = { NoAction; }
    }
    apply {
        look();
    }
}

SWITCH(EmptyParser, C);
