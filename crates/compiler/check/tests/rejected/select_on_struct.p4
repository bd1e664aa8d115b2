#include "shell.p4"

struct pair_t {
    bit<8> a;
    bit<8> b;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    state start {
        pair_t pair = { 1, 2 };
        transition select(pair) {
            { 1, 2 }: accept;
            default: reject;
        }
    }
}

SWITCH(P, NoIngress);
