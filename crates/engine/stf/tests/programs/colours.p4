// Meters whose colours are members of an enum.

#include <core.p4>
#include <v1model.p4>

enum colour_t {
    GREEN,
    YELLOW,
    RED
}

header h_t {
    bit<8> key;
    bit<8> found;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "blocks.p4"

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    meter(2, MeterType.packets) all;
    direct_meter<colour_t>(MeterType.packets) each;
    colour_t colour = colour_t.YELLOW;

    action read() {
        each.read(colour);
    }

    table keys {
        key = { hdr.h.key : exact; }
        actions = { read; NoAction; }
        meters = each;
    }

    apply {
        standard.egress_spec = 1;
        if (hdr.h.key == 0xff) {
            all.execute_meter<colour_t>(1, colour);
        } else {
            keys.apply();
        }
        if (colour == colour_t.GREEN) {
            hdr.h.found = 0x10;
        } else if (colour == colour_t.RED) {
            hdr.h.found = 0x12;
        } else {
            hdr.h.found = 0x11;
        }
    }
}

V1Switch(Parse(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
