// Loops over ranges, lists and header stacks (specification 11.8), which the reference switch does
// not have.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> count;
    bit<8> odd;
    bit<8> list;
    bit<8> stack;
}

header item_t {
    bit<8> value;
}

struct headers_t {
    h_t       h;
    item_t[3] items;
}

struct metadata_t {}

#include "blocks.p4"

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        packet.extract(hdr.items[0]);
        packet.extract(hdr.items[1]);
        transition accept;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        for (bit<8> i in 0 .. hdr.h.count) {
            if (i[0:0] == 0) {
                continue;
            }
            hdr.h.odd = hdr.h.odd + i;
        }
        for (bit<8> item in (list<bit<8>>){ 1, 2, 4, 0x80 }) {
            hdr.h.list = hdr.h.list | item;
        }
        for (item_t item in hdr.items) {
            if (!item.isValid()) {
                break;
            }
            hdr.h.stack = hdr.h.stack + item.value;
        }
    }
}

V1Switch(Parse(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
