// Sources that may send no more than a collector sees in time: packets that come while nobody polls
// their budget are dropped, and those of other counts are counted as late.

// Made by `stateplane sync` of aged.p4: change that one, not this.
//
//     group  register  kind     elements     bits  ring
//         0  budget    counter        16       32  2048
//         1  bytes     counter        16       64  2048
//
// The engine has to know groups and locations, and that a message has at most 16
// values: see docs/sync.md.

#include <core.p4>
#include <v1model.p4>

// The registers. Sizes are those of this compilation.
@in_view
@beside["sync_sent", 0]
register<bit<32>>(16) budget;
@in_view
@beside["sync_sent", 16]
register<bit<64>>(16) bytes;

// What a location of group 0 holds.
bit<64> sync_held_0(in bit<32> index) {
    bit<32> value_0;
    budget.read(value_0, index);
    return (bit<64>)value_0;
}

void sync_hold_0(in bit<32> index, in bit<64> value) {
    budget.write(index, value[31:0]);
}

// What a location of group 1 holds.
bit<64> sync_held_1(in bit<32> index) {
    bit<64> value_0;
    bytes.read(value_0, index);
    return value_0;
}

void sync_hold_1(in bit<32> index, in bit<64> value) {
    bytes.write(index, value[63:0]);
}

// One location and one place of the rings are for what changes nothing.
#define SYNC_GROUPS 2
#define SYNC_LOCATIONS 33
#define SYNC_RINGS 4097
#ifndef SYNC_BATCH
#define SYNC_BATCH 16
#endif
#ifndef SYNC_FETCH
#define SYNC_FETCH 168
#endif
#ifndef SYNC_WINDOW
#define SYNC_WINDOW 1024
#endif
// The program has names that the library has, too.
#define ethernet_t synced_ethernet_t
#include "sync/shape.p4"

const sync_shape_t SYNC_SHAPE_0 = {
    SYNC_COUNTER,
    0xffffffff,
    0,
    16,
    0,
    2047
};
const sync_shape_t SYNC_SHAPE_1 = {
    SYNC_COUNTER,
    0xffffffffffffffff,
    16,
    16,
    2048,
    2047
};

control SyncShape(in bit<16> group, out sync_shape_t shape) {
    apply {
        if (group == 0) {
            shape = SYNC_SHAPE_0;
        } else {
            shape = SYNC_SHAPE_1;
        }
    }
}

control SyncAccess(
    in bit<16> group,
    in bit<32> index,
    in bool write,
    inout bit<64> value
) {
    apply {
        if (group == 0) {
            if (write) {
                sync_hold_0(index, value);
            } else {
                value = sync_held_0(index);
            }
        } else {
            if (write) {
                sync_hold_1(index, value);
            } else {
                value = sync_held_1(index);
            }
        }
    }
}

#include "sync.p4"
#include "sync/access.p4"
#undef ethernet_t

// `budget.read`, in view of the control plane.
void budget_read(out bit<32> result, in bit<32> index) {
    if (sync_crosses(0, index, SYNC_SHAPE_0)) @unlikely {
        sync_hold_0(index, sync_cross(0, index, sync_held_0(index), SYNC_SHAPE_0));
    }
    budget.read(result, index);
}

// `budget.write`, in view of the control plane, behind an access of the same element.
void budget_write_crossed(in bit<32> index, in bit<32> value) {
    bit<64> before_0 = sync_held_0(index);
    budget.write(index, value);
    sync_changed_in_body(0, index, before_0, (bit<64>)value, SYNC_SHAPE_0);
}

// `bytes.read`, in view of the control plane.
void bytes_read(out bit<64> result, in bit<32> index) {
    if (sync_crosses(1, index, SYNC_SHAPE_1)) @unlikely {
        sync_hold_1(index, sync_cross(1, index, sync_held_1(index), SYNC_SHAPE_1));
    }
    bytes.read(result, index);
}

