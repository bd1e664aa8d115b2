// A stateful firewall whose connections outlive their switch. Connections are opened
// from inside only; what comes from outside passes if it belongs to one.

#include <core.p4>
#include <v1model.p4>

#define REPLICATION_STATE_BITS 8
#include "replication.p4"
#include "router.p4"
#include "ipv4.p4"
#include "transport.p4"

#ifndef FIREWALL_SHARDS
#define FIREWALL_SHARDS 4
#endif

// A TCP connection that is half open, or that both sides have ended, is forgotten
// after so many µs without a change of state (RFC 5382 REQ-5: not less than 4 min).
#ifndef FIREWALL_TRANSITORY
#define FIREWALL_TRANSITORY 240000000
#endif

const bit<8> CLASS_FIREWALL = 4;

// State of a connection. CLOSED, which is no connection, is the store's zero.
const bit<8> CONNECTION_CLOSED = 0;
// A SYN came from inside.
const bit<8> CONNECTION_OPENING = 1;
// It was answered with SYN and ACK.
const bit<8> CONNECTION_ANSWERED = 2;
const bit<8> CONNECTION_OPEN = 3;
const bit<8> CONNECTION_PHASE = 0x07;
// Added: that side has sent its FIN.
const bit<8> CONNECTION_FIN_INSIDE = 0x08;
const bit<8> CONNECTION_FIN_OUTSIDE = 0x10;
const bit<8> CONNECTION_ENDED = 0x18;

// Indices of `firewall_events`.
const bit<32> FIREWALL_NOT_FOLLOWED = 0;
const bit<32> FIREWALL_OPENED_OUTSIDE = 1;
const bit<32> FIREWALL_NO_CONNECTION = 2;
const bit<32> FIREWALL_TIMED_OUT = 3;
const bit<32> FIREWALL_EVENTS = 4;

struct headers_t {
    replication_headers_t replication;
    transport_headers_t own;
}

struct metadata_t {
    replication_metadata_t flow;
}

parser FirewallParser(packet_in packet, inout headers_t hdr) {
    TransportParser() own;

    state start {
        own.apply(packet, hdr.own);
        transition accept;
    }
}

control FirewallVerifyChecksum(inout headers_t hdr) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

// A packet's effect on the state of its connection, and whether it passes.
control FirewallStep(
    in transport_headers_t hdr,
    in bool outside,
    inout bit<8> state,
    out bool passes
) {
    bit<8> phase;
    bit<12> handshake;

    apply {
        phase = state & CONNECTION_PHASE;
        handshake = hdr.tcp.flags & (TCP_SYN | TCP_ACK);
        passes = true;
        if (hdr.udp.isValid()) {
            if (!outside) {
                state = CONNECTION_OPEN;
            } else if (state == CONNECTION_CLOSED) {
                passes = false;
            }
        } else if ((hdr.tcp.flags & TCP_RST) != 0) {
            passes = state != CONNECTION_CLOSED;
            state = CONNECTION_CLOSED;
        } else if (handshake == TCP_SYN) {
            // Within an open connection it is for the host to challenge (RFC 5961 4).
            if (outside) {
                passes = false;
            } else if (state == CONNECTION_CLOSED
                || (state & CONNECTION_ENDED) == CONNECTION_ENDED) {
                state = CONNECTION_OPENING;
            }
        } else if (state == CONNECTION_CLOSED) {
            passes = false;
        } else if (phase == CONNECTION_OPENING) {
            if (outside && handshake == (TCP_SYN | TCP_ACK)) {
                state = CONNECTION_ANSWERED;
            } else {
                passes = false;
            }
        } else {
            if (phase == CONNECTION_ANSWERED && !outside && handshake == TCP_ACK) {
                state = (state & ~CONNECTION_PHASE) | CONNECTION_OPEN;
            }
            if ((hdr.tcp.flags & TCP_FIN) != 0) {
                if (outside) {
                    state = state | CONNECTION_FIN_OUTSIDE;
                } else {
                    state = state | CONNECTION_FIN_INSIDE;
                }
            }
        }
    }
}

control FirewallIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    TransportPorts() ports;
    ReplicationShard(FIREWALL_SHARDS) shard;
    ReplicationIngressBefore() replication_before;
    FirewallStep() step;
    ReplicationIngressAfter() replication_after;
    Router() router;
    // Of the slot's connection: the claim, and since when this switch has seen no
    // change of state. A switch that takes a connection over counts anew, since
    // switches have no common clock.
    @unit["replication_bucket", REPLICATION_WAYS]
    register<bit<80>>(REPLICATION_SLOTS) firewall_since;
    counter(FIREWALL_EVENTS, CounterType.packets) firewall_events;
    bit<16> source_port;
    bit<16> destination_port;
    bit<1> side = 0;
    bool outside;
    bool passes;
    bit<80> since;
    bit<8> state;

    action inside() {
        side = 1;
    }

    action not_inside() {
        side = 0;
    }

    // Which ports face inside.
    table interfaces {
        key = { standard_metadata.ingress_port: exact @name("ingress_port"); }
        actions = { inside; not_inside; }
        default_action = not_inside();
        size = 64;
    }

    apply {
        ports.apply(hdr.own, source_port, destination_port);
        if (meta.flow.arriving) {
            if ((hdr.own.tcp.isValid() || hdr.own.udp.isValid())
                && standard_metadata.checksum_error == 0) {
                interfaces.apply();
                if (side == 1) {
                    meta.flow.key = CLASS_FIREWALL ++ hdr.own.ipv4.protocol ++ hdr.own.ipv4.source
                        ++ hdr.own.ipv4.destination ++ source_port ++ destination_port ++ 16w0;
                } else {
                    meta.flow.key = CLASS_FIREWALL ++ hdr.own.ipv4.protocol
                        ++ hdr.own.ipv4.destination ++ hdr.own.ipv4.source ++ destination_port
                        ++ source_port ++ 16w0;
                }
                if (side == 0
                    && hdr.own.tcp.isValid()
                    && (hdr.own.tcp.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN) @unlikely {
                    // Never let in, whatever the state: a flood asks the store nothing.
                    firewall_events.count(FIREWALL_OPENED_OUTSIDE);
                } else {
                    meta.flow.known = true;
                }
            } else @unlikely {
                firewall_events.count(FIREWALL_NOT_FOLLOWED);
            }
        }
        shard.apply(meta.flow);
        replication_before.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.process) {
            passes = false;
            if (meta.flow.found && (hdr.own.tcp.isValid() || hdr.own.udp.isValid())) {
                // The key has the endpoint inside first.
                outside = hdr.own.ipv4.source != meta.flow.key[111:80]
                    || source_port != meta.flow.key[47:32];
                state = meta.flow.value;
                firewall_since.read(since, meta.flow.slot.index);
                if (since[79:48] != meta.flow.slot.claim) {
                    since = meta.flow.slot.claim ++ meta.flow.now;
                    firewall_since.write(meta.flow.slot.index, since);
                }
                if (hdr.own.tcp.isValid()
                    && state != CONNECTION_CLOSED
                    && (state[2:0] != CONNECTION_OPEN[2:0]
                        || (state & CONNECTION_ENDED) == CONNECTION_ENDED)
                    && meta.flow.now - since[47:0] > FIREWALL_TRANSITORY) {
                    state = CONNECTION_CLOSED;
                    firewall_events.count(FIREWALL_TIMED_OUT);
                }
                step.apply(hdr.own, outside, state, passes);
                if (state != meta.flow.value) {
                    meta.flow.value = state;
                    meta.flow.write = true;
                    firewall_since.write(
                        meta.flow.slot.index,
                        meta.flow.slot.claim ++ meta.flow.now
                    );
                }
                if (!passes) {
                    firewall_events.count(FIREWALL_NO_CONNECTION);
                }
            }
            if (!passes) {
                mark_to_drop(standard_metadata);
            }
        }
        replication_after.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.forward) {
            // What the store gives back is looked at as what arrives is.
            if (hdr.own.tcp.isValid() || hdr.own.udp.isValid()) {
                router.apply(hdr.own.ethernet, hdr.own.ipv4, standard_metadata);
            } else {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control FirewallComputeChecksum(inout headers_t hdr) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control FirewallDeparser(packet_out packet, in headers_t hdr) {
    TransportDeparser() own;

    apply {
        own.apply(packet, hdr.own);
    }
}

#define PROGRAM_PARSER FirewallParser
#define PROGRAM_VERIFY_CHECKSUM FirewallVerifyChecksum
#define PROGRAM_INGRESS FirewallIngress
#define PROGRAM_COMPUTE_CHECKSUM FirewallComputeChecksum
#define PROGRAM_DEPARSER FirewallDeparser
#include "replicated_switch.p4"
