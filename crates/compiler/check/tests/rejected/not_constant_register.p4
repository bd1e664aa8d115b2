#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<8>>((bit<32>)meta.x) r;

    apply {
    }
}

SWITCH(EmptyParser, C);
