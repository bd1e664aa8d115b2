// Registers keep values of any width between packets, each index on its own; all are 0 at
// first.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>   index;
    bit<1>   one;
    bit<7>   seven;
    bit<33>  odd;
    bit<7>   fill;
    bit<129> wide;
    bit<7>   rest;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<1>>(4) ones;
    register<bit<7>>(4) sevens;
    register<bit<33>>(4) odds;
    register<bit<129>>(4) wides;
    register<int<9>>(4) signed;
    apply {
        bit<1>   one;
        bit<7>   seven;
        bit<33>  odd;
        bit<129> wide;
        int<9>   sign;
        bit<32>  index = (bit<32>)hdr.h.index;
        ones.read(one, index);
        sevens.read(seven, index);
        odds.read(odd, index);
        wides.read(wide, index);
        signed.read(sign, index);
        ones.write(index, hdr.h.one);
        sevens.write(index, hdr.h.seven);
        odds.write(index, hdr.h.odd);
        wides.write(index, hdr.h.wide);
        signed.write(index, sign - 1);
        hdr.h.one = one;
        hdr.h.seven = seven;
        hdr.h.odd = odd;
        hdr.h.wide = wide;
        hdr.h.rest = (bit<7>)(bit<9>)(sign >> 2);
        standard.egress_spec = 1;
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
