// Estimates how many packets each flow has sent: a count-min sketch of two rows, of which
// snapshots are kept. Packets of flows that sent more than two are marked.

// Made by `stateplane protect` of count_min.p4: change that one, not this.
//
// Store servers need:
//
//     [[replication.class]]
//     id = 70
//     state_length = 12
//     first_lease = "zero"
//     idle_timeout_s = { default = 3600 }
//
// and switches the section [replication], as lab/nat/switch.toml has it, and a
// packet generator, whose frames have the switch's number behind
// 88b5, to begin a snapshot each 50 ms and to keep it within 150 ms:
//
//     [[generators]]
//     port = 508
//     period_ms = 1
//     batch = 3
//     frame = "000000000000 000000000000 88b5 00000001 00000000 00000000 0000 0000000000000000"
//
// What all switches have, the dead ones too, is shown by
//
//     stateplane ctl store --config store.toml sketch --class 70 --keys 1 \
//         --slots 32 --merge add
//
// for first_row, second_row.
//
// An element has the values of first_row, second_row in this order.

#include <core.p4>
#include <v1model.p4>

#define REPLICATION_STATE_BITS 96
// Elements of a snapshot, and the records of two in the switch's table.
#define SNAPSHOT_KEYS 1
#define SNAPSHOT_SLOTS 32
#ifndef REPLICATION_BUCKETS
#define REPLICATION_BUCKETS 256
#endif
// From one snapshot to the next, and the bound, in µs.
#ifndef SNAPSHOT_PERIOD
#define SNAPSHOT_PERIOD 50000
#endif
#ifndef SNAPSHOT_BOUND
#define SNAPSHOT_BOUND 150000
#endif
#define SNAPSHOT_OTHERWISE STALE_DROPS
// The program has names that the library has, too.
#define ethernet_t replication_ethernet_t
#define ipv4_t replication_ipv4_t
#define tcp_t replication_tcp_t
#define udp_t replication_udp_t
#include "snapshot.p4"
#undef ethernet_t
#undef ipv4_t
#undef tcp_t
#undef udp_t

// Parts of the key space, as many as the store has.
#ifndef PROTECTED_SHARDS
#define PROTECTED_SHARDS 4
#endif

// Both copies of each element of first_row, and which of them was written last.
@name("first_row.copies") register<bit<32>>(64) first_row_copies;
@name("first_row.updated") register<bit<1>>(32) first_row_updated;

action first_row_read(inout snapshot_metadata_t snapshot, out bit<32> value, in bit<32> index) {
    first_row_updated.read(snapshot.last, index);
    first_row_copies.read(value, snapshot_copy(index, snapshot.last));
}

action first_row_write(in snapshot_metadata_t snapshot, in bit<32> index, in bit<32> value) {
    first_row_copies.write(snapshot_copy(index, snapshot.active), value);
    first_row_updated.write(index, snapshot.active);
}

// Both copies of each element of second_row, and which of them was written last.
@name("SketchIngress.estimate.second_row.copies") register<bit<16>>(32) second_row_copies;
@name("SketchIngress.estimate.second_row.updated") register<bit<1>>(16) second_row_updated;

action second_row_read(inout snapshot_metadata_t snapshot, out bit<16> value, in bit<32> index) {
    second_row_updated.read(snapshot.last, index);
    second_row_copies.read(value, snapshot_copy(index, snapshot.last));
}

action second_row_write(in snapshot_metadata_t snapshot, in bit<32> index, in bit<16> value) {
    second_row_copies.write(snapshot_copy(index, snapshot.active), value);
    second_row_updated.write(index, snapshot.active);
}

#include <core.p4>
#include <v1model.p4>

