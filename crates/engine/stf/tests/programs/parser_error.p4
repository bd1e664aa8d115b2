// What the parser could not do stands in parser_error, and the packet goes on to ingress with
// the headers extracted so far.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> kind;
}

header four_t {
    bit<32> value;
}

error {
    TooOdd
}

struct headers_t {
    h_t       h;
    four_t[2] four;
}

struct metadata_t {}

#include "blocks.p4"

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        verify(hdr.h.kind & 0x81 != 0x81, error.TooOdd);
        transition select(hdr.h.kind) {
            0: accept;
            1 .. 3: four;
            4: reject;
        }
    }

    state four {
        packet.extract(hdr.four.next);
        hdr.h.kind = hdr.h.kind - 1;
        transition select(hdr.h.kind) {
            0: accept;
            default: four;
        }
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 9;
        if (standard.parser_error == error.NoError) {
            standard.egress_spec = 1;
        } else if (standard.parser_error == error.PacketTooShort) {
            standard.egress_spec = 2;
        } else if (standard.parser_error == error.NoMatch) {
            standard.egress_spec = 3;
        } else if (standard.parser_error == error.StackOutOfBounds) {
            standard.egress_spec = 4;
        } else if (standard.parser_error == error.TooOdd) {
            standard.egress_spec = 5;
        }
        if (!hdr.h.isValid()) {
            standard.egress_spec = standard.egress_spec + 10;
        }
    }
}

V1Switch(Parse(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
