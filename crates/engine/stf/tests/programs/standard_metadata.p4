// What the switch tells of a packet: its port and length, the port that it leaves by, and its
// time.

#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<32> length;
    bit<48> time;
}

struct headers_t {
    h_t h;
}

struct metadata_t {}

#include "one_header.p4"

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.h.egress_port = (bit<16>)standard.egress_port;
        hdr.h.length = standard.packet_length;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.h.ingress_port = (bit<16>)standard.ingress_port;
        hdr.h.time = standard.ingress_global_timestamp;
        standard.egress_spec = 300;
    }
}

V1Switch(OneHeader(), NoChecksum(), MyIngress(), MyEgress(), NoChecksum(), Emit()) main;
