// Parsing of frames: of datagrams to MULTICAST_UDP_PORT all headers, of others up to IPv4.

#ifndef STATEPLANE_MULTICAST_PARSER_P4
#define STATEPLANE_MULTICAST_PARSER_P4

#include "ipv4.p4"
#include "multicast_message.p4"

parser MulticastParser(packet_in packet, out multicast_headers_t hdr) {
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
            hdr.ipv4.flags[0:0],
            hdr.ipv4.fragment_offset,
            hdr.ipv4.protocol
        ) {
            (4, 5, 0, 0, IP_PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.destination_port) {
            MULTICAST_UDP_PORT: message;
            default: accept;
        }
    }

    state message {
        packet.extract(hdr.message);
        transition accept;
    }
}

control MulticastVerifyChecksum(inout multicast_headers_t hdr) {
    Ipv4VerifyChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
    }
}

control MulticastComputeChecksum(inout multicast_headers_t hdr) {
    Ipv4ComputeChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
    }
}

control MulticastDeparser(packet_out packet, in multicast_headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.message);
    }
}

#endif
