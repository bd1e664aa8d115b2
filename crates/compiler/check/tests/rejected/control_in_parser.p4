#include "shell.p4"

control Sub() {
    apply {}
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    Sub() sub;
    state start {
        transition accept;
    }
}

SWITCH(P, NoIngress);
