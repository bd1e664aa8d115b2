// Slices are read and written; the bits around them stay. Shifts past the width give 0, or the
// sign.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<16> word;
    bit<8>  high;
    bit<8>  middle;
    bit<8>  joined;
    bit<8>  shift;
    bit<8>  left;
    bit<8>  right;
    int<8>  arithmetic;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.high = hdr.h.word[15:8];
        hdr.h.middle = hdr.h.word[11:4];
        hdr.h.joined = hdr.h.word[3:0] ++ hdr.h.word[15:12];
        hdr.h.left = hdr.h.word[7:0] << hdr.h.shift;
        hdr.h.right = hdr.h.word[7:0] >> hdr.h.shift;
        hdr.h.arithmetic = (int<8>)hdr.h.word[7:0] >> hdr.h.shift;
        hdr.h.word[11:4] = 0x5a;
        hdr.h.word[0:0] = ~hdr.h.word[0:0];
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
