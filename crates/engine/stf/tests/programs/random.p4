// random() draws from a range whose ends belong to it; so does the algorithm random of hash().

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> one;
    bit<8> two;
    bit<8> hashed;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    bit<8> drawn;
}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<8>>(4) seen;
    apply {
        random(hdr.h.one, 5, 5);
        random(meta.drawn, 6, 7);
        hdr.h.two = (bit<8>)(bit<1>)(meta.drawn == 6 || meta.drawn == 7);
        seen.write((bit<32>)(meta.drawn - 6), 1);
        hash(hdr.h.hashed, HashAlgorithm.random, 8w9, { hdr.h.one }, 8w1);
        standard.egress_spec = 1;
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
