#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<8>, bit<32>>(4) r;

    apply {
        r.write(0, 1);
    }
}

SWITCH(EmptyParser, C);
