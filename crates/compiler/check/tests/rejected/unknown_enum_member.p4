#include "shell.p4"

enum C2 { red, green }

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        bool b = C2.gren == C2.red;
        meta.flag = b;
    }
}

SWITCH(EmptyParser, C);
