// Writes wherever a program may have them.

// Made by `stateplane sync` of places.p4: change that one, not this.
//
//     group  register                       kind     elements     bits  ring
//         0  parsed                         opaque         16       16  2048
//         1  by_function                    opaque         16       32  2048
//         2  PlacesIngress.tally.total      counter        16        8  2048
//         3  PlacesIngress.total            counter        16       32  2048
//         4  PlacesIngress.refused_packets  counter        16       32  2048
//         5  PlacesEgress.sent              counter        16       64  2048
//
// The engine has to know groups and locations, and that a message has at most 8
// values: see docs/sync.md.

#include <core.p4>
#include <v1model.p4>

// The registers. Sizes are those of this compilation.
@in_view
@beside["sync_sent", 0]
register<bit<16>>(16) parsed;
@in_view
@beside["sync_sent", 16]
register<bit<32>>(16) by_function;
@in_view
@beside["sync_sent", 32]
@name(".PlacesIngress.tally.total")
register<bit<8>>(16) Tally_total;
@in_view
@beside["sync_sent", 48]
@name(".PlacesIngress.total")
register<bit<32>>(16) PlacesIngress_total;
@in_view
@beside["sync_sent", 64]
@name(".PlacesIngress.refused_packets")
register<bit<32>>(16) PlacesIngress_refused;
@in_view
@beside["sync_sent", 80]
@name(".PlacesEgress.sent")
register<bit<64>>(16) PlacesEgress_sent;

// What a location of group 0 holds.
bit<64> sync_held_0(in bit<32> index) {
    bit<16> value_0;
    parsed.read(value_0, index);
    return (bit<64>)value_0;
}

void sync_hold_0(in bit<32> index, in bit<64> value) {
    parsed.write(index, value[15:0]);
}

// What a location of group 1 holds.
bit<64> sync_held_1(in bit<32> index) {
    bit<32> value_0;
    by_function.read(value_0, index);
    return (bit<64>)value_0;
}

void sync_hold_1(in bit<32> index, in bit<64> value) {
    by_function.write(index, value[31:0]);
}

// What a location of group 2 holds.
bit<64> sync_held_2(in bit<32> index) {
    bit<8> value_0;
    Tally_total.read(value_0, index);
    return (bit<64>)value_0;
}

void sync_hold_2(in bit<32> index, in bit<64> value) {
    Tally_total.write(index, value[7:0]);
}

// What a location of group 3 holds.
bit<64> sync_held_3(in bit<32> index) {
    bit<32> value_0;
    PlacesIngress_total.read(value_0, index);
    return (bit<64>)value_0;
}

void sync_hold_3(in bit<32> index, in bit<64> value) {
    PlacesIngress_total.write(index, value[31:0]);
}

// What a location of group 4 holds.
bit<64> sync_held_4(in bit<32> index) {
    bit<32> value_0;
    PlacesIngress_refused.read(value_0, index);
    return (bit<64>)value_0;
}

void sync_hold_4(in bit<32> index, in bit<64> value) {
    PlacesIngress_refused.write(index, value[31:0]);
}

// What a location of group 5 holds.
bit<64> sync_held_5(in bit<32> index) {
    bit<64> value_0;
    PlacesEgress_sent.read(value_0, index);
    return value_0;
}

void sync_hold_5(in bit<32> index, in bit<64> value) {
    PlacesEgress_sent.write(index, value[63:0]);
}

// One location and one place of the rings are for what changes nothing.
#define SYNC_GROUPS 6
#define SYNC_LOCATIONS 97
#define SYNC_RINGS 12289
#ifndef SYNC_BATCH
#define SYNC_BATCH 8
#endif
#ifndef SYNC_FETCH
#define SYNC_FETCH 16
#endif
#ifndef SYNC_WINDOW
#define SYNC_WINDOW 1024
#endif
// The program has names that the library has, too.
#define ETHERTYPE_IPV4 synced_ETHERTYPE_IPV4
#define ethernet_t synced_ethernet_t
#include "sync/shape.p4"

