// At most one header of a union is valid: making one valid takes validity from the others
// (specification 8.20).

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> kind;
}

header short_t {
    bit<8> value;
}

header long_t {
    bit<16> value;
}

header_union either_t {
    short_t small;
    long_t  large;
}

struct headers_t {
    h_t      h;
    either_t either;
}

struct metadata_t {}

#include "blocks.p4"

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.kind) {
            1: small;
            2: large;
            4: large;
            default: accept;
        }
    }

    state small {
        packet.extract(hdr.either.small);
        transition accept;
    }

    state large {
        packet.extract(hdr.either.large);
        transition accept;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.h.kind == 3 && hdr.either.isValid()) {
            hdr.h.kind = 0x30;
        } else if (hdr.h.kind == 4) {
            hdr.either.small.setValid();
            hdr.either.small.value = 0x44;
        }
        if (hdr.either.large.isValid()) {
            hdr.either.large.value = hdr.either.large.value + 1;
        }
    }
}

V1Switch(Parse(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
