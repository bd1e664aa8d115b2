#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        log_msg("a", { 8w1 }, 3);
    }
}

SWITCH(EmptyParser, C);
