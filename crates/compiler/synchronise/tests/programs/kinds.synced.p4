// Registers of all kinds and widths, some of which say how they are synchronised.

// Made by `stateplane sync` of kinds.p4: change that one, not this.
//
//     group  register                  kind     elements     bits  ring
//         0  KindsIngress.length       gauge           8       32  2048
//         1  KindsIngress.last_source  opaque          4     47:0  2048
//         1  KindsIngress.last_kind    opaque          4    63:48  2048
//         2  KindsIngress.wide         opaque          4    129/4  2048
//         3  KindsIngress.balance      opaque          4      8:0  2048
//         3  KindsIngress.flag         opaque          4      9:9  2048
//         4  KindsIngress.newest       opaque          1       64  2048
//
// The engine has to know groups and locations, and that a message has at most 8
// values: see docs/sync.md.

#include <core.p4>
#include <v1model.p4>

// The registers. Sizes are those of this compilation.
@in_view
@beside["sync_sent", 0]
@name(".KindsIngress.length")
register<bit<32>>(8) KindsIngress_length;
@in_view
@beside["sync_sent", 8]
@name(".KindsIngress.last_source")
register<bit<48>>(4) KindsIngress_last_source;
@in_view
@beside["sync_sent", 8]
@name(".KindsIngress.last_kind")
register<bit<16>>(4) KindsIngress_last_kind;
@in_view
@name(".KindsIngress.wide")
register<bit<129>>(4) KindsIngress_wide;
@in_view
@beside["sync_sent", 28]
@name(".KindsIngress.balance")
register<int<9>>(4) KindsIngress_balance;
@in_view
@beside["sync_sent", 28]
@name(".KindsIngress.flag")
register<bool>(4) KindsIngress_flag;
@in_view
@beside["sync_sent", 32]
@name(".KindsIngress.newest")
register<bit<64>>(1) KindsIngress_newest;

// What a location of group 0 holds.
bit<64> sync_held_0(in bit<32> index) {
    bit<32> value_0;
    KindsIngress_length.read(value_0, index);
    return (bit<64>)value_0;
}

void sync_hold_0(in bit<32> index, in bit<64> value) {
    KindsIngress_length.write(index, value[31:0]);
}

// What a location of group 1 holds.
bit<64> sync_held_1(in bit<32> index) {
    bit<48> value_0;
    KindsIngress_last_source.read(value_0, index);
    bit<16> value_1;
    KindsIngress_last_kind.read(value_1, index);
    return value_1 ++ value_0;
}

void sync_hold_1(in bit<32> index, in bit<64> value) {
    KindsIngress_last_source.write(index, value[47:0]);
    KindsIngress_last_kind.write(index, value[63:48]);
}

// What a location of group 2 holds: 64 bits of an element.
bit<64> sync_held_2(in bit<32> location) {
    bit<129> element;
    KindsIngress_wide.read(element, location >> 2);
    bit<129> whole = element;
    return (location[1:0] == 0 ? whole[63:0] : (location[1:0] == 1 ? whole[127:64] : (location[1:0] == 2 ? (bit<64>)whole[128:128] : 64w0)));
}

void sync_hold_2(in bit<32> location, in bit<64> value) {
    bit<129> element;
    KindsIngress_wide.read(element, location >> 2);
    bit<129> whole = element;
    whole[63:0] = location[1:0] == 0 ? value[63:0] : whole[63:0];
    whole[127:64] = location[1:0] == 1 ? value[63:0] : whole[127:64];
    whole[128:128] = location[1:0] == 2 ? value[0:0] : whole[128:128];
    KindsIngress_wide.write(location >> 2, whole);
}

// What a location of group 3 holds.
bit<64> sync_held_3(in bit<32> index) {
    int<9> value_0;
    KindsIngress_balance.read(value_0, index);
    bool value_1;
    KindsIngress_flag.read(value_1, index);
    return (bit<64>)((bit<1>)value_1 ++ (bit<9>)value_0);
}

void sync_hold_3(in bit<32> index, in bit<64> value) {
    KindsIngress_balance.write(index, (int<9>)value[8:0]);
    KindsIngress_flag.write(index, (bool)value[9:9]);
}

// What a location of group 4 holds.
bit<64> sync_held_4(in bit<32> index) {
    bit<64> value_0;
    KindsIngress_newest.read(value_0, index);
    return value_0;
}

void sync_hold_4(in bit<32> index, in bit<64> value) {
    KindsIngress_newest.write(index, value[63:0]);
}

// One location and one place of the rings are for what changes nothing.
#define SYNC_GROUPS 5
#define SYNC_LOCATIONS 34
#define SYNC_RINGS 10241
#ifndef SYNC_BATCH
#define SYNC_BATCH 8
#endif
#ifndef SYNC_FETCH
#define SYNC_FETCH 16
#endif
#ifndef SYNC_WINDOW
#define SYNC_WINDOW 1024
#endif
#define SYNC_RATES 0: sync_set(524, 4194, 500, 0, 0x4); 4: sync_set(524, 4194, 1000, 0, 0x0);
// The program has names that the library has, too.
#define ethernet_t synced_ethernet_t
#include "sync/shape.p4"

