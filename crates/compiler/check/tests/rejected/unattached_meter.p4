#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_meter<bit<2>>(MeterType.packets) m;
    bit<2> color;
    action a() {
        m.read(color);
    }

    apply {
        a();
    }
}

SWITCH(EmptyParser, C);
