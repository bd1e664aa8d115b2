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

// RFC 1624, equation 3: a one's complement checksum after the words of an address
// and a port were exchanged.
control ExchangeInChecksum(
    inout bit<16> checksum,
    in bit<32> old_address,
    in bit<32> new_address,
    in bit<16> old_port,
    in bit<16> new_port
) {
    bit<32> sum;

    apply {
        sum = (bit<32>)(~checksum) + (bit<32>)(~old_address[31:16]) + (bit<32>)(~old_address[15:0])
            + (bit<32>)(~old_port) + (bit<32>)new_address[31:16] + (bit<32>)new_address[15:0]
            + (bit<32>)new_port;
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        checksum = ~sum[15:0];
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
