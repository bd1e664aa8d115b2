#include "shell.p4"

@deprecated("Use `twice`")
bit<8> double(in bit<8> x) {
    return x + x;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    state start {
        transition select(meta.x, meta.y) {
            (1, 2): accept;
            (1, 3): accept;
            (1, 2): reject;
            (1 .. 4, _): accept;
            (_, _): accept;
            (7, 7): reject;
        }
    }
}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @nmae("somewhere") action a() {}
    table t {
        key = {
            meta.x : ternary;
        }
        actions = {
            a;
        }
        const entries = {
            1 : a();
            2 : a();
            1 : a();
        }
        default_action = a;
    }
    apply {
        t.apply();
        meta.x = double(meta.x);
        meta.x = meta.x << 7;
        meta.x = meta.x << 8;
        meta.x = meta.x >> 9;
        if (meta.x >= 0 || meta.x > 255) {
            meta.x = 1;
        }
        if (0 > hdr.h.c || hdr.h.c < -128 || 127 >= hdr.h.c) {
            meta.x = 1;
        }
    }
}

SWITCH(P, C);
