// The loops of P4-16 1.2.5 (specification 11.8).

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> count;
    bit<8> sum;
    bit<8> odd;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        for (bit<8> i = 0; i < 8; i = i + 1) {
            if (i == hdr.h.count) {
                break;
            }
            hdr.h.sum = hdr.h.sum + i;
        }
        for (bit<8> j = 0, bit<8> step = 1; j < 8; j = j + step) {
            if (j[0:0] == 0) {
                continue;
            }
            step = 2;
            hdr.h.odd = hdr.h.odd + j;
        }
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
