#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    table t {
        actions = { NoAction; }
        implementation = action_selector(HashAlgorithm.crc16, 32w4, 32w4);
    }

    apply {
    }
}

SWITCH(EmptyParser, C);
