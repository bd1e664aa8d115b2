#include "shell.p4"

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    state start {
        transitoin accept;
    }
}

SWITCH(P, NoIngress);
