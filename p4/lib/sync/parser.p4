// Parsing of the library's frames, and of nothing else; the program parses the others.

#ifndef STATEPLANE_SYNC_PARSER_P4
#define STATEPLANE_SYNC_PARSER_P4

#include "ipv4.p4"
#include "metadata.p4"
#include "ports.p4"
#include "sync_message.p4"

// Takes ticks, and on SYNC_CONTROL_PORT datagrams to SYNC_UDP_PORT. Of other frames nothing is
// extracted: the program's parser goes on from the first byte unless `hdr.ethernet` is valid.
parser SyncParser(
    packet_in packet,
    out sync_headers_t hdr,
    inout sync_metadata_t meta,
    in standard_metadata_t standard_metadata
) {
    state start {
        transition select(standard_metadata.ingress_port) {
            SYNC_TICK_PORT: tick;
            SYNC_CONTROL_PORT: front;
            default: accept;
        }
    }

    state tick {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.tick);
        transition accept;
    }

    state front {
        transition select(packet.lookahead<ethernet_t>().ether_type) {
            ETHERTYPE_IPV4: ipv4_front;
            default: accept;
        }
    }

    state ipv4_front {
        sync_front_t found = packet.lookahead<sync_front_t>();
        transition select(
            found.version_and_length,
            found.flags[0:0],
            found.fragment_offset,
            found.protocol
        ) {
            (0x45, 0, 0, IP_PROTOCOL_UDP): port_front;
            default: accept;
        }
    }

    state port_front {
        transition select(packet.lookahead<sync_port_front_t>().destination_port) {
            SYNC_UDP_PORT: message;
            default: accept;
        }
    }

    state message {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        packet.extract(hdr.message);
        meta.left = hdr.message.count;
        transition select(hdr.message.count) {
            0: accept;
            default: value;
        }
    }

    state value {
        packet.extract(hdr.values.next);
        meta.left = meta.left - 1;
        transition select(meta.left) {
            0: accept;
            default: value;
        }
    }
}

control SyncVerifyChecksum(inout sync_headers_t hdr) {
    Ipv4VerifyChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
    }
}

control SyncComputeChecksum(inout sync_headers_t hdr) {
    Ipv4ComputeChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
    }
}

control SyncDeparser(packet_out packet, in sync_headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.message);
        packet.emit(hdr.values);
        packet.emit(hdr.frozen);
    }
}

#endif
