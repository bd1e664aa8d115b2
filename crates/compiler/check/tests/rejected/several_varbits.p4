#include "shell.p4"

header options_t {
    varbit<8> a;
    varbit<8> b;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    state start {
        options_t options;
        packet.extract(options, 8);
        transition accept;
    }
}

SWITCH(P, NoIngress);
