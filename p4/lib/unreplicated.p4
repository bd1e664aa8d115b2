// The blocks of replication.p4 without replication: a flow's state lives in this switch's
// registers and dies with it. With REPLICATION_OFF defined, replication.p4 is this file, so
// that an application can be measured beside itself. Of the slots, what a program without
// replication would need is left: the key, the state, and when it was used last.
//
// Needs the applications' states that begin as zero; the NAT's begin at the store, and
// apps/nat/unprotected.p4 takes its place.

#ifndef STATEPLANE_UNREPLICATED_P4
#define STATEPLANE_UNREPLICATED_P4

#include "flow_hash.p4"
#include "headers.p4"
#include "replication_message.p4"

#ifndef REPLICATION_BUCKETS
#define REPLICATION_BUCKETS 16384
#endif
#define REPLICATION_WAYS 4
#define REPLICATION_SLOTS (REPLICATION_BUCKETS * REPLICATION_WAYS)

#ifndef REPLICATION_IDLE_MICROSECONDS
#define REPLICATION_IDLE_MICROSECONDS 500000
#endif

// Content of a slot while a packet is in the pipeline. Nothing is ever unacknowledged.
struct replication_slot_t {
    bit<32> index;
    bit<32> claim;
    bit<32> sequence;
    bit<32> acknowledged;
}

struct replication_metadata_t {
    bool parse_program;
    bool arriving;
    bool known;
    bit<128> key;
    bit<16> shard;
    bool shared;
    bool process;
    bool forward;
    bit<REPLICATION_STATE_BITS> value;
    bool write;
    bit<48> now;
    bool found;
    replication_slot_t slot;
}

register<bit<32>>(1) replication_incarnation;

// A slot whose key is 0 is free.
register<bit<128>>(REPLICATION_SLOTS) slot_key;
register<bit<REPLICATION_STATE_BITS>>(REPLICATION_SLOTS) slot_value;
register<bit<48>>(REPLICATION_SLOTS) slot_used;

parser ReplicationParser(
    packet_in packet,
    out replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    state start {
        meta.parse_program = true;
        meta.arriving = true;
        transition accept;
    }
}

control ReplicationVerifyChecksum(inout replication_headers_t hdr) {
    apply { }
}

control ReplicationComputeChecksum(inout replication_headers_t hdr) {
    apply { }
}

// True if a way of the bucket holds the key or, if `any`, may be given to it.
control TryWay(inout replication_metadata_t meta, in bit<32> index, in bool any) {
    bit<128> stored;
    bit<48> used;

    apply {
        if (!meta.found) {
            slot_key.read(stored, index);
            meta.found = stored == meta.key;
            if (any && !meta.found) {
                slot_used.read(used, index);
                meta.found = stored == 0 || used + REPLICATION_IDLE_MICROSECONDS <= meta.now;
            }
            if (meta.found) {
                meta.slot.index = index;
            }
        }
    }
}

// The same of the four ways of a bucket, which begins with the slot `first`.
control TryBucket(inout replication_metadata_t meta, in bit<32> first, in bool any) {
    TryWay() try_way;

    apply {
        try_way.apply(meta, first, any);
        try_way.apply(meta, first + 1, any);
        try_way.apply(meta, first + 2, any);
        try_way.apply(meta, first + 3, any);
    }
}

control ReplicationIngressBefore(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    FlowHash() flow_hash;
    FirstBucket() first_bucket;
    SecondBucket() second_bucket;
    TryBucket() try_first;
    TryBucket() try_second;
    bit<64> mixed;
    bit<32> first;
    bit<32> second;

    apply {
        meta.now = standard_metadata.ingress_global_timestamp;
        meta.process = true;
        meta.forward = false;
        meta.write = false;
        meta.found = false;
        meta.value = 0;
        if (meta.known) {
            flow_hash.apply(meta.key, mixed);
            first_bucket.apply(mixed, REPLICATION_BUCKETS, first);
            try_first.apply(meta, first * REPLICATION_WAYS, false);
            if (!meta.found) @unlikely {
                second_bucket.apply(mixed, REPLICATION_BUCKETS, second);
                try_second.apply(meta, second * REPLICATION_WAYS, false);
                if (!meta.found) {
                    try_first.apply(meta, first * REPLICATION_WAYS, true);
                    try_second.apply(meta, second * REPLICATION_WAYS, true);
                    if (meta.found) {
                        slot_key.write(meta.slot.index, meta.key);
                        slot_value.write(meta.slot.index, 0);
                    }
                }
            }
            if (meta.found) {
                slot_value.read(meta.value, meta.slot.index);
            }
            if (meta.found) {
                slot_used.write(meta.slot.index, meta.now);
            } else {
                meta.process = false;
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control ReplicationIngressAfter(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply {
        if (meta.found && meta.process && meta.write) {
            slot_value.write(meta.slot.index, meta.value);
        }
        meta.forward = meta.process && standard_metadata.egress_spec != DROP_PORT;
    }
}

control ReplicationEgress(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply { }
}

control ReplicationDeparser(packet_out packet, in replication_headers_t hdr) {
    apply { }
}

#endif
