#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action drop() {
        mark_to_drop(std);
    }
    table t {
        key = {
            meta.x : exact;
        }
        actions = {
            dorp;
        }
        default_action = drop;
    }
    register<bit<8>>(4) seen;
    apply {
        seen.raed(meta.x, 0);
        if (t.apply().hti) {
        }
    }
}

SWITCH(EmptyParser, C);
