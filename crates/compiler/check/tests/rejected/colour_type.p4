#include "shell.p4"

enum two_t {
    low,
    high
}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_meter<two_t>(MeterType.bytes) colours;
    action read() {
        two_t colour;
        colours.read(colour);
    }
    table t {
        key = { hdr.h.a : exact; }
        actions = { read; }
        meters = colours;
    }
    apply {
        t.apply();
    }
}

SWITCH(EmptyParser, C);
