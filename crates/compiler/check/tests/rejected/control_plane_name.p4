#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    table t {
        actions = { NoAction; }
    }
    @name("t")
    table u {
        actions = { NoAction; }
    }

    apply {
        t.apply();
        u.apply();
    }
}

SWITCH(EmptyParser, C);