const sync_shape_t SYNC_SHAPE_0 = {
    SYNC_GAUGE,
    0xffffffff,
    0,
    8,
    0,
    2047
};
const sync_shape_t SYNC_SHAPE_1 = {
    SYNC_OPAQUE,
    0xffffffffffffffff,
    8,
    4,
    2048,
    2047
};
const sync_shape_t SYNC_SHAPE_2 = {
    SYNC_OPAQUE,
    0xffffffffffffffff,
    12,
    16,
    4096,
    2047
};
const sync_shape_t SYNC_SHAPE_3 = {
    SYNC_OPAQUE,
    0x3ff,
    28,
    4,
    6144,
    2047
};
const sync_shape_t SYNC_SHAPE_4 = {
    SYNC_OPAQUE,
    0xffffffffffffffff,
    32,
    1,
    8192,
    2047
};

control SyncShape(in bit<16> group, out sync_shape_t shape) {
    apply {
        if (group == 0) {
            shape = SYNC_SHAPE_0;
        } else if (group == 1) {
            shape = SYNC_SHAPE_1;
        } else if (group == 2) {
            shape = SYNC_SHAPE_2;
        } else if (group == 3) {
            shape = SYNC_SHAPE_3;
        } else {
            shape = SYNC_SHAPE_4;
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
        } else if (group == 1) {
            if (write) {
                sync_hold_1(index, value);
            } else {
                value = sync_held_1(index);
            }
        } else if (group == 2) {
            if (write) {
                sync_hold_2(index, value);
            } else {
                value = sync_held_2(index);
            }
        } else if (group == 3) {
            if (write) {
                sync_hold_3(index, value);
            } else {
                value = sync_held_3(index);
            }
        } else {
            if (write) {
                sync_hold_4(index, value);
            } else {
                value = sync_held_4(index);
            }
        }
    }
}

#include "sync.p4"
#include "sync/access.p4"
#undef ethernet_t

// `KindsIngress_length.write`, in view of the control plane.
void KindsIngress_length_write(in bit<32> index, in bit<32> value) {
    if (sync_crosses(0, index, SYNC_SHAPE_0)) @unlikely {
        sync_hold_0(index, sync_cross(0, index, sync_held_0(index), SYNC_SHAPE_0));
    }
    KindsIngress_length.write(index, value);
    sync_changed_in_body(0, index, 0, (bit<64>)value, SYNC_SHAPE_0);
}

// `KindsIngress_last_source.write`, in view of the control plane.
void KindsIngress_last_source_write(in bit<32> index, in bit<48> value) {
    if (sync_crosses(1, index, SYNC_SHAPE_1)) @unlikely {
        sync_hold_1(index, sync_cross(1, index, sync_held_1(index), SYNC_SHAPE_1));
    }
    KindsIngress_last_source.write(index, value);
    sync_changed_in_body(1, index, 0, sync_held_1(index), SYNC_SHAPE_1);
}

// `KindsIngress_last_kind.write`, in view of the control plane.
void KindsIngress_last_kind_write(in bit<32> index, in bit<16> value) {
    if (sync_crosses(1, index, SYNC_SHAPE_1)) @unlikely {
        sync_hold_1(index, sync_cross(1, index, sync_held_1(index), SYNC_SHAPE_1));
    }
    KindsIngress_last_kind.write(index, value);
    sync_changed_in_body(1, index, 0, sync_held_1(index), SYNC_SHAPE_1);
}

// `KindsIngress_wide.read`, in view of the control plane.
void KindsIngress_wide_read(out bit<129> result, in bit<32> index) {
    if (sync_crosses(2, index < 4 ? (index << 2) + 0 : 0xffffffff, SYNC_SHAPE_2)) @unlikely {
        sync_hold_2(index < 4 ? (index << 2) + 0 : 0xffffffff, sync_cross(2, index < 4 ? (index << 2) + 0 : 0xffffffff, sync_held_2(index < 4 ? (index << 2) + 0 : 0xffffffff), SYNC_SHAPE_2));
    }
    if (sync_crosses(2, index < 4 ? (index << 2) + 1 : 0xffffffff, SYNC_SHAPE_2)) @unlikely {
        sync_hold_2(index < 4 ? (index << 2) + 1 : 0xffffffff, sync_cross(2, index < 4 ? (index << 2) + 1 : 0xffffffff, sync_held_2(index < 4 ? (index << 2) + 1 : 0xffffffff), SYNC_SHAPE_2));
    }
    if (sync_crosses(2, index < 4 ? (index << 2) + 2 : 0xffffffff, SYNC_SHAPE_2)) @unlikely {
        sync_hold_2(index < 4 ? (index << 2) + 2 : 0xffffffff, sync_cross(2, index < 4 ? (index << 2) + 2 : 0xffffffff, sync_held_2(index < 4 ? (index << 2) + 2 : 0xffffffff), SYNC_SHAPE_2));
    }
    KindsIngress_wide.read(result, index);
}

