// Meters color packets by what came before (RFC 2698): green up to the committed burst, yellow
// up to the peak one, else red; tokens come back with time.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> index;
    bit<8> color;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
    bit<2> color;
}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    meter(4, MeterType.packets) packets;
    direct_meter<bit<2>>(MeterType.packets) direct;

    action colored() {
        direct.read(meta.color);
    }

    table rates {
        key = {
            hdr.h.index : exact;
        }
        actions = {
            colored;
            NoAction;
        }
        default_action = NoAction();
        meters = direct;
    }

    apply {
        standard.egress_spec = 1;
        if (!rates.apply().hit) {
            packets.execute_meter((bit<32>)hdr.h.index, meta.color);
        }
        hdr.h.color = (bit<8>)meta.color;
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
