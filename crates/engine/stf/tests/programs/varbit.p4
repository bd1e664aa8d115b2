// A field whose length the packet says: 0 to its greatest width, and an error beyond it.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>      length;
    varbit<32>  data;
}

struct headers_t {
    h_t h;
    h_t copy;
}

struct metadata_t {}

#include "blocks.p4"

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard) {
    state start {
        bit<8> length = packet.lookahead<bit<8>>();
        packet.extract(hdr.h, (bit<32>)length * 8);
        transition accept;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (standard.parser_error == error.HeaderTooShort) {
            standard.egress_spec = 2;
        } else if (standard.parser_error == error.PacketTooShort) {
            standard.egress_spec = 3;
        } else if (hdr.h.isValid()) {
            hdr.copy = hdr.h;
        }
    }
}

V1Switch(Parse(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
