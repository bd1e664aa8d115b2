// Reads messages, frames of the packet generator, and the headers of what is routed.

#ifndef STATEPLANE_COORDINATION_PARSER_P4
#define STATEPLANE_COORDINATION_PARSER_P4

#include "coordination_message.p4"
#include "metadata.p4"
#include "ports.p4"

error {
    // A value longer than MAX_VALUE.
    CoordinationValueLength
}

parser CoordinationParser(
    packet_in packet,
    out coordination_headers_t hdr,
    inout coordination_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    state start {
        // Of a copy that comes back, the metadata say what it is to become.
        transition select(meta.extra) {
            0: frame;
            default: accept;
        }
    }

    state frame {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_GENERATED: generated;
            default: accept;
        }
    }

    state generated {
        transition select(standard_metadata.ingress_port) {
            COORDINATION_TICK_PORT: tick;
            default: accept;
        }
    }

    state tick {
        packet.extract(hdr.tick);
        transition accept;
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
        // A datagram shorter than a message is routed if it is for another switch, as an answer of
        // seals may be.
        transition select(hdr.udp.destination_port, hdr.udp.length) {
            (COORDINATION_UDP_PORT, 0 .. UDP_BYTES + MESSAGE_BYTES - 1): accept;
            (COORDINATION_UDP_PORT, _): message;
            default: accept;
        }
    }

    state message {
        packet.extract(hdr.message);
        transition select(hdr.message.value_length) {
            0: accept;
            1 .. 16: chunks_1;
            17 .. 32: chunks_2;
            33 .. 48: chunks_3;
            49 .. 64: chunks_4;
            65 .. 80: chunks_5;
            81 .. 96: chunks_6;
            97 .. 112: chunks_7;
            113 .. 128: chunks_8;
            129 .. 1024: long_value;
            default: too_long;
        }
    }

    state too_long {
        verify(false, error.CoordinationValueLength);
        // The line above has rejected; BMv2 takes no explicit `reject`.
        transition accept;
    }

    state long_value {
        packet.extract(hdr.value.next);
        packet.extract(hdr.value.next);
        packet.extract(hdr.value.next);
        packet.extract(hdr.value.next);
        packet.extract(hdr.value.next);
        packet.extract(hdr.value.next);
        packet.extract(hdr.value.next);
        packet.extract(hdr.value.next);
        transition select(hdr.message.value_length) {
            129 .. 256: parts_1;
            257 .. 384: parts_2;
            385 .. 512: parts_3;
            513 .. 640: parts_4;
            641 .. 768: parts_5;
            769 .. 896: parts_6;
            default: parts_7;
        }
    }

    // So many parts follow.
    state parts_7 {
        packet.extract(hdr.rest.next);
        transition parts_6;
    }

    state parts_6 {
        packet.extract(hdr.rest.next);
        transition parts_5;
    }

    state parts_5 {
        packet.extract(hdr.rest.next);
        transition parts_4;
    }

    state parts_4 {
        packet.extract(hdr.rest.next);
        transition parts_3;
    }

    state parts_3 {
        packet.extract(hdr.rest.next);
        transition parts_2;
    }

    state parts_2 {
        packet.extract(hdr.rest.next);
        transition parts_1;
    }

    state parts_1 {
        packet.extract(hdr.rest.next);
        transition accept;
    }

    // So many chunks follow.
    state chunks_8 {
        packet.extract(hdr.value.next);
        transition chunks_7;
    }

    state chunks_7 {
        packet.extract(hdr.value.next);
        transition chunks_6;
    }

    state chunks_6 {
        packet.extract(hdr.value.next);
        transition chunks_5;
    }

    state chunks_5 {
        packet.extract(hdr.value.next);
        transition chunks_4;
    }

    state chunks_4 {
        packet.extract(hdr.value.next);
        transition chunks_3;
    }

    state chunks_3 {
        packet.extract(hdr.value.next);
        transition chunks_2;
    }

    state chunks_2 {
        packet.extract(hdr.value.next);
        transition chunks_1;
    }

    state chunks_1 {
        packet.extract(hdr.value.next);
        transition accept;
    }
}

control CoordinationDeparser(packet_out packet, in coordination_headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.message);
        packet.emit(hdr.value);
        packet.emit(hdr.rest);
    }
}

#endif
