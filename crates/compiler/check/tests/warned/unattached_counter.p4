#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets) c;
    action a() {
        c.count();
    }

    apply {
        a();
    }
}

SWITCH(EmptyParser, C);
