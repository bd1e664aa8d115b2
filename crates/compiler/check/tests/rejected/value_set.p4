#include "shell.p4"

struct pair_t {
    @match(selector) bit<8> a;
    bit<16>                 b;
}

struct empty_t {}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    value_set<pair_t>(4) pairs;
    value_set<h_t>(4) headers;
    value_set<empty_t>(4) empty;
    value_set<bit<16>>(4) wide;

    state start {
        bit<8> x = pairs;
        transition select(hdr.h.a) {
            pairs: accept;
            wide: accept;
        }
    }
}

SWITCH(P, NoIngress);
