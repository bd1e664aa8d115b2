#include "shell.p4"

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a) {
            1: more;
            _: start;
        }
    }
    state more {
        transition start;
    }
    state out_of_reach {
        transition accept;
    }
}

SWITCH(P, NoIngress);
