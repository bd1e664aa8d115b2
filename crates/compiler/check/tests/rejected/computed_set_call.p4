#include "shell.p4"

bit<8> next(inout bit<8> a) {
    a = a + 1;
    return a;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    state start {
        bit<8> a = 1;
        transition select(hdr.h.a) {
            next(a): accept;
            default: reject;
        }
    }
}

SWITCH(P, NoIngress);
