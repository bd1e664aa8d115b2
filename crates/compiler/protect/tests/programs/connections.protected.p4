// Lets connections be opened from port 1 only, and follows each until a RST.

// Made by `stateplane protect` of connections.p4: change that one, not this.
//
// Store servers need:
//
//     [[replication.class]]
//     id = 64
//     state_length = 1
//     first_lease = "zero"
//
// and switches the section [replication], as lab/nat/switch.toml has it.

#include <core.p4>
#include <v1model.p4>

#define REPLICATION_STATE_BITS 8
// The program has names that the library has, too.
#define ethernet_t replication_ethernet_t
#define ipv4_t replication_ipv4_t
#define tcp_t replication_tcp_t
#define udp_t replication_udp_t
#include "replication.p4"
#undef ethernet_t
#undef ipv4_t
#undef tcp_t
#undef udp_t

// Parts of the key space, as many as the store has.
#ifndef PROTECTED_SHARDS
#define PROTECTED_SHARDS 4
#endif

// What is replicated of a flow.
struct flow_state_t {
    bit<2> connection;
}

#include <core.p4>
#include <v1model.p4>

#define CONNECTIONS 4096

const bit<2> CLOSED = 0;
const bit<2> OPENING = 1;
const bit<2> OPEN = 2;

struct metadata_t {
    bit<32> index;
}

// What the programs of these tests share: headers, parser, checksum and a router.

const bit<16> TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> kind;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> length;
    bit<16> id;
    bit<16> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header tcp_t {
    bit<16> sport;
    bit<16> dport;
    bit<32> seq;
    bit<32> ack_number;
    bit<10> offset;
    bit<1> urg;
    bit<1> ack;
    bit<1> psh;
    bit<1> rst;
    bit<1> syn;
    bit<1> fin;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header udp_t {
    bit<16> sport;
    bit<16> dport;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    tcp_t tcp;
    udp_t udp;
}

parser CommonParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            PROTOCOL_TCP: tcp;
            PROTOCOL_UDP: udp;
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

#define IPV4_FIELDS { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length, \
    hdr.ipv4.id, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, \
    hdr.ipv4.dst }

control CommonVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(
            hdr.ipv4.isValid(),
            IPV4_FIELDS,
            hdr.ipv4.checksum,
            HashAlgorithm.csum16
        );
    }
}

control CommonCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(
            hdr.ipv4.isValid(),
            IPV4_FIELDS,
            hdr.ipv4.checksum,
            HashAlgorithm.csum16
        );
    }
}

control CommonDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

control Route(inout headers_t hdr, inout standard_metadata_t standard) {
    action drop() {
        mark_to_drop(standard);
    }

    action forward(bit<48> mac, bit<9> port) {
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard.egress_spec = port;
    }

    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop();
        size = 256;
    }

    apply {
        routes.apply();
    }
}


control ConnectionIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard, inout flow_state_t flow_state
) {
    Route() route;
    /* connection is part of flow_state_t. */
    bit<2> phase;

    action find(bit<32> inside, bit<32> outside, bit<16> own, bit<16> others) {
        hash(
            meta.index,
            HashAlgorithm.crc32,
            32w0,
            { inside, outside, own, others },
            (bit<32>)CONNECTIONS
        );
    }

    apply {
        if (!hdr.tcp.isValid()) {
            mark_to_drop(standard);
            return;
        }
        if (standard.ingress_port == 1) {
            find(hdr.ipv4.src, hdr.ipv4.dst, hdr.tcp.sport, hdr.tcp.dport);
        } else {
            find(hdr.ipv4.dst, hdr.ipv4.src, hdr.tcp.dport, hdr.tcp.sport);
        }
        phase = flow_state.connection;
        if (hdr.tcp.rst == 1) {
            flow_state.connection = CLOSED;
        } else if (standard.ingress_port == 1) {
            if (phase == CLOSED && hdr.tcp.syn == 1) {
                flow_state.connection = OPENING;
                phase = OPENING;
            }
        } else if (phase == OPENING && hdr.tcp.syn == 1 && hdr.tcp.ack == 1) {
            flow_state.connection = OPEN;
            phase = OPEN;
        } else if (phase != OPEN) {
            phase = CLOSED;
        }
        if (phase == CLOSED) {
            mark_to_drop(standard);
        } else {
            route.apply(hdr, standard);
        }
    }
}

control NoEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    apply {}
}

// The blocks of the replication library around those above: see p4/lib/replication.p4.

// Decisions of ingress about a packet that waits, in front of it on its path.
header flow_resume_t {
    bit<9> egress_spec;
    bit<16> mcast_grp;
    bit<7> unused_bits;
}

struct protected_headers_t {
    replication_headers_t replication;
    flow_resume_t resume;
    headers_t own;
}

struct protected_metadata_t {
    replication_metadata_t replication;
    metadata_t own;
}

parser ProtectedParser(
    packet_in packet,
    out protected_headers_t hdr,
    inout protected_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationParser() replication;
    @name(".CommonParser") CommonParser() own;

    state start {
        replication.apply(packet, hdr.replication, meta.replication, standard_metadata);
        transition select(meta.replication.parse_program, meta.replication.arriving) {
            (true, false): came_back;
            (true, _): own_headers;
            default: accept;
        }
    }

    state came_back {
        transition select(hdr.replication.message.type) {
            TYPE_WRITE_REPLY: resume;
            TYPE_RENEW_REPLY: resume;
            default: own_headers;
        }
    }

    state resume {
        packet.extract(hdr.resume);
        transition own_headers;
    }

    state own_headers {
        own.apply(packet, hdr.own, meta.own, standard_metadata);
        transition accept;
    }
}

