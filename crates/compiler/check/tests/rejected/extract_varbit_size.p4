#include "shell.p4"

header v_t {
    varbit<32> v;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    state start {
        v_t v;
        packet.extract(v);
        transition accept;
    }
}

SWITCH(P, NoIngress);
