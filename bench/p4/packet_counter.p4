// Packets and bytes of each source address (ApproSync Table II, PC), with nothing of a control
// plane: what `stateplane sync` instruments.

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

#ifndef SOURCES
#define SOURCES 65536
#endif

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
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
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Process(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<64>>(SOURCES) packets;
    register<bit<64>>(SOURCES) bytes;
    bit<32> source;
    bit<64> count;

    apply {
        standard.egress_spec = 1;
        if (hdr.ipv4.isValid()) {
            source = hdr.ipv4.source & (SOURCES - 1);
            packets.read(count, source);
            packets.write(source, count + 1);
            bytes.read(count, source);
            bytes.write(source, count + (bit<64>)hdr.ipv4.total_length);
        }
    }
}

control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control Write(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(Read(), Nothing(), Process(), Leave(), Nothing(), Write()) main;
