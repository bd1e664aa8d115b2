// Which packets from outside a NAT lets in (RFC 4787 5, RFC 5382 4.3): those of remote hosts
// that the inside endpoint has sent to. What is sent leaves a session, which is a flow of its
// own: its key names the inside endpoint and, as far as the filter asks for it, the remote one;
// its state is how far the connection is, by which the store knows for how long to keep it
// (RFC 5382 REQ-5).

#ifndef STATEPLANE_NAT_FILTER_P4
#define STATEPLANE_NAT_FILTER_P4

#include "nat_packet.p4"

// Fields by which senders from outside are told apart.
const bit<2> FILTER_NOTHING = 0;
const bit<2> FILTER_ADDRESS = 1;
const bit<2> FILTER_ADDRESS_AND_PORT = 2;

// State of a session, in the first byte. NONE, by which nothing comes in, is the store's zero.
const bit<8> SESSION_NONE = 0;
// Inside has sent.
const bit<8> SESSION_BEGUN = 1;
// Of TCP: outside has answered.
const bit<8> SESSION_ANSWERED = 2;
// Of TCP, inside has answered that; otherwise inside has sent.
const bit<8> SESSION_OPEN = 3;
// Of TCP: a side has sent a reset, perhaps a forged one (RFC 5382 5).
const bit<8> SESSION_RESET = 4;
const bit<8> SESSION_PHASE = 0x07;
// Added: that side has sent its FIN.
const bit<8> SESSION_FIN_INSIDE = 0x08;
const bit<8> SESSION_FIN_OUTSIDE = 0x10;
const bit<8> SESSION_ENDED = 0x18;

// Names the session of a packet before it is translated on the way out, or after it was on the
// way in. There is one for each packet with ports and for echo requests and their replies, not
// for ICMP errors: a filter does not ask who sends these (RFC 5508 REQ-3).
control NatSessionOf(
    in nat_headers_t hdr,
    in bool outwards,
    in bit<2> filter,
    out bool known,
    out bit<128> session
) {
    bit<32> inside;
    bit<16> inside_port = 0;
    bit<32> remote;
    bit<16> remote_port = 0;

    apply {
        inside = hdr.ipv4.destination;
        remote = hdr.ipv4.source;
        if (outwards) {
            inside = hdr.ipv4.source;
            remote = hdr.ipv4.destination;
        }
        known = true;
        if (hdr.tcp.isValid()) {
            inside_port = outwards ? hdr.tcp.source_port : hdr.tcp.destination_port;
            remote_port = outwards ? hdr.tcp.destination_port : hdr.tcp.source_port;
        } else if (hdr.udp.isValid()) {
            inside_port = outwards ? hdr.udp.source_port : hdr.udp.destination_port;
            remote_port = outwards ? hdr.udp.destination_port : hdr.udp.source_port;
        } else if (hdr.icmp.isValid() && !hdr.carried_ipv4.isValid()) {
            inside_port = hdr.icmp.identifier;
        } else {
            known = false;
        }
        if (filter != FILTER_ADDRESS_AND_PORT) {
            remote_port = 0;
        }
        session = CLASS_NAT_SESSION ++ hdr.ipv4.protocol ++ inside ++ inside_port ++ remote
            ++ remote_port ++ 16w0;
    }
}

// A packet's effect on the state of its session, and whether it passes.
control NatSessionStep(
    in nat_headers_t hdr,
    in bool outwards,
    in bit<2> filter,
    inout bit<8> state,
    out bool passes
) {
    bit<8> phase;

    apply {
        phase = state & SESSION_PHASE;
        passes = outwards || state != SESSION_NONE;
        if (passes) {
            if (!hdr.tcp.isValid() || filter != FILTER_ADDRESS_AND_PORT) {
                // Several connections may have one session.
                state = SESSION_OPEN;
            } else if ((hdr.tcp.flags & TCP_RST) != 0) {
                state = outwards && state == SESSION_NONE ? SESSION_BEGUN : SESSION_RESET;
            } else if ((hdr.tcp.flags & TCP_SYN) != 0) {
                if (!outwards) {
                    // With ACK or, of a simultaneous open (RFC 5382 REQ-2), without.
                    if (phase == SESSION_BEGUN) {
                        state = SESSION_ANSWERED;
                    }
                } else if (phase == SESSION_NONE
                    || phase == SESSION_RESET
                    || (state & SESSION_ENDED) == SESSION_ENDED) {
                    state = SESSION_BEGUN;
                }
            } else {
                if (phase == SESSION_NONE) {
                    state = SESSION_BEGUN;
                } else if (phase == SESSION_BEGUN && !outwards) {
                    state = SESSION_ANSWERED;
                } else if (phase == SESSION_ANSWERED && outwards) {
                    state = (state & ~SESSION_PHASE) | SESSION_OPEN;
                }
                if ((hdr.tcp.flags & TCP_FIN) != 0) {
                    state = state | (outwards ? SESSION_FIN_INSIDE : SESSION_FIN_OUTSIDE);
                }
            }
        }
    }
}

#endif
