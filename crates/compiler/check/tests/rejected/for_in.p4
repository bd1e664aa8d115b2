#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        for (bit<8> i in 0 .. hdr.h.b) {
            meta.x = i;
        }
        for (bool flag in 0 .. 1) {
            meta.flag = flag;
        }
        for (bit<8> part in hdr.h) {
            meta.x = part;
        }
        for (bit<8> member in { 8w1, true }) {
            meta.x = member;
        }
        for (h_t h in hdr.s) {
            meta.x = h.a;
        }
        meta.x = h.a;
    }
}

SWITCH(EmptyParser, C);
