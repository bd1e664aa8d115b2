#include "shell.p4"

control Unused(inout headers_t hdr)(bit<32> n) {
    register<bit<8>>(n) r;
    apply {
        r.write(0, hdr.h.b);
    }
}

SWITCH(EmptyParser, NoIngress);