struct metadata_t {
    bit<32> first;
    bit<32> second;
    bit<32> least;
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


/* first_row is an array with snapshots: first_row_read and first_row_write. */

control Estimate(inout headers_t hdr, inout metadata_t meta, inout snapshot_metadata_t snapshot) {
    /* second_row is an array with snapshots: second_row_read and second_row_write. */
    bit<32> index;
    bit<16> count;

    action count_first(bit<32> more) {
        hash(
            index,
            HashAlgorithm.crc32,
            32w0,
            { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol },
            32w32
        );
        first_row_read(snapshot, meta.first, index);
        meta.first = meta.first |+| more;
        first_row_write(snapshot, index, meta.first);
    }

    apply {
        count_first(1);
        hash(
            index,
            HashAlgorithm.crc16,
            32w0,
            { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol },
            32w16
        );
        second_row_read(snapshot, count, index);
        count = count |+| 1;
        if (count != 0) second_row_write(snapshot, index, count);
        meta.second = (bit<32>)count;
        meta.least = meta.second;
        if (meta.first < meta.second) {
            meta.least = meta.first;
        }
    }
}

control SketchIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard, inout snapshot_metadata_t snapshot
) {
    Route() route;
    Estimate() estimate;

    apply {
        if (hdr.ipv4.isValid()) {
            estimate.apply(hdr, meta, snapshot);
            if (meta.least > 2) {
                hdr.ipv4.tos = 8;
            }
            route.apply(hdr, standard);
        } else {
            mark_to_drop(standard);
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

// The blocks of the replication library around those above: see p4/lib/snapshot.p4.

// The element of each array, in a frame of the walk.
header snapshot_values_t {
    bit<32> first_row;
    bit<32> second_row;
}

struct protected_headers_t {
    replication_headers_t replication;
    replication_ethernet_t generated;
    snapshot_walk_t walk;
    snapshot_values_t values;
    headers_t own;
}

struct protected_metadata_t {
    replication_metadata_t replication;
    snapshot_metadata_t snapshot;
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
        transition select(
            meta.replication.parse_program,
            meta.replication.arriving,
            standard_metadata.ingress_port
        ) {
            (true, true, SNAPSHOT_PORT): walk;
            (true, true, _): own_headers;
            // Nothing but frames of the walk travels to the store and back.
            (true, _, _): walk;
            default: accept;
        }
    }

    state walk {
        packet.extract(hdr.generated);
        packet.extract(hdr.walk);
        packet.extract(hdr.values);
        transition accept;
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
        // Messages and frames of the walk are not the program's.
        if (!hdr.replication.message.isValid() && !hdr.walk.isValid()) {
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

// What an element of each array was when the snapshot was begun (rule 24).
control SnapshotValues(inout snapshot_metadata_t snapshot, inout snapshot_values_t values) {
    bit<32> first_row;
    bit<16> second_row;

    apply {
        first_row_updated.read(snapshot.last, snapshot.element);
        first_row_copies.read(first_row, snapshot_copy(snapshot.element, ~snapshot.active));
        if (snapshot.last != snapshot.active && RULE_SYNCHRONISE) {
            first_row_write(snapshot, snapshot.element, first_row);
        }
        values.first_row = first_row;
        second_row_updated.read(snapshot.last, snapshot.element);
        second_row_copies.read(second_row, snapshot_copy(snapshot.element, ~snapshot.active));
        if (snapshot.last != snapshot.active && RULE_SYNCHRONISE) {
            second_row_write(snapshot, snapshot.element, second_row);
        }
        values.second_row = (bit<32>)second_row;
    }
}

control ProtectedIngress(
    inout protected_headers_t hdr,
    inout protected_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    SnapshotWalk() walk;
    SnapshotKey() walk_key;
    SnapshotKeep() keep;
    SnapshotAge() age;
    SnapshotValues() frozen;
    ReplicationShard(PROTECTED_SHARDS) shard;
    ReplicationIngressBefore() replication_before;
    ReplicationIngressAfter() replication_after;
    @name(".SketchIngress") SketchIngress() own;
    bool drops;

    apply {
        walk.apply(hdr.walk, meta.snapshot, standard_metadata);
        if (meta.replication.arriving && meta.snapshot.walks) {
            frozen.apply(meta.snapshot, hdr.values);
            meta.replication.known = true;
            walk_key.apply(hdr.walk, 70, meta.replication.key);
            shard.apply(meta.replication);
        }
        replication_before.apply(hdr.replication, meta.replication, standard_metadata);
        if (meta.replication.process && hdr.walk.isValid()) {
            if (meta.replication.found) {
                keep.apply(
                    hdr.walk,
                    meta.replication.value[95:64],
                    meta.replication.slot,
                    meta.replication.write
                );
                if (meta.replication.write) {
                    meta.replication.value = hdr.walk.number
                        ++ hdr.values.first_row
                        ++ hdr.values.second_row;
                }
            }
            mark_to_drop(standard_metadata);
        } else if (meta.replication.process) {
            age.apply(standard_metadata, drops);
            if (drops) {
                mark_to_drop(standard_metadata);
            } else {
                own.apply(hdr.own, meta.own, standard_metadata, meta.snapshot);
            }
        }
        replication_after.apply(hdr.replication, meta.replication, standard_metadata);
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
        packet.emit(hdr.generated);
        packet.emit(hdr.walk);
        packet.emit(hdr.values);
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
