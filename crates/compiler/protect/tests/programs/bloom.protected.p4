// Lets packets in whose source was asked for before: a Bloom filter of destinations that hosts
// inside have sent to, of which snapshots are kept. The first packet to each destination is
// counted and told to the control plane.

// Made by `stateplane protect` of bloom.p4: change that one, not this.
//
// Store servers need:
//
//     [replication]
//     term_ms = 500
//     backing_ms = 800
//
//     [[replication.class]]
//     id = 71
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
//     batch = 6
//     frame = "000000000000 000000000000 88b5 00000001 00000000 00000000 0000 0000000000000000"
//
// What all switches have, the dead ones too, is shown by
//
//     stateplane ctl store --config store.toml sketch --class 71 --keys 1 \
//         --slots 64 --merge add
//
// for new_addresses.
//
//     stateplane ctl store --config store.toml sketch --class 71 --keys 1 \
//         --slots 64 --merge or
//
// for asked.
//
// An element has the values of asked, new_addresses in this order.

#include <core.p4>
#include <v1model.p4>

#define REPLICATION_STATE_BITS 96
// Elements of a snapshot, and the records of two in the switch's table.
#define SNAPSHOT_KEYS 1
#define SNAPSHOT_SLOTS 64
#ifndef REPLICATION_BUCKETS
#define REPLICATION_BUCKETS 512
#endif
// From one snapshot to the next, and the bound, in µs.
#ifndef SNAPSHOT_PERIOD
#define SNAPSHOT_PERIOD 50000
#endif
#ifndef SNAPSHOT_BOUND
#define SNAPSHOT_BOUND 150000
#endif
#define SNAPSHOT_OTHERWISE STALE_GOES_ON
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

// Both copies of each element of asked, and which of them was written last.
@name("FilterIngress.asked.copies") register<bit<1>>(128) asked_copies;
@name("FilterIngress.asked.updated") register<bit<1>>(64) asked_updated;

action asked_read(inout snapshot_metadata_t snapshot, out bit<1> value, in bit<32> index) {
    asked_updated.read(snapshot.last, index);
    asked_copies.read(value, snapshot_copy(index, snapshot.last));
}

action asked_write(in snapshot_metadata_t snapshot, in bit<32> index, in bit<1> value) {
    asked_copies.write(snapshot_copy(index, snapshot.active), value);
    asked_updated.write(index, snapshot.active);
}

// Both copies of each element of new_addresses, and which of them was written last.
@name("FilterIngress.new_addresses.copies") register<bit<32>>(2) new_addresses_copies;
@name("FilterIngress.new_addresses.updated") register<bit<1>>(1) new_addresses_updated;

action new_addresses_read(inout snapshot_metadata_t snapshot, out bit<32> value, in bit<32> index) {
    new_addresses_updated.read(snapshot.last, index);
    new_addresses_copies.read(value, snapshot_copy(index, snapshot.last));
}

action new_addresses_write(in snapshot_metadata_t snapshot, in bit<32> index, in bit<32> value) {
    new_addresses_copies.write(snapshot_copy(index, snapshot.active), value);
    new_addresses_updated.write(index, snapshot.active);
}

#include <core.p4>
#include <v1model.p4>

struct metadata_t {
    bit<1> known;
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


struct asked_t {
    bit<32> address;
}

@side_effects_allowed
control FilterIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard, inout snapshot_metadata_t snapshot
) {
    Route() route;
    // Addresses by the bits of two hashes.
    /* asked is an array with snapshots: asked_read and asked_write. */
    /* new_addresses is an array with snapshots: new_addresses_read and new_addresses_write. */
    bit<32> address;
    bit<32> one;
    bit<32> other;
    bit<1> first;
    bit<1> second;
    bit<32> number;

    apply {
        if (!hdr.ipv4.isValid()) {
            mark_to_drop(standard);
            return;
        }
        address = standard.ingress_port == 1 ? hdr.ipv4.dst : hdr.ipv4.src;
        hash(one, HashAlgorithm.crc32, 32w0, { address }, 32w64);
        hash(other, HashAlgorithm.crc16, 32w0, { address }, 32w64);
        asked_read(snapshot, first, one);
        asked_read(snapshot, second, other);
        meta.known = first & second;
        if (standard.ingress_port == 1) {
            if (meta.known == 0) {
                asked_write(snapshot, one, 1);
                asked_write(snapshot, other, 1);
                new_addresses_read(snapshot, number, 0);
                new_addresses_write(snapshot, 0, number + 1);
                digest<asked_t>(1, { address });
            }
            route.apply(hdr, standard);
        } else if (meta.known == 1) {
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
    bit<32> asked;
    bit<32> new_addresses;
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
    bit<1> asked;
    bit<32> new_addresses;

    apply {
        asked_updated.read(snapshot.last, snapshot.element);
        asked_copies.read(asked, snapshot_copy(snapshot.element, ~snapshot.active));
        if (snapshot.last != snapshot.active && RULE_SYNCHRONISE) {
            asked_write(snapshot, snapshot.element, asked);
        }
        values.asked = (bit<32>)asked;
        new_addresses_updated.read(snapshot.last, snapshot.element);
        new_addresses_copies.read(new_addresses, snapshot_copy(snapshot.element, ~snapshot.active));
        if (snapshot.last != snapshot.active && RULE_SYNCHRONISE) {
            new_addresses_write(snapshot, snapshot.element, new_addresses);
        }
        values.new_addresses = new_addresses;
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
    @name(".FilterIngress") FilterIngress() own;
    bool drops;

    apply {
        walk.apply(hdr.walk, meta.snapshot, standard_metadata);
        if (meta.replication.arriving && meta.snapshot.walks) {
            frozen.apply(meta.snapshot, hdr.values);
            meta.replication.known = true;
            walk_key.apply(hdr.walk, 71, meta.replication.key);
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
                        ++ hdr.values.asked
                        ++ hdr.values.new_addresses;
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
