// Around each change of a location: it crosses the cut before it is read or written, and is
// queued after it if that took it beyond t.
//
// The program defines, after it included sync/shape.p4 and before sync.p4:
//
//   control SyncShape(in bit<16> group, out sync_shape_t shape)
//   control SyncAccess(in bit<16> group, in bit<32> index, in bool write, inout bit<64> value)
//
// and applies, in ingress, SyncBefore before it reads or writes a location, and SyncAfter, with its
// value before the write and the new one, behind it. An index beyond the group changes nothing. All
// accesses of a packet are in one @atomic block: a cut comes between two packets, also where several
// workers run the program.

#ifndef STATEPLANE_SYNC_CHANGE_P4
#define STATEPLANE_SYNC_CHANGE_P4

#include "events.p4"
#include "rules.p4"
#include "shape.p4"
#include "state.p4"
#include "sync_message.p4"

// Distance of two values of a group, at most SYNC_UNBOUNDED (rules 1, 4).
bit<64> sync_distance(in sync_shape_t shape, in bit<64> present, in bit<64> sent) {
    bit<64> distance = (present - sent) & shape.mask;
    if (shape.kind == SYNC_GAUGE && sent > present) {
        distance = sent - present;
    } else if (shape.kind == SYNC_OPAQUE && present != sent) {
        distance = 1;
    }
    return distance > SYNC_UNBOUNDED ? SYNC_UNBOUNDED : distance;
}

// True if a counter went on by so much that its distance fell: a width may have passed (rule 25).
bool sync_falls(in sync_shape_t shape, in bit<64> held, in bit<64> present, in bit<64> sent) {
    return shape.kind == SYNC_COUNTER
        && ((present - sent) & shape.mask) < ((held - sent) & shape.mask)
        && SYNC_RULE_FALLS;
}

// True if the last cut, which was a staged one, gives the location at `place` a value.
bool sync_is_staged(in bit<16> group, in bit<32> place) {
    bit<64> tag;
    bit<64> cut;
    sync_staged_tag.read(tag, place);
    sync_cut_tag.read(cut, (bit<32>)group);
    return tag == cut;
}

// Has a location cross the last cut, if it did not yet: freezes what it held, and fills it or gives
// it what was staged for it.
control SyncSettle(in bit<16> group, in bit<32> index, in sync_shape_t shape) {
    SyncAccess() freeze;
    SyncAccess() fill;
    bit<32> epoch;
    bit<1> crossed;
    bit<8> kind;
    bit<64> value;

    apply {
        sync_epoch.read(epoch, (bit<32>)group);
        sync_crossed.read(crossed, shape.base + index);
        if (crossed != epoch[0:0]) @unlikely {
            sync_events.count(SYNC_EVENT_SETTLED);
            value = 0;
            freeze.apply(group, index, false, value);
            sync_frozen.write(shape.base + index, value);
            sync_crossed.write(shape.base + index, epoch[0:0]);
            sync_kind.read(kind, (bit<32>)group);
            if (kind == SYNC_CUT_FILLED
                || (kind == SYNC_CUT_STAGED && sync_is_staged(group, shape.base + index))) {
                sync_fill.read(value, (bit<32>)group);
                if (kind == SYNC_CUT_STAGED) {
                    sync_staged.read(value, shape.base + index);
                }
                fill.apply(group, index, true, value);
                sync_sent.write(shape.base + index, value);
            }
        }
    }
}

// Puts a location into the ring, unless it is there (rule 2), and its distance into T (rule 3). With
// `breaks` the value that is sent next tells a discontinuity (rule 25). True if it was not in the
// ring.
@side_effects_allowed
bool sync_enqueue(
    in bit<16> group,
    in bit<32> index,
    in bit<64> distance,
    in bool breaks,
    in sync_shape_t shape
) {
    bit<2> queued;
    bit<64> tail;
    bit<64> peak;
    sync_queued.read(queued, shape.base + index);
    if (queued == 0) {
        sync_queued.write(shape.base + index, SYNC_QUEUED);
        sync_tail.read(tail, (bit<32>)group);
        sync_ring.write(shape.ring_base + (tail[31:0] & shape.ring_mask), index);
        sync_tail.write((bit<32>)group, tail + 1);
    }
    if (breaks) @unlikely {
        sync_queued.write(shape.base + index, SYNC_QUEUED_BREAK);
    }
    sync_peak.read(peak, (bit<32>)group);
    if (distance > peak) {
        if (SYNC_RULE_PEAK) {
            sync_peak.write((bit<32>)group, distance);
        }
        // The peak is at most the greatest distance.
        sync_greatest.read(peak, (bit<32>)group);
        if (distance > peak) {
            sync_greatest.write((bit<32>)group, distance);
        }
    }
    return queued == 0;
}

// As sync_enqueue, and counts what joins the ring.
control SyncEnqueue(
    in bit<16> group,
    in bit<32> index,
    in bit<64> distance,
    in bool breaks,
    in sync_shape_t shape
) {
    apply {
        bool joined = sync_enqueue(group, index, distance, breaks, shape);
        if (joined) {
            sync_events.count(SYNC_EVENT_QUEUED);
        }
    }
}

// Before a location is read or written.
control SyncBefore(in bit<16> group, in bit<32> index) {
    SyncShape() shape_of;
    SyncSettle() settle;
    sync_shape_t shape;

    apply {
        shape_of.apply(group, shape);
        if (index < shape.size && SYNC_RULE_CROSS) {
            settle.apply(group, index, shape);
        }
    }
}

// After a location was written that held `held` before: `value` is what it holds.
control SyncAfter(in bit<16> group, in bit<32> index, in bit<64> held, in bit<64> value) {
    SyncShape() shape_of;
    SyncEnqueue() enqueue;
    sync_shape_t shape;
    bit<64> sent;
    bit<64> distance;
    bit<64> threshold;
    bool falls;

    apply {
        shape_of.apply(group, shape);
        if (index < shape.size) {
            sync_sent.read(sent, shape.base + index);
            sync_threshold.read(threshold, (bit<32>)group);
            distance = sync_distance(shape, value, sent);
            falls = sync_falls(shape, held, value, sent);
            if ((distance > threshold || falls) && SYNC_RULE_TESTED) {
                enqueue.apply(group, index, distance, falls, shape);
            }
        }
    }
}

#endif
