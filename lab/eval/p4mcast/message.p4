// Frames of the systems that multicast is compared with, and how a copy gets its target.
//
// A message has 24 bytes of header and a payload, in a UDP datagram to PORT. Senders address the
// leader of each group; copies are told apart by `egress_rid`.

#ifndef COMPARED_MESSAGE_P4
#define COMPARED_MESSAGE_P4

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"
#include "ipv4.p4"

const bit<16> PORT = 4799;

const bit<8> TYPE_START = 1;
const bit<8> TYPE_PROP = 2;
const bit<8> TYPE_ACK = 3;
const bit<8> TYPE_DELIVER = 4;

header message_t {
    bit<8> type;
    // Map of the groups that are addressed: 1, 2 or 3.
    bit<8> destinations;
    // Group whose leader proposed the timestamp, 0 or 1.
    bit<8> group;
    // Switch that sends: its place, from 0.
    bit<8> origin;
    bit<32> id;
    // PROP, ACK: what is proposed; DELIVER: the final timestamp.
    bit<64> timestamp;
    // Number of the proposal among those of its leader, from 1. DELIVER: among those of the own
    // group's leader, as `known` is the last one that had come when the message was decided.
    bit<32> sequence;
    bit<32> known;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    message_t message;
}

parser SwitchRead(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
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
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.protocol) {
            (4, 5, IP_PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.destination_port) {
            PORT: message;
            default: accept;
        }
    }

    state message {
        packet.extract(hdr.message);
        transition accept;
    }
}

control SwitchVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    Ipv4VerifyChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
    }
}

control SwitchComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    Ipv4ComputeChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
    }
}

// Gives each copy its target.
control Target(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    action reach(bit<32> address, bit<48> mac, bit<32> source, bit<48> source_mac) {
        hdr.ipv4.destination = address;
        hdr.ipv4.source = source;
        hdr.ipv4.ttl = 64;
        hdr.ethernet.destination = mac;
        hdr.ethernet.source = source_mac;
        hdr.udp.source_port = PORT;
        hdr.udp.checksum = 0;
    }

    action nobody() {
        mark_to_drop(standard_metadata);
    }

    table targets {
        key = { standard_metadata.egress_rid: exact; }
        actions = { reach; nobody; }
        default_action = nobody();
        size = 64;
    }

    apply {
        targets.apply();
    }
}

control SwitchWrite(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.message);
    }
}

#endif
