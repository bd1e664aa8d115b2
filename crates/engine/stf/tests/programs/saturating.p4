// Saturating sums and differences stop at the ends of their type (specification 8.6, 8.7).

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> a;
    bit<8> b;
    bit<8> sum;
    bit<8> difference;
    int<8> signed_sum;
    int<8> signed_difference;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.h.sum = hdr.h.a |+| hdr.h.b;
        hdr.h.difference = hdr.h.a |-| hdr.h.b;
        hdr.h.signed_sum = (int<8>)hdr.h.a |+| (int<8>)hdr.h.b;
        hdr.h.signed_difference = (int<8>)hdr.h.a |-| (int<8>)hdr.h.b;
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
