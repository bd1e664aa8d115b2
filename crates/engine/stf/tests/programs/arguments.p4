// Arguments are evaluated from left to right, and copied out in that order (specification 6.8).
// Errors of the program that come before those of core.p4 do not change the default.

error {
    TooOdd,
    TooEven
}

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> kind;
    bit<8> first;
    bit<8> second;
    bit<8> error_number;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "blocks.p4"

bit<8> one(inout bit<8> z) {
    z = 3;
    return 1;
}

bit<8> add(inout bit<8> x, in bit<8> z) {
    x = x + z;
    return 4;
}

void both(out bit<8> x, out bit<8> y) {
    x = 1;
    y = 2;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        verify(hdr.h.kind != 9, error.TooOdd);
        transition accept;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action leave(inout bit<8> x, in bit<8> z) {
        x = x + z;
        exit;
    }

    apply {
        standard.egress_spec = 1;
        if (standard.parser_error == error.NoError) {
            hdr.h.error_number = 1;
        } else if (standard.parser_error == error.TooOdd) {
            hdr.h.error_number = 2;
        }
        if (hdr.h.kind == 0) {
            hdr.h.second = add(hdr.h.first, one(hdr.h.first));
        } else if (hdr.h.kind == 1) {
            both(y = hdr.h.first, x = hdr.h.first);
        } else if (hdr.h.kind == 2) {
            leave(hdr.h.first, one(hdr.h.first));
            hdr.h.second = 9;
        }
    }
}

V1Switch(Parse(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
