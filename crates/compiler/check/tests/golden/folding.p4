// Compile-time constants: branches on them disappear, arithmetic is done at once.
#include "shell.p4"

const bool RULE = true;
const bool BROKEN = !RULE;
const bit<16> BASE = 0x0800;
const int BIG = (1 << 100) - 1;
const bit<8> WRAPPED = 8w200 + 8w100;
const int<8> SIGNED = -128;
const bit<8> SATURATED = 8w200 |+| 100;
const bit<12> JOINED = 4w0xa ++ 8w0xbc;
const bit<4> CUT = JOINED[7:4];
const tuple<bit<8>, bool> PAIR = { 7, true };
const h_t HEADER = { a = 1, ... };
const int HEADER_BYTES = h_t.minSizeInBytes();
const bool _checked = static_assert(HEADER_BYTES == 4, "the header has four bytes");

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (RULE && meta.flag) {
            meta.y = BASE;
        }
        if (BROKEN && meta.flag) {
            meta.y = 1;
        } else {
            meta.y = 2;
        }
        if (BROKEN || meta.flag) {
            meta.y = (bit<16>)(BIG >> 90);
        }
        hdr.h = HEADER;
        hdr.h.a = WRAPPED;
        hdr.h.c = SIGNED;
        hdr.g.a = SATURATED;
        meta.x = (bit<8>)CUT;
        meta.x = PAIR[0];
        meta.flag = PAIR[1];
        meta.x = RULE ? meta.x : 0;
        meta.x = (bit<8>)hdr.s.size;
        meta.x = (bit<8>)h_t.maxSizeInBits();
        meta.x = 1 == 1 ? 8w3 : 4;
    }
}

SWITCH(EmptyParser, C);
