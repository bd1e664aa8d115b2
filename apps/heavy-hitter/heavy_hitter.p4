// Finds the heavy flows of each tenant: a count-min sketch for each VLAN, three rows of
// 64 counters of 32 bits (RedPlane §6). Packets do not wait: snapshots of the sketches
// are kept, and what is lost with a switch was counted within a bound ε.

#include <core.p4>
#include <v1model.p4>

// Number of a snapshot, and an element of each row.
#define REPLICATION_STATE_BITS 128
#include "replication.p4"

// Tenants, and counters in a row: a power of two up to 64.
#ifndef SNAPSHOT_KEYS
#define SNAPSHOT_KEYS 16
#endif
#ifndef SNAPSHOT_SLOTS
#define SNAPSHOT_SLOTS 64
#endif
#include "snapshot.p4"
#include "router.p4"
#include "ipv4.p4"
#include "transport.p4"

#ifndef HEAVY_SHARDS
#define HEAVY_SHARDS 4
#endif

const bit<8> CLASS_HEAVY = 13;

const bit<16> ETHERTYPE_VLAN = 0x8100;

// IEEE 802.1Q.
header vlan_t {
    bit<3> priority;
    bit<1> drop_eligible;
    bit<12> id;
    bit<16> ether_type;
}

// The element of each row, in a frame of the walk.
header heavy_values_t {
    bit<32> first;
    bit<32> second;
    bit<32> third;
}

struct headers_t {
    replication_headers_t replication;
    ethernet_t ethernet;
    vlan_t vlan;
    ipv4_t ipv4;
    tcp_t tcp;
    udp_t udp;
    snapshot_walk_t walk;
    heavy_values_t values;
}

struct metadata_t {
    replication_metadata_t flow;
    snapshot_metadata_t snapshot;
}

parser HeavyParser(packet_in packet, inout headers_t hdr) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_VLAN: vlan;
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_GENERATED: walk;
            default: accept;
        }
    }

    state walk {
        packet.extract(hdr.walk);
        packet.extract(hdr.values);
        transition accept;
    }

    state vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(
            hdr.ipv4.version,
            hdr.ipv4.ihl,
            hdr.ipv4.flags,
            hdr.ipv4.fragment_offset,
            hdr.ipv4.protocol
        ) {
            (4, 5, 0 &&& 1, 0, IP_PROTOCOL_TCP): tcp;
            (4, 5, 0 &&& 1, 0, IP_PROTOCOL_UDP): udp;
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

control HeavyVerifyChecksum(inout headers_t hdr) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.ipv4);
    }
}

control HeavyIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationShard(HEAVY_SHARDS) shard;
    ReplicationIngressBefore() replication_before;
    ReplicationIngressAfter() replication_after;
    SnapshotWalk() walk;
    SnapshotKey() snapshot_key;
    SnapshotKeep() keep;
    SnapshotAge() age;
    SnapshotArray() first_row;
    SnapshotArray() second_row;
    SnapshotArray() third_row;
    Router() router;
    // Packets of flows that were heavy, by tenant.
    counter(SNAPSHOT_KEYS, CounterType.packets) heavy_packets;
    bit<32> tenant = 0;
    bool counted = false;
    bool drops = false;
    bit<32> most = 0;
    bit<6> mark = 0;
    bit<32> flow;
    bit<32> base;
    bit<32> first_element;
    bit<32> second_element;
    bit<32> third_element;
    bit<8> operation;
    bit<32> first;
    bit<32> second;
    bit<32> third;
    bit<16> source_port;
    bit<16> destination_port;
    bit<12> vlan = 0;

    // A port's own VLAN (IEEE 802.1Q, 6.9): untagged frames that come by it are of this
    // one, and stay untagged.
    action untagged_is_of(bit<12> id) {
        vlan = id;
    }

    table port_vlan {
        key = { standard_metadata.ingress_port: exact; }
        actions = { untagged_is_of; }
        default_action = untagged_is_of(0);
        size = 512;
    }

    action count_for(bit<32> number) {
        tenant = number;
        counted = true;
    }

    action not_counted() {
        counted = false;
    }

    // The tenants by VLAN, numbered from 0 to SNAPSHOT_KEYS - 1, the same at all
    // switches.
    table tenants {
        key = { vlan: exact @name("hdr.vlan.id"); }
        actions = { count_for; not_counted; }
        default_action = not_counted();
        size = SNAPSHOT_KEYS;
    }

    // A flow with more packets than that is heavy: its packets get this DSCP.
    action heavy_above(bit<32> packets, bit<6> dscp) {
        most = packets;
        mark = dscp;
    }

    table heavy_limit {
        actions = { heavy_above; }
        default_action = heavy_above(0xffffffff, 0);
    }

    apply {
        walk.apply(hdr.walk, meta.snapshot, standard_metadata);
        if (meta.flow.arriving
            && standard_metadata.checksum_error == 0
            && (hdr.tcp.isValid() || hdr.udp.isValid())) {
            if (hdr.vlan.isValid()) {
                vlan = hdr.vlan.id;
            } else {
                port_vlan.apply();
            }
            tenants.apply();
            if (counted) {
                age.apply(standard_metadata, drops);
            }
        }
        source_port = 0;
        destination_port = 0;
        if (hdr.tcp.isValid()) {
            source_port = hdr.tcp.source_port;
            destination_port = hdr.tcp.destination_port;
        } else if (hdr.udp.isValid()) {
            source_port = hdr.udp.source_port;
            destination_port = hdr.udp.destination_port;
        }
        operation = SNAPSHOT_READ;
        first_element = meta.snapshot.element;
        second_element = meta.snapshot.element;
        third_element = meta.snapshot.element;
        if (counted) {
            hash(
                flow,
                HashAlgorithm.crc32,
                (bit<32>)0,
                {
                    hdr.ipv4.source,
                    hdr.ipv4.destination,
                    hdr.ipv4.protocol,
                    source_port,
                    destination_port
                },
                (bit<64>)0x100000000
            );
            // Bits of one CRC are as good as three hashes; CRCs that begin otherwise
            // are not, as they differ by a constant.
            base = tenant * SNAPSHOT_SLOTS;
            first_element = base + ((flow >> 24) & (SNAPSHOT_SLOTS - 1));
            second_element = base + ((flow >> 12) & (SNAPSHOT_SLOTS - 1));
            third_element = base + (flow & (SNAPSHOT_SLOTS - 1));
            operation = SNAPSHOT_ADD;
        }
        if ((counted && !drops) || meta.snapshot.walks) {
            first_row.apply(first_element, meta.snapshot.active, operation, 1, first);
            second_row.apply(second_element, meta.snapshot.active, operation, 1, second);
            third_row.apply(third_element, meta.snapshot.active, operation, 1, third);
            if (meta.snapshot.walks) {
                hdr.values.first = first;
                hdr.values.second = second;
                hdr.values.third = third;
            } else {
                heavy_limit.apply();
            }
            if (counted && first > most && second > most && third > most) {
                heavy_packets.count(tenant);
                hdr.ipv4.diffserv = mark ++ hdr.ipv4.diffserv[1:0];
            }
        }
        if (meta.flow.arriving && meta.snapshot.walks) {
            meta.flow.known = true;
            snapshot_key.apply(hdr.walk, CLASS_HEAVY, meta.flow.key);
            shard.apply(meta.flow);
        }
        replication_before.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.process) {
            if (hdr.walk.isValid()) {
                if (meta.flow.found) {
                    keep.apply(hdr.walk, meta.flow.value[127:96], meta.flow.slot, meta.flow.write);
                    if (meta.flow.write) {
                        meta.flow.value = hdr.walk.number ++ hdr.values.first ++ hdr.values.second
                            ++ hdr.values.third;
                    }
                }
                mark_to_drop(standard_metadata);
            } else if (drops) {
                mark_to_drop(standard_metadata);
            }
        }
        replication_after.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.forward) {
            if (hdr.ipv4.isValid()
                && hdr.ipv4.version == 4
                && hdr.ipv4.ihl == 5
                && standard_metadata.parser_error == error.NoError
                && standard_metadata.checksum_error == 0) {
                router.apply(hdr.ethernet, hdr.ipv4, standard_metadata);
            } else {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control HeavyComputeChecksum(inout headers_t hdr) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.ipv4);
    }
}

control HeavyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
        packet.emit(hdr.walk);
        packet.emit(hdr.values);
    }
}

#define PROGRAM_PARSER HeavyParser
#define PROGRAM_VERIFY_CHECKSUM HeavyVerifyChecksum
#define PROGRAM_INGRESS HeavyIngress
#define PROGRAM_COMPUTE_CHECKSUM HeavyComputeChecksum
#define PROGRAM_DEPARSER HeavyDeparser
#include "replicated_switch.p4"
