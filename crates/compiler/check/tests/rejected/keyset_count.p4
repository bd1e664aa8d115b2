#include "shell.p4"

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    state start {
        transition select(meta.x, meta.y) {
            (1, 2): accept;
            (1, 2, 3): reject;
            default: accept;
        }
    }
}

SWITCH(P, NoIngress);
