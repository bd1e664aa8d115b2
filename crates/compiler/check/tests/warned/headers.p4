#include "shell.p4"

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    state start {
        meta.x = hdr.h.a;
        packet.extract(hdr.h);
        meta.x = hdr.h.a;
        transition select(hdr.g.a) {
            1: more;
            2: never;
            default: accept;
        }
    }
    state more {
        packet.extract(hdr.g);
        transition select(hdr.h.a) {
            1: more;
            default: accept;
        }
    }
    state never {
        meta.x = hdr.g.a;
        transition accept;
    }
}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    h_t mine;
    apply {
        mine.a = 1;
        mine.setValid();
        mine.a = 1;
        if (hdr.h.isValid() && hdr.h.a == mine.a) {
            hdr.h.setInvalid();
            meta.x = hdr.h.a;
        } else if (!hdr.g.isValid()) {
            hdr.g.b = 1;
            hdr.g = hdr.h;
            hdr.g.b = 1;
        } else {
            hdr.g.b = 2;
        }
    }
}

SWITCH(P, C);
