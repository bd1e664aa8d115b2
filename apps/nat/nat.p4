// A NAT whose connections outlive their switch. Mappings are made by the store
// with the first lease of a flow, which takes a port from the shard's range, and
// are held under shared leases: any number of switches may translate packets of
// one mapping at the same time. With NAT_DEPENDENT_MAPPING defined, there is a mapping for each
// remote endpoint, and packets of TCP write what their side of the connection has sent
// (nat_connection.p4). With NAT_FILTERING defined, the control plane may want packets
// from outside filtered: then a packet takes two turns, one by its mapping, and one by its
// session (nat_filter.p4).

#include <core.p4>
#include <v1model.p4>

#ifdef NAT_DEPENDENT_MAPPING
#ifdef NAT_FILTERING
#error With NAT_DEPENDENT_MAPPING packets are filtered by address and port: leave NAT_FILTERING out
#endif
// Address, port, and what the side of the record has sent. A mapping of which only its own remote
// endpoint can make use reaches no other inside host.
#define REPLICATION_STATE_BITS 56
#define NAT_ADDRESS 55:24
#define NAT_PORT 23:8
#define NAT_HAIRPINS false
#else
// Address and port.
#define REPLICATION_STATE_BITS 48
#define NAT_ADDRESS 47:16
#define NAT_PORT 15:0
#define NAT_HAIRPINS true
#endif
#include "replication.p4"
#include "router.p4"
#include "nat_packet.p4"
#include "nat_connection.p4"
#include "nat_filter.p4"

// Number of shards as a power of two: a public port's shard is its top bits
// (rule 22), so the store must be configured with 2 to this number.
#ifndef NAT_SHARD_BITS
#define NAT_SHARD_BITS 2
#endif

// Which turn a packet takes: it arrived; its session lets it out; it is translated on the way
// out and comes in again by the public endpoint that it is for; it is translated on the way in.
#define FIELD_LIST_TURN 2
const bit<8> TURN_ARRIVED = 0;
const bit<8> TURN_LET_OUT = 1;
const bit<8> TURN_HAIRPIN = 2;
const bit<8> TURN_LET_IN = 3;

// Indices of `nat_events`.
const bit<32> NAT_FILTERED = 0;
const bit<32> NAT_EVENTS = 1;

struct headers_t {
    replication_headers_t replication;
    nat_headers_t nat;
}

struct metadata_t {
    replication_metadata_t flow;
    endpoint_t endpoint;
    @field_list(FIELD_LIST_TURN)
    bit<8> turn;
    // The packet takes another turn.
    bool again;
}

parser TopParser(packet_in packet, inout headers_t hdr) {
    NatParser() own;

    state start {
        own.apply(packet, hdr.nat);
        transition accept;
    }
}

control TopVerifyChecksum(inout headers_t hdr) {
    Ipv4VerifyChecksum() ipv4;

    apply {
        ipv4.apply(hdr.nat.ipv4);
    }
}

control NatIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    NatClassify() classify;
    ReplicationShard(1 << NAT_SHARD_BITS) shard;
    ReplicationIngressBefore() replication_before;
    NatTranslate() translate;
    ReplicationIngressAfter() replication_after;
#ifdef NAT_DEPENDENT_MAPPING
    NatConnectionStep() connection;
    bit<8> sent;
#else
    NatSessionOf() session_of;
    bit<128> session;
#endif
    NatSessionStep() step;
    Router() router;
    counter(NAT_EVENTS, CounterType.packets) nat_events;
    bool known = false;
    bool hairpin = false;
    bool outwards;
    bool passes;
    bit<2> filter = FILTER_NOTHING;
    bit<8> class;
    bit<8> state;
    bit<128> mapping = 0;
    bit<16> public_port = 0;

#ifdef NAT_FILTERING
    action endpoint_independent() {
        filter = FILTER_NOTHING;
    }

    action address_dependent() {
        filter = FILTER_ADDRESS;
    }

    action address_and_port_dependent() {
        filter = FILTER_ADDRESS_AND_PORT;
    }

    // Filtering of senders to a public endpoint (RFC 4787 5).
    table filtering {
        actions = { endpoint_independent; address_dependent; address_and_port_dependent; }
        default_action = endpoint_independent();
    }
