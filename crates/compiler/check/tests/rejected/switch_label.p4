#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action a() {}
    action b() {}
    table t {
        actions = { a; }
        default_action = a;
    }

    apply {
        switch (t.apply().action_run) {
            b: { meta.x = 1; }
        }
    }
}

SWITCH(EmptyParser, C);