// `bytes.write`, in view of the control plane, behind an access of the same element.
void bytes_write_crossed(in bit<32> index, in bit<64> value) {
    bit<64> before_0 = sync_held_1(index);
    bytes.write(index, value);
    sync_changed_in_body(1, index, before_0, value, SYNC_SHAPE_1);
}

#include <core.p4>
#include <v1model.p4>

// What the programs of these tests share: a header, its parser and the blocks that do nothing.

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> kind;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
    bit<32> index;
}

parser CommonParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control NoCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control CommonDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}


#define SOURCES 16

// Packets of a source.
/* budget is at the front: it is synchronised. */
// Bytes of a source.
/* bytes is at the front: it is synchronised. */

control Aged(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    bit<32> count;
    bit<64> total;

    apply {
        meta.index = hdr.ethernet.src[31:0] & (SOURCES - 1);
        budget_read(count, meta.index);
        budget_write_crossed(meta.index, count + 1);
        bytes_read(total, meta.index);
        bytes_write_crossed(meta.index, total + (bit<64>)standard.packet_length);
        standard.egress_spec = 1;
    }
}

// The blocks of the sync library around those above: see p4/lib/sync.p4.

struct synced_headers_t {
    sync_headers_t sync;
    headers_t own;
}

struct synced_metadata_t {
    sync_metadata_t sync;
    metadata_t own;
}

parser SyncedParser(
    packet_in packet,
    out synced_headers_t hdr,
    inout synced_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    SyncParser() sync;
    @name(".CommonParser") CommonParser() own;

    state start {
        sync.apply(packet, hdr.sync, meta.sync, standard_metadata);
        transition select(hdr.sync.ethernet.isValid()) {
            true: accept;
            default: own_headers;
        }
    }

    state own_headers {
        own.apply(packet, hdr.own, meta.own, standard_metadata);
        transition accept;
    }
}

control SyncedVerifyChecksum(inout synced_headers_t hdr, inout synced_metadata_t meta) {
    SyncVerifyChecksum() sync;

    apply {
        sync.apply(hdr.sync);
    }
}

control SyncedIngress(
    inout synced_headers_t hdr,
    inout synced_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    SyncIngress() sync;
    @name(".Aged") Aged() own;
    SyncAge() age_0;
    SyncAge() age_1;
    bool late;

    apply {
        sync.apply(hdr.sync, meta.sync, standard_metadata);
        if (!meta.sync.taken) {
            late = false;
            age_0.apply(
                0,
                5000,
                standard_metadata.ingress_global_timestamp,
                late
            );
            if (late) {
                mark_to_drop(standard_metadata);
                return;
            }
            late = false;
            age_1.apply(
                1,
                2000,
                standard_metadata.ingress_global_timestamp,
                late
            );
            // A write and its place in the ring are one step, and a cut comes between two packets.
            @atomic {
                own.apply(hdr.own, meta.own, standard_metadata);
            }
        }
    }
}

control SyncedEgress(
    inout synced_headers_t hdr,
    inout synced_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    @name(".NoEgress") NoEgress() own;

    apply {
        if (!hdr.sync.ethernet.isValid()) {
            @atomic {
                own.apply(hdr.own, meta.own, standard_metadata);
            }
        }
    }
}

control SyncedComputeChecksum(inout synced_headers_t hdr, inout synced_metadata_t meta) {
    SyncComputeChecksum() sync;

    apply {
        sync.apply(hdr.sync);
    }
}

control SyncedDeparser(packet_out packet, in synced_headers_t hdr) {
    SyncDeparser() sync;
    @name(".CommonDeparser") CommonDeparser() own;

    apply {
        sync.apply(packet, hdr.sync);
        own.apply(packet, hdr.own);
    }
}

V1Switch(
    SyncedParser(),
    SyncedVerifyChecksum(),
    SyncedIngress(),
    SyncedEgress(),
    SyncedComputeChecksum(),
    SyncedDeparser()
) main;
