// Every operator on the types that it is defined on.
#include "shell.p4"

enum bit<8> kind_t {
    plain = 1,
    fancy = 0xf0
}

enum colour_t { red, green }

type bit<9> port_t;
typedef bit<16> word_t;

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        word_t w = hdr.h.b;
        int<8> i = hdr.h.c;
        bit<8> b = hdr.h.a;
        b = b + 1 - b * 2;
        b = b / 3 % 5;
        b = b |+| 7 |-| 9;
        b = b & 0xf | 1 ^ ~b;
        b = b << 3 >> w;
        i = i >> 1 << b;
        i = -i + (int<8>)b;
        w = b ++ (bit<8>)i;
        w = (bit<16>)b;
        i = (int<8>)(int<4>)(bit<4>)w;
        meta.flag = b < 3 && i >= -4 || w != 7;
        meta.flag = (bool)b[0:0];
        b[0:0] = (bit<1>)meta.flag;
        b[6:3] = w[15:12];
        w[15:8][3:0] = 1;
        meta.flag = hdr.h == hdr.g;
        meta.flag = hdr.h == { 1, 2, 3 };
        meta.flag = hdr.h != {#};
        kind_t k = kind_t.fancy;
        k = (kind_t)b;
        b = k;
        b = k + 1;
        meta.flag = k == kind_t.plain;
        colour_t c = colour_t.green;
        meta.flag = c != colour_t.red;
        port_t p = (port_t)std.ingress_port;
        std.egress_spec = (bit<9>)p;
        meta.flag = std.parser_error == error.NoMatch;
        b = meta.flag ? b : k;
        b = +b;
        b <<= 1;
        b |+|= 200;
        tuple<bit<8>, bool> pair = { b, true };
        b = pair[0];
        hdr.s = { { 1, 2, 3 }, hdr.g, {#} };
        hdr.s[1] = hdr.s[b];
        hdr.s[i].a = 1;
        hdr.s.push_front(1);
        hdr.s.pop_front(2);
        hdr.h.setInvalid();
        hdr.g.setValid();
        meta = { ... };
        b = w[b+:4] ++ 4w0;
    }
}

SWITCH(EmptyParser, C);
