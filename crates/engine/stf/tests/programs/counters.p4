// Counters of packets and bytes, indexed and direct; frames count with all their bytes.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> index;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(4, CounterType.packets) packets;
    counter(4, CounterType.bytes) bytes;
    direct_counter(CounterType.packets_and_bytes) hits;

    table known {
        key = {
            hdr.h.index : exact;
        }
        actions = {
            NoAction;
        }
        default_action = NoAction();
        counters = hits;
    }

    apply {
        standard.egress_spec = 1;
        packets.count((bit<32>)hdr.h.index);
        bytes.count((bit<32>)hdr.h.index);
        known.apply();
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), NoEgress(), NoChecksum(), Emit()) main;
