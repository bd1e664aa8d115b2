// A varbit of more than 2,048 bits, and a header with two varbits.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>        length;
    varbit<8032>  data;
}

header two_t {
    bit<8>        first;
    varbit<8032>  a;
    bit<8>        second;
    varbit<8032>  b;
}

struct headers_t {
    two_t two;
    h_t   left;
    h_t   right;
}

struct metadata_t {}

#include "blocks.p4"

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.left, (bit<32>)packet.lookahead<bit<8>>() * 8);
        packet.extract(hdr.right, (bit<32>)packet.lookahead<bit<8>>() * 8);
        transition accept;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (standard.parser_error != error.NoError) {
            standard.egress_spec = 2;
        } else if (hdr.left == hdr.right) {
            standard.egress_spec = 3;
        } else {
            hdr.two.setValid();
            hdr.two.first = hdr.left.length;
            hdr.two.a = hdr.left.data;
            hdr.two.second = hdr.right.length;
            hdr.two.b = hdr.right.data;
            hdr.left.setInvalid();
            hdr.right.setInvalid();
        }
    }
}

V1Switch(Parse(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
