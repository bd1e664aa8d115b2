// Sends each UDP datagram on by the other port, to an address of its own for each port: the least
// that a member of a chain does to a message.

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"
#include "ipv4.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
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
        transition select(hdr.ipv4.protocol) {
            IP_PROTOCOL_UDP: udp;
            default: accept;
        }
    }

    state udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control Check(inout headers_t hdr, inout metadata_t meta) {
    Ipv4VerifyChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
    }
}

control Relay(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action send(bit<9> port, bit<48> mac, bit<48> source_mac, bit<32> address, bit<16> udp_port) {
        standard.egress_spec = port;
        hdr.ethernet.destination = mac;
        hdr.ethernet.source = source_mac;
        // A host takes no datagram that comes from itself.
        hdr.ipv4.source = hdr.ipv4.destination;
        hdr.ipv4.destination = address;
        hdr.udp.destination_port = udp_port;
        hdr.udp.checksum = 0;
    }

    action drop() {
        mark_to_drop(standard);
    }

    table hops {
        key = { standard.ingress_port: exact; }
        actions = { send; drop; }
        default_action = drop();
        size = 2;
    }

    apply {
        if (hdr.udp.isValid() && standard.checksum_error == 0) {
            hops.apply();
        } else {
            drop();
        }
    }
}

control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    Ipv4ComputeChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
    }
}

control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

V1Switch(Read(), Check(), Relay(), Leave(), Compute(), Emit()) main;
