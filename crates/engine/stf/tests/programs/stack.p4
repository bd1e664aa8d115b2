// Header stacks: next and last in the parser, push_front and pop_front, indices; only valid
// headers leave.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> operation;
}

header item_t {
    bit<1> more;
    bit<7> value;
}

struct headers_t {
    h_t       h;
    item_t[3] items;
}

struct metadata_t {
    bit<8> last;
}

#include "blocks.p4"

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition item;
    }

    state item {
        packet.extract(hdr.items.next);
        meta.last = (bit<8>)hdr.items.lastIndex * 16 + (bit<8>)hdr.items.last.value;
        transition select(hdr.items.last.more) {
            1: item;
            default: accept;
        }
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.h.operation == 1) {
            hdr.items.push_front(1);
            hdr.items[0].setValid();
            hdr.items[0].more = 1;
            hdr.items[0].value = 0x7f;
        } else if (hdr.h.operation == 2) {
            hdr.items.pop_front(2);
        } else if (hdr.h.operation == 3) {
            hdr.items[1].setInvalid();
        } else if (hdr.h.operation == 4) {
            hdr.items[2] = hdr.items[0];
        } else if (hdr.h.operation == 5) {
            hdr.items[0].value = (bit<7>)meta.last;
        }
    }
}

V1Switch(Parse(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
