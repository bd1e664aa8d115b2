#include "shell.p4"

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    value_set<bit<8>>(4) vs;
    state start {
        transition select(meta.x) {
            vs: accept;
            default: reject;
        }
    }
}

SWITCH(P, NoIngress);
