#include "shell.p4"

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    state start {
        transition select(meta.x) {
            1: end;
            default: accept;
        }
    }
    state end {
        packet.extract(hdr.h);
    }
}

SWITCH(P, NoIngress);
