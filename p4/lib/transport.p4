// TCP and UDP over IPv4: what most applications parse, check and deparse.

#ifndef STATEPLANE_TRANSPORT_P4
#define STATEPLANE_TRANSPORT_P4

#include "headers.p4"

struct transport_headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    tcp_t tcp;
    udp_t udp;
}

// Finds the ports of whole datagrams without options. Others keep them hidden, so
// neither `tcp` nor `udp` is valid.
parser TransportParser(packet_in packet, out transport_headers_t hdr) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(
            hdr.ipv4.version,
            hdr.ipv4.ihl,
            hdr.ipv4.flags,
            hdr.ipv4.fragment_offset,
            hdr.ipv4.protocol
        ) {
            (4, 5, 0 &&& 1, 0, IP_PROTOCOL_TCP): tcp;
            (4, 5, 0 &&& 1, 0, IP_PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }

    state udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

// The ports of a packet, 0 without any.
control TransportPorts(in transport_headers_t hdr, out bit<16> source, out bit<16> destination) {
    apply {
        source = 0;
        destination = 0;
        if (hdr.tcp.isValid()) {
            source = hdr.tcp.source_port;
            destination = hdr.tcp.destination_port;
        } else if (hdr.udp.isValid()) {
            source = hdr.udp.source_port;
            destination = hdr.udp.destination_port;
        }
    }
}

control TransportDeparser(packet_out packet, in transport_headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
    }
}

#endif