control ProtectedVerifyChecksum(inout protected_headers_t hdr, inout protected_metadata_t meta) {
    ReplicationVerifyChecksum() replication;
    @name(".CommonVerify") CommonVerify() own;

    apply {
        replication.apply(hdr.replication);
        // What came with a message was looked at when it arrived.
        if (!hdr.replication.message.isValid()) {
            own.apply(hdr.own, meta.own);
        }
    }
}

control ProtectedComputeChecksum(inout protected_headers_t hdr, inout protected_metadata_t meta) {
    ReplicationComputeChecksum() replication;
    @name(".CommonCompute") CommonCompute() own;

    apply {
        replication.apply(hdr.replication);
        own.apply(hdr.own, meta.own);
    }
}

// To which flow a packet belongs, as it arrives.
control FlowKey(
    in headers_t hdr,
    in metadata_t meta,
    in standard_metadata_t standard,
    inout replication_metadata_t flow
) {
    ReplicationShard(PROTECTED_SHARDS) flow_shard;

    apply {
        flow.known = hdr.ipv4.isValid()
            && hdr.tcp.isValid();
        bit<120> one_way = (bit<120>)((hdr.ipv4.src) ++ (hdr.ipv4.dst) ++ (hdr.tcp.sport) ++ (hdr.tcp.dport));
        bit<120> other_way = (bit<120>)((hdr.ipv4.dst) ++ (hdr.ipv4.src) ++ (hdr.tcp.dport) ++ (hdr.tcp.sport));
        // Both directions of a flow have one key.
        if (other_way < one_way) {
            one_way = other_way;
        }
        flow.key = 8w64 ++ one_way;
        flow_shard.apply(flow);
    }
}

control ProtectedIngress(
    inout protected_headers_t hdr,
    inout protected_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    FlowKey() flow_key;
    ReplicationIngressBefore() replication_before;
    ReplicationIngressAfter() replication_after;
    @name(".ConnectionIngress") ConnectionIngress() own;
    // Packets dropped because they wrote state without belonging to a flow.
    counter(1, CounterType.packets) state_without_flow;
    flow_state_t flow_state;
    bit<8> before;
    bit<8> after;

    apply {
        if (meta.replication.arriving
            && standard_metadata.parser_error == error.NoError
            && standard_metadata.checksum_error == 0) {
            flow_key.apply(hdr.own, meta.own, standard_metadata, meta.replication);
        }
        replication_before.apply(hdr.replication, meta.replication, standard_metadata);
        if (meta.replication.process) {
            // As long as it was when it arrived, also if it comes from the store.
            standard_metadata.packet_length = (bit<32>)meta.replication.inner_length;
            before = 0;
            if (meta.replication.found) {
                before = meta.replication.value;
            }
            flow_state.connection = before[1:0];
            own.apply(hdr.own, meta.own, standard_metadata, flow_state);
            after = 6w0 ++ flow_state.connection;
            if (after != before) {
                if (meta.replication.found) {
                    meta.replication.value = after;
                    meta.replication.write = true;
                } else {
                    state_without_flow.count(0);
                    mark_to_drop(standard_metadata);
                }
            }
            if (meta.replication.found
                && (meta.replication.write
                    || meta.replication.behind
                    || meta.replication.slot.sequence != meta.replication.slot.acknowledged)
                && standard_metadata.egress_spec != 511) {
                hdr.resume.setValid();
                hdr.resume.egress_spec = standard_metadata.egress_spec;
                hdr.resume.mcast_grp = standard_metadata.mcast_grp;
                hdr.resume.unused_bits = 0;
                meta.replication.inner_length = meta.replication.inner_length + 4;
            }
        }
        replication_after.apply(hdr.replication, meta.replication, standard_metadata);
        if (meta.replication.release && hdr.resume.isValid()) {
            standard_metadata.egress_spec = hdr.resume.egress_spec;
            standard_metadata.mcast_grp = hdr.resume.mcast_grp;
            hdr.resume.setInvalid();
        }
    }
}

control ProtectedEgress(
    inout protected_headers_t hdr,
    inout protected_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationEgress() replication;
    @name(".NoEgress") NoEgress() own;

    apply {
        replication.apply(hdr.replication, meta.replication, standard_metadata);
        // Messages are not the program's.
        if (!hdr.replication.udp.isValid()) {
            own.apply(hdr.own, meta.own, standard_metadata);
        }
    }
}

control ProtectedDeparser(packet_out packet, in protected_headers_t hdr) {
    ReplicationDeparser() replication;
    @name(".CommonDeparser") CommonDeparser() own;

    apply {
        replication.apply(packet, hdr.replication);
        packet.emit(hdr.resume);
        own.apply(packet, hdr.own);
    }
}

V1Switch(
    ProtectedParser(),
    ProtectedVerifyChecksum(),
    ProtectedIngress(),
    ProtectedEgress(),
    ProtectedComputeChecksum(),
    ProtectedDeparser()
) main;
