#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action count() {
        for (bit<32> i = 0; i < 100000; i = i + 1) {
            meta.x = meta.x + 1;
        }
    }
    apply {
        count();
        for (bit<32> i = 100000; i > 0; i = i - 1) {
            if (meta.flag) {
                continue;
            }
            meta.x = meta.x + 1;
        }
        for (int<32> i in -40000 .. 40000) {
            meta.x = meta.x + 1;
        }
        for (bit<32> i in 1 .. 300) {
            for (bit<32> j in 1 .. 300) {
                meta.x = meta.x + 1;
            }
        }
        // None of these is certain to have so many rounds.
        for (bit<32> i = 0; i < 65535; i = i + 1) {
            meta.x = meta.x + 1;
        }
        for (bit<32> i in 0 .. 100000) {
            if (meta.flag) {
                break;
            }
        }
        for (bit<32> i = 0; i < 100000; i = i + 1) {
            i = i + 100;
        }
        for (bit<32> i in 1 .. 300) {
            if (meta.flag) {
                for (bit<32> j in 1 .. 300) {
                    meta.x = meta.x + 1;
                }
            }
        }
    }
}

SWITCH(EmptyParser, C);