const sync_shape_t SYNC_SHAPE_0 = {
    SYNC_OPAQUE,
    0xffff,
    0,
    16,
    0,
    2047
};
const sync_shape_t SYNC_SHAPE_1 = {
    SYNC_OPAQUE,
    0xffffffff,
    16,
    16,
    2048,
    2047
};
const sync_shape_t SYNC_SHAPE_2 = {
    SYNC_COUNTER,
    0xff,
    32,
    16,
    4096,
    2047
};
const sync_shape_t SYNC_SHAPE_3 = {
    SYNC_COUNTER,
    0xffffffff,
    48,
    16,
    6144,
    2047
};
const sync_shape_t SYNC_SHAPE_4 = {
    SYNC_COUNTER,
    0xffffffff,
    64,
    16,
    8192,
    2047
};
const sync_shape_t SYNC_SHAPE_5 = {
    SYNC_COUNTER,
    0xffffffffffffffff,
    80,
    16,
    10240,
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
        } else if (group == 4) {
            shape = SYNC_SHAPE_4;
        } else {
            shape = SYNC_SHAPE_5;
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
        } else if (group == 4) {
            if (write) {
                sync_hold_4(index, value);
            } else {
                value = sync_held_4(index);
            }
        } else {
            if (write) {
                sync_hold_5(index, value);
            } else {
                value = sync_held_5(index);
            }
        }
    }
}

#include "sync.p4"
#include "sync/access.p4"
#undef ETHERTYPE_IPV4
#undef ethernet_t

// `parsed.read`, in view of the control plane.
void parsed_read_in_action(out bit<16> result, in bit<32> index) {
    @atomic {
        sync_hold_0(index, sync_cross(0, index, sync_held_0(index), SYNC_SHAPE_0));
        parsed.read(result, index);
    }
}

// `parsed.write`, in view of the control plane.
void parsed_write_in_action(in bit<32> index, in bit<16> value) {
    @atomic {
        sync_hold_0(index, sync_cross(0, index, sync_held_0(index), SYNC_SHAPE_0));
        parsed.write(index, value);
        sync_changed(0, index, 0, (bit<64>)value, SYNC_SHAPE_0);
    }
}

// `by_function.read`, in view of the control plane.
void by_function_read_in_action(out bit<32> result, in bit<32> index) {
    @atomic {
        sync_hold_1(index, sync_cross(1, index, sync_held_1(index), SYNC_SHAPE_1));
        by_function.read(result, index);
    }
}

// `by_function.write`, in view of the control plane.
void by_function_write_in_action(in bit<32> index, in bit<32> value) {
    @atomic {
        sync_hold_1(index, sync_cross(1, index, sync_held_1(index), SYNC_SHAPE_1));
        by_function.write(index, value);
        sync_changed(1, index, 0, (bit<64>)value, SYNC_SHAPE_1);
    }
}

// `Tally_total.read`, in view of the control plane.
void Tally_total_read(out bit<8> result, in bit<32> index) {
    if (sync_crosses(2, index, SYNC_SHAPE_2)) @unlikely {
        sync_hold_2(index, sync_cross(2, index, sync_held_2(index), SYNC_SHAPE_2));
    }
    Tally_total.read(result, index);
}

// `Tally_total.write`, in view of the control plane, behind an access of the same element.
void Tally_total_write_crossed(in bit<32> index, in bit<8> value) {
    bit<64> before_0 = sync_held_2(index);
    Tally_total.write(index, value);
    sync_changed_in_body(2, index, before_0, (bit<64>)value, SYNC_SHAPE_2);
}

// `PlacesIngress_total.read`, in view of the control plane.
void PlacesIngress_total_read_in_action(out bit<32> result, in bit<32> index) {
    @atomic {
        sync_hold_3(index, sync_cross(3, index, sync_held_3(index), SYNC_SHAPE_3));
        PlacesIngress_total.read(result, index);
    }
}

// `PlacesIngress_total.write`, in view of the control plane.
void PlacesIngress_total_write_in_action(in bit<32> index, in bit<32> value) {
    @atomic {
        sync_hold_3(index, sync_cross(3, index, sync_held_3(index), SYNC_SHAPE_3));
        bit<64> before_0 = sync_held_3(index);
        PlacesIngress_total.write(index, value);
        sync_changed(3, index, before_0, (bit<64>)value, SYNC_SHAPE_3);
    }
}