#endif

    action take(bit<8> turn) {
        meta.turn = turn;
        meta.again = true;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    apply {
#ifdef NAT_FILTERING
        filtering.apply();
#endif
        if (!meta.flow.arriving || meta.turn != TURN_LET_IN) {
            classify.apply(
                hdr.nat,
                standard_metadata,
                meta.flow.arriving,
                NAT_HAIRPINS,
                meta.turn == TURN_HAIRPIN,
                hairpin,
                known,
                mapping,
                public_port
            );
        }
        if (meta.flow.arriving) {
            if (known) {
                meta.flow.known = true;
            } else @unlikely {
                meta.flow.known = false;
            }
            meta.flow.key = mapping;
#ifdef NAT_DEPENDENT_MAPPING
            // Of other packets nothing is written.
            meta.flow.shared = !hdr.nat.tcp.isValid();
#else
            meta.flow.shared = true;
#endif
            shard.apply(meta.flow);
            meta.flow.shard = mapping[127:120] == CLASS_NAT_INBOUND
                ? (bit<16>)public_port[15:16 - NAT_SHARD_BITS]
                : meta.flow.shard;
#ifndef NAT_DEPENDENT_MAPPING
            if (filter != FILTER_NOTHING
                && (meta.turn == TURN_LET_IN
                    || (meta.turn == TURN_ARRIVED
                        && known
                        && mapping[127:120] == CLASS_NAT_OUTBOUND))) {
                session_of.apply(hdr.nat, meta.turn == TURN_ARRIVED, filter, known, session);
                if (known) {
                    meta.flow.known = true;
                    meta.flow.key = session;
                    meta.flow.shared = false;
                    shard.apply(meta.flow);
                }
            }
#endif
        }
        replication_before.apply(hdr.replication, meta.flow, standard_metadata);
        class = meta.flow.key[127:120];
        outwards = hdr.nat.ipv4.source == meta.flow.key[111:80];
        if (meta.flow.process) {
            if (!meta.flow.found) {
                mark_to_drop(standard_metadata);
            } else if (class == CLASS_NAT_SESSION) {
                state = meta.flow.value[47:40];
                step.apply(hdr.nat, outwards, filter, state, passes);
                if (state != meta.flow.value[47:40]) {
                    meta.flow.value[47:40] = state;
                    meta.flow.write = true;
                }
                if (!passes) {
                    nat_events.count(NAT_FILTERED);
                    mark_to_drop(standard_metadata);
                }
            } else {
                meta.endpoint.address = meta.flow.value[NAT_ADDRESS];
                meta.endpoint.port = meta.flow.value[NAT_PORT];
#ifdef NAT_DEPENDENT_MAPPING
                sent = meta.flow.value[7:0];
                connection.apply(hdr.nat, class == CLASS_NAT_OUTBOUND, sent);
                if (sent != meta.flow.value[7:0]) {
                    meta.flow.value[7:0] = sent;
                    meta.flow.write = true;
                }
#endif
                translate.apply(hdr.nat, class, meta.endpoint);
            }
        }
        replication_after.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.forward) {
            // What the store gives back is looked at as what arrives is.
            if (class == CLASS_NAT_SESSION && outwards) {
                take(TURN_LET_OUT);
            } else if (hairpin && class == CLASS_NAT_OUTBOUND) {
                take(TURN_HAIRPIN);
            } else if (filter != FILTER_NOTHING
                && class == CLASS_NAT_INBOUND
                && !hdr.nat.carried_ports.isValid()) {
                take(TURN_LET_IN);
            } else if (hdr.nat.tcp.isValid()
                || hdr.nat.udp.isValid()
                || hdr.nat.carried_ports.isValid()
                || (hdr.nat.icmp.isValid()
                    && (hdr.nat.icmp.type == ICMP_ECHO || hdr.nat.icmp.type == ICMP_ECHO_REPLY))) {
                router.apply(hdr.nat.ethernet, hdr.nat.ipv4, standard_metadata);
            } else {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

// Brings a packet back that takes another turn. It waits for nothing.
@side_effects_allowed
control NatEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply {
        if (meta.again) {
            recirculate_preserving_field_list(FIELD_LIST_TURN);
        }
    }
}

control TopComputeChecksum(inout headers_t hdr) {
    Ipv4ComputeChecksum() ipv4;

    apply {
        ipv4.apply(hdr.nat.ipv4);
    }
}

control TopDeparser(packet_out packet, in headers_t hdr) {
    NatDeparser() nat;

    apply {
        nat.apply(packet, hdr.nat);
    }
}

#define PROGRAM_PARSER TopParser
#define PROGRAM_VERIFY_CHECKSUM TopVerifyChecksum
#define PROGRAM_INGRESS NatIngress
#define PROGRAM_EGRESS NatEgress
#define PROGRAM_COMPUTE_CHECKSUM TopComputeChecksum
#define PROGRAM_DEPARSER TopDeparser
#include "replicated_switch.p4"
