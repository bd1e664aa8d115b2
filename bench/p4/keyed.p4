// Frames of port 0 leave by port 1, and the other way around. Each flow's packets and bytes are
// counted in registers, whose elements at one index no two workers may change at once.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4> version;
    bit<4> header_length;
    bit<8> service;
    bit<16> length;
    bit<16> id;
    bit<3> flags;
    bit<13> offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
}

struct metadata_t { }

register<bit<64>>(65536) packets;
register<bit<64>>(65536) bytes;

parser Parse(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        transition accept;
    }
}

control Count(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    bit<32> flow;
    bit<64> count;

    apply {
        flow = (bit<32>)hdr.udp.src;
        @atomic {
            packets.read(count, flow);
            packets.write(flow, count + 1);
            bytes.read(count, flow);
            bytes.write(flow, count + (bit<64>)standard_metadata.packet_length);
        }
        standard_metadata.egress_spec = standard_metadata.ingress_port ^ 1;
    }
}

control Pass(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) { apply { } }
control Checksum(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

V1Switch(Parse(), Checksum(), Count(), Pass(), Checksum(), Deparse()) main;
