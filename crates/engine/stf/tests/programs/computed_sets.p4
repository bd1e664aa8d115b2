// Sets of a select that depend on the packet: values, masks and ranges, beside constant ones.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> key;
    int<8> signed;
    bit<8> low;
    bit<8> high;
    bit<8> found;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "blocks.p4"

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard) {
    const bit<8> MARK = 0xee;

    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.key, hdr.h.signed) {
            (MARK, _): constant;
            (hdr.h.low, 0): equal;
            (_ , (int<8>)hdr.h.low .. -1): negative;
            (hdr.h.low &&& hdr.h.high, 1): masked;
            (hdr.h.low .. hdr.h.high - 1, 2): within;
            (hdr.h.low + 1, 3): next;
            default: accept;
        }
    }

    state constant {
        hdr.h.found = 1;
        transition accept;
    }

    state equal {
        hdr.h.found = 2;
        transition accept;
    }

    state negative {
        hdr.h.found = 3;
        transition accept;
    }

    state masked {
        hdr.h.found = 4;
        transition accept;
    }

    state within {
        hdr.h.found = 5;
        transition accept;
    }

    state next {
        hdr.h.found = 6;
        transition accept;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
    }
}

V1Switch(Parse(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