// `PlacesIngress_refused.read`, in view of the control plane.
void PlacesIngress_refused_read(out bit<32> result, in bit<32> index) {
    if (sync_crosses(4, index, SYNC_SHAPE_4)) @unlikely {
        sync_hold_4(index, sync_cross(4, index, sync_held_4(index), SYNC_SHAPE_4));
    }
    PlacesIngress_refused.read(result, index);
}

// `PlacesIngress_refused.write`, in view of the control plane.
void PlacesIngress_refused_write(in bit<32> index, in bit<32> value) {
    if (sync_crosses(4, index, SYNC_SHAPE_4)) @unlikely {
        sync_hold_4(index, sync_cross(4, index, sync_held_4(index), SYNC_SHAPE_4));
    }
    bit<64> before_0 = sync_held_4(index);
    PlacesIngress_refused.write(index, value);
    sync_changed_in_body(4, index, before_0, (bit<64>)value, SYNC_SHAPE_4);
}

// `PlacesEgress_sent.read`, in view of the control plane.
void PlacesEgress_sent_read(out bit<64> result, in bit<32> index) {
    if (sync_crosses(5, index, SYNC_SHAPE_5)) @unlikely {
        sync_hold_5(index, sync_cross(5, index, sync_held_5(index), SYNC_SHAPE_5));
    }
    PlacesEgress_sent.read(result, index);
}

// `PlacesEgress_sent.write`, in view of the control plane, behind an access of the same element.
void PlacesEgress_sent_write_crossed(in bit<32> index, in bit<64> value) {
    bit<64> before_0 = sync_held_5(index);
    PlacesEgress_sent.write(index, value);
    sync_changed_in_body(5, index, before_0, value, SYNC_SHAPE_5);
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


/* parsed is at the front: it is synchronised. */
/* by_function is at the front: it is synchronised. */

// The words of the library, and a name that it has too.
const bit<16> ETHERTYPE_IPV4 = 0x0800;

void add_one(in bit<32> index) {
    bit<32> value;
    by_function_read_in_action(value, index);
    by_function_write_in_action(index, value + 1);
}

parser PlacesParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    bit<16> count;

    state start {
        packet.extract(hdr.ethernet);
        parsed_read_in_action(count, hdr.ethernet.src[31:0] & 15);
        parsed_write_in_action(hdr.ethernet.src[31:0] & 15, count + 1);
        transition accept;
    }
}

// Has a register of its own, by a name that others have.
control Tally(in bit<32> index) {
    /* Tally_total is at the front: it is synchronised. */
    bit<8> count;

    apply {
        Tally_total_read(count, index);
        if (count < 200)
            Tally_total_write_crossed(index, count + 1);
    }
}

control PlacesIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    /* PlacesIngress_total is at the front: it is synchronised. */
    /* PlacesIngress_refused is at the front: it is synchronised. */
    Tally() tally;
    bit<32> count;

    action remember(bit<32> step) {
        PlacesIngress_total_read_in_action(count, meta.index);
        PlacesIngress_total_write_in_action(meta.index, count + step);
    }

    table kinds {
        key = { hdr.ethernet.kind: exact; }
        actions = { remember; NoAction; }
        const entries = {
            ETHERTYPE_IPV4: remember(2);
            0x86dd: remember(5);
        }
        default_action = NoAction();
    }

    apply {
        meta.index = hdr.ethernet.src[31:0] & 15;
        standard.egress_spec = 1;
        tally.apply(meta.index);
        add_one(meta.index);
        kinds.apply();
        if (hdr.ethernet.dst[0:0] == 1) {
            PlacesIngress_refused_read(result = count, index = meta.index);
            PlacesIngress_refused_write(value = count + 1, index = meta.index);
            mark_to_drop(standard);
            exit;
        }
    }
}

control PlacesEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    /* PlacesEgress_sent is at the front: it is synchronised. */
    bit<64> bytes;

    apply {
        PlacesEgress_sent_read(bytes, meta.index);
        bytes = bytes + (bit<64>)standard.packet_length;
        PlacesEgress_sent_write_crossed(meta.index, bytes);
        if (hdr.ethernet.dst[1:1] == 1) {
            exit;
        }
        hdr.ethernet.dst = 0;
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
    @name(".PlacesParser") PlacesParser() own;

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
    @name(".PlacesIngress") PlacesIngress() own;

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
    @name(".PlacesEgress") PlacesEgress() own;

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
