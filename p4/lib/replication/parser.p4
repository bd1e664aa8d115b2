// Tells the library's messages and probes from the program's packets, and reads them.

#ifndef STATEPLANE_REPLICATION_PARSER_P4
#define STATEPLANE_REPLICATION_PARSER_P4

#include "metadata.p4"
#include "ports.p4"
#include "replication_message.p4"

error {
    // The state on board is not REPLICATION_STATE_BITS wide.
    ReplicationStateLength
}

parser ReplicationParser(
    packet_in packet,
    out replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    state start {
        meta.parse_program = true;
        meta.arriving = true;
        transition select(packet.lookahead<ethernet_t>().ether_type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_GENERATED: generated;
            default: accept;
        }
    }

    state generated {
        transition select(standard_metadata.ingress_port) {
            GENERATOR_PORT: probe;
            HEARTBEAT_PORT: probe;
            default: accept;
        }
    }

    state probe {
        meta.parse_program = false;
        meta.arriving = false;
        packet.extract(hdr.ethernet);
        packet.extract(hdr.probe);
        transition accept;
    }

    // The destination port comes first, in which nearly all other packets of UDP differ from a
    // message. A fragment may be too short to have one.
    state ipv4 {
        replication_front_t front = packet.lookahead<replication_front_t>();
        transition select(front.fragment, front.protocol) {
            (0, IP_PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state udp {
        replication_udp_front_t front = packet.lookahead<replication_udp_front_t>();
        transition select(front.destination_port) {
            REPLICATION_UDP_PORT: from_port;
            default: accept;
        }
    }

    state from_port {
        replication_udp_front_t front = packet.lookahead<replication_udp_front_t>();
        transition select(front.version_and_ihl, front.source_port) {
            (0x45, REPLICATION_UDP_PORT): message;
            default: accept;
        }
    }

    state message {
        meta.parse_program = false;
        meta.arriving = false;
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        packet.extract(hdr.message);
        transition select(hdr.message.state_length) {
            0: on_board;
            STATE_BYTES: with_state;
            default: bad_state;
        }
    }

    state with_state {
        packet.extract(hdr.state);
        transition on_board;
    }

    state bad_state {
        verify(false, error.ReplicationStateLength);
        // The line above has rejected; BMv2 takes no explicit `reject`.
        transition accept;
    }

    state on_board {
        meta.parse_program = (hdr.message.flags & FLAG_PACKET) != 0;
        transition accept;
    }
}

control ReplicationDeparser(packet_out packet, in replication_headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.message);
        packet.emit(hdr.state);
    }
}

#endif
