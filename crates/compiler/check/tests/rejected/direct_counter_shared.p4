#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets) c;
    table t {
        actions = { NoAction; }
        counters = c;
    }
    table u {
        actions = { NoAction; }
        counters = c;
    }

    apply {
        t.apply();
        u.apply();
    }
}

SWITCH(EmptyParser, C);
