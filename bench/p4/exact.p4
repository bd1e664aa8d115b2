// Ethernet switching by one exact lookup of the destination.

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t { }

parser Read(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Process(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action drop() {
        mark_to_drop(standard);
    }

    action send(bit<9> port) {
        standard.egress_spec = port;
    }

    table stations {
        key = { hdr.ethernet.destination: exact; }
        actions = { send; drop; }
        default_action = drop();
        size = 1048576;
    }

    apply { stations.apply(); }
}

control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control Write(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(Read(), Nothing(), Process(), Leave(), Nothing(), Write()) main;
