// The options of TCP, and how many bytes of payload follow TCP and UDP in a datagram: for programs
// that look into payloads.

#ifndef STATEPLANE_PAYLOAD_P4
#define STATEPLANE_PAYLOAD_P4

#include "headers.p4"
#include "transport.p4"

header tcp_options_t {
    varbit<320> bytes;
}

struct payload_headers_t {
    transport_headers_t own;
    tcp_options_t options;
}

// `bytes` is 0 without TCP or UDP, and if lengths contradict each other.
parser PayloadParser(packet_in packet, out payload_headers_t hdr, out bit<16> bytes) {
    TransportParser() own;
    bit<16> beyond;

    state start {
        bytes = 0;
        own.apply(packet, hdr.own);
        transition select(hdr.own.tcp.isValid(), hdr.own.udp.isValid()) {
            (true, _): tcp;
            (_, true): udp;
            default: accept;
        }
    }

    state tcp {
        transition select(hdr.own.tcp.data_offset) {
            // Less than the header's own 20 bytes.
            0 &&& 0xc: accept;
            4: accept;
            5: tcp_payload;
            default: tcp_options;
        }
    }

    state tcp_options {
        packet.extract(hdr.options, (bit<32>)(hdr.own.tcp.data_offset - 5) << 5);
        transition tcp_payload;
    }

    state tcp_payload {
        bytes = hdr.own.ipv4.total_length |-| IPV4_BYTES
            |-| ((bit<16>)hdr.own.tcp.data_offset << 2);
        transition accept;
    }

    state udp {
        // More than 0 if the datagram goes on beyond IPv4's length.
        beyond = hdr.own.udp.length |-| (hdr.own.ipv4.total_length |-| IPV4_BYTES);
        transition select(beyond) {
            0: udp_payload;
            default: accept;
        }
    }

    state udp_payload {
        bytes = hdr.own.udp.length |-| UDP_BYTES;
        transition accept;
    }
}

control PayloadDeparser(packet_out packet, in payload_headers_t hdr) {
    apply {
        packet.emit(hdr.own.ethernet);
        packet.emit(hdr.own.ipv4);
        packet.emit(hdr.own.tcp);
        packet.emit(hdr.options);
        packet.emit(hdr.own.udp);
    }
}

#endif