// `KindsIngress_wide.write`, in view of the control plane, behind an access of the same element.
void KindsIngress_wide_write_crossed(in bit<32> index, in bit<129> value) {
    KindsIngress_wide.write(index, value);
    sync_changed_in_body(2, index < 4 ? (index << 2) + 0 : 0xffffffff, 0, sync_held_2(index < 4 ? (index << 2) + 0 : 0xffffffff), SYNC_SHAPE_2);
    sync_changed_in_body(2, index < 4 ? (index << 2) + 1 : 0xffffffff, 0, sync_held_2(index < 4 ? (index << 2) + 1 : 0xffffffff), SYNC_SHAPE_2);
    sync_changed_in_body(2, index < 4 ? (index << 2) + 2 : 0xffffffff, 0, sync_held_2(index < 4 ? (index << 2) + 2 : 0xffffffff), SYNC_SHAPE_2);
}

// `KindsIngress_balance.read`, in view of the control plane.
void KindsIngress_balance_read(out int<9> result, in bit<32> index) {
    if (sync_crosses(3, index, SYNC_SHAPE_3)) @unlikely {
        sync_hold_3(index, sync_cross(3, index, sync_held_3(index), SYNC_SHAPE_3));
    }
    KindsIngress_balance.read(result, index);
}

// `KindsIngress_balance.write`, in view of the control plane, behind an access of the same element.
void KindsIngress_balance_write_crossed(in bit<32> index, in int<9> value) {
    KindsIngress_balance.write(index, value);
    sync_changed_in_body(3, index, 0, sync_held_3(index), SYNC_SHAPE_3);
}

// `KindsIngress_flag.write`, in view of the control plane.
void KindsIngress_flag_write(in bit<32> index, in bool value) {
    if (sync_crosses(3, index, SYNC_SHAPE_3)) @unlikely {
        sync_hold_3(index, sync_cross(3, index, sync_held_3(index), SYNC_SHAPE_3));
    }
    KindsIngress_flag.write(index, value);
    sync_changed_in_body(3, index, 0, sync_held_3(index), SYNC_SHAPE_3);
}

// `KindsIngress_newest.write`, in view of the control plane.
void KindsIngress_newest_write(in bit<32> index, in bit<64> value) {
    if (sync_crosses(4, index, SYNC_SHAPE_4)) @unlikely {
        sync_hold_4(index, sync_cross(4, index, sync_held_4(index), SYNC_SHAPE_4));
    }
    KindsIngress_newest.write(index, value);
    sync_changed_in_body(4, index, 0, value, SYNC_SHAPE_4);
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


control KindsIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    // A key and its count: a key is not sent without its count, nor the count without its key.
    register<bit<32>>(8) key;
    register<bit<24>>(8) key_count;
    // Level of something that packets take and give.
    register<bit<16>>(8) credit;
    /* KindsIngress_length is at the front: it is synchronised. */
    /* KindsIngress_last_source is at the front: it is synchronised. */
    /* KindsIngress_last_kind is at the front: it is synchronised. */
    /* KindsIngress_wide is at the front: it is synchronised. */
    /* KindsIngress_balance is at the front: it is synchronised. */
    /* KindsIngress_flag is at the front: it is synchronised. */
    /* KindsIngress_newest is at the front: it is synchronised. */
    // Nobody asks for this one.
    register<bit<8>>(4) unseen;
    bit<32> index;
    bit<32> held;
    bit<24> count;
    bit<16> level;
    bit<129> element;
    int<9> signed_level;

    apply {
        index = hdr.ethernet.src[31:0] & 3;
        KindsIngress_last_source_write(index, hdr.ethernet.src);
        KindsIngress_last_kind_write(index, hdr.ethernet.kind);
        KindsIngress_length_write(index, standard.packet_length);
        KindsIngress_wide_read(element, index);
        KindsIngress_wide_write_crossed(index, element[64:0] ++ 16w0 ++ hdr.ethernet.dst);
        KindsIngress_balance_read(signed_level, index);
        KindsIngress_balance_write_crossed(index, signed_level - 3);
        KindsIngress_flag_write(index, hdr.ethernet.dst[0:0] == 1);
        KindsIngress_newest_write(0, (bit<64>)hdr.ethernet.src);
        unseen.write(index, 1);
        index = hdr.ethernet.src[31:0] & 7;
        key.read(held, index);
        key_count.read(count, index);
        if (held != hdr.ethernet.src[31:0]) {
            key.write(index, hdr.ethernet.src[31:0]);
            count = 0;
        }
        key_count.write(index, count + 1);
        credit.read(level, index);
        if (hdr.ethernet.dst[0:0] == 1) {
            level = level + 2;
        } else {
            level = level |-| 1;
        }
        credit.write(index, level);
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
    @name(".KindsIngress") KindsIngress() own;

    apply {
        sync.apply(hdr.sync, meta.sync, standard_metadata);
        if (!meta.sync.taken) {
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
