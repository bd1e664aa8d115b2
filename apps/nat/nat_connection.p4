// Notes of each side of a TCP connection on what it has sent, where mappings name the remote
// endpoint too (NAT_DEPENDENT_MAPPING). Packets from inside use the outbound record, those from outside the
// inbound one, and each writes what its own side has sent; by both the store judges for how long to
// keep the mapping (docs/replication-protocol.md, rules 28 and 29; RFC 5382 REQ-5).

#ifndef STATEPLANE_NAT_CONNECTION_P4
#define STATEPLANE_NAT_CONNECTION_P4

#include "nat_packet.p4"

// Bits of the last byte of a record's state; the store knows them by these numbers. A record that
// the store makes has none.
// Anything; only the inbound record says it.
const bit<8> SENT_ANY = 0x01;
const bit<8> SENT_ACK = 0x02;
const bit<8> SENT_FIN = 0x04;
// A reset, perhaps a forged one (RFC 5382 5), and nothing since.
const bit<8> SENT_RESET = 0x08;

// A packet's effect on what its side has sent. After its FIN or reset a SYN begins anew; another one
// is late, or is answered by the other side with an ACK, and by that with a reset.
control NatConnectionStep(in nat_headers_t hdr, in bool outwards, inout bit<8> sent) {
    apply {
        if (hdr.tcp.isValid()) {
            if ((hdr.tcp.flags & TCP_RST) != 0) {
                sent = sent | SENT_RESET;
            } else {
                if ((hdr.tcp.flags & TCP_SYN) != 0 && (sent & (SENT_FIN | SENT_RESET)) != 0) {
                    sent = 0;
                }
                sent = sent & ~SENT_RESET;
                if ((hdr.tcp.flags & TCP_ACK) != 0) {
                    sent = sent | SENT_ACK;
                }
                if ((hdr.tcp.flags & TCP_FIN) != 0) {
                    sent = sent | SENT_FIN;
                }
            }
            if (!outwards) {
                sent = sent | SENT_ANY;
            }
        }
    }
}

#endif
