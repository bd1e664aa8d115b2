// Around each access of a location, as functions: what SyncBefore and SyncAfter (sync/change.p4)
// do. Those for actions and parsers have no conditional statements, which BMv2 has not there. What
// they write is the view's, so that packets which wait may have them in egress.
//
// A program that applies these declares one location more than its groups have (SYNC_LOCATIONS)
// and one place more than their rings (SYNC_RINGS): what changes nothing is written there.

#ifndef STATEPLANE_SYNC_ACCESS_P4
#define STATEPLANE_SYNC_ACCESS_P4

#include "change.p4"
#include "rules.p4"
#include "shape.p4"
#include "state.p4"
#include "sync_message.p4"

// Place of a location among all; that of none for an index beyond the group.
bit<32> sync_place(in sync_shape_t shape, in bit<32> index) {
    return index < shape.size ? shape.base + index : SYNC_LOCATIONS - 1;
}

// True if a location has not crossed the last cut.
bool sync_crosses(in bit<16> group, in bit<32> index, in sync_shape_t shape) {
    bit<32> epoch;
    bit<1> crossed;
    sync_epoch.read(epoch, (bit<32>)group);
    sync_crossed.read(crossed, sync_place(shape, index));
    return crossed != epoch[0:0] && index < shape.size && SYNC_RULE_CROSS;
}

// Before a location that holds `held` is read or written: has it cross the last cut. Returns what
// it holds then, which the caller writes to it (rule 15).
@side_effects_allowed
bit<64> sync_cross(in bit<16> group, in bit<32> index, in bit<64> held, in sync_shape_t shape) {
    bit<32> place = sync_place(shape, index);
    bit<32> epoch;
    bit<1> crossed;
    bit<8> kind;
    bit<64> fill;
    bit<64> staged;
    sync_epoch.read(epoch, (bit<32>)group);
    sync_crossed.read(crossed, place);
    bool crosses = crossed != epoch[0:0] && index < shape.size && SYNC_RULE_CROSS;
    sync_crossed.write(place, crosses ? epoch[0:0] : crossed);
    sync_frozen.write(crosses ? place : SYNC_LOCATIONS - 1, held);
    sync_kind.read(kind, (bit<32>)group);
    sync_fill.read(fill, (bit<32>)group);
    sync_staged.read(staged, place);
    bool is_staged = kind == SYNC_CUT_STAGED && sync_is_staged(group, place);
    bool fills = crosses && (kind == SYNC_CUT_FILLED || is_staged);
    fill = is_staged ? staged : fill;
    sync_sent.write(fills ? place : SYNC_LOCATIONS - 1, fill);
    return fills ? fill : held;
}

// After a location was written, which held `held` and holds `value`: queues it if that took it beyond t
// (rules 2, 3), or if its distance fell (rule 25).
@side_effects_allowed
void sync_changed(
    in bit<16> group,
    in bit<32> index,
    in bit<64> held,
    in bit<64> value,
    in sync_shape_t shape
) {
    bit<32> place = sync_place(shape, index);
    bit<64> sent;
    bit<64> threshold;
    bit<2> queued;
    bit<64> tail;
    bit<64> peak;
    sync_sent.read(sent, place);
    sync_threshold.read(threshold, (bit<32>)group);
    bit<64> distance = sync_distance(shape, value, sent);
    bool falls = sync_falls(shape, held, value, sent);
    bool beyond = (distance > threshold || falls) && index < shape.size && SYNC_RULE_TESTED;
    sync_queued.read(queued, place);
    bool joins = beyond && queued == 0;
    sync_queued.write(place, beyond ? queued | (falls ? SYNC_QUEUED_BREAK : SYNC_QUEUED) : queued);
    sync_tail.read(tail, (bit<32>)group);
    sync_ring.write(
        joins ? shape.ring_base + (tail[31:0] & shape.ring_mask) : SYNC_RINGS - 1,
        index
    );
    sync_tail.write((bit<32>)group, joins ? tail + 1 : tail);
    sync_peak.read(peak, (bit<32>)group);
    sync_peak.write((bit<32>)group, beyond && distance > peak && SYNC_RULE_PEAK ? distance : peak);
    sync_greatest.read(peak, (bit<32>)group);
    sync_greatest.write((bit<32>)group, beyond && distance > peak ? distance : peak);
}

// As sync_changed, for the bodies of controls.
@side_effects_allowed
void sync_changed_in_body(
    in bit<16> group,
    in bit<32> index,
    in bit<64> held,
    in bit<64> value,
    in sync_shape_t shape
) {
    bit<64> sent;
    bit<64> threshold;
    bit<64> distance;
    bool falls;
    bool joined;
    if (index < shape.size && SYNC_RULE_TESTED) {
        sync_sent.read(sent, shape.base + index);
        sync_threshold.read(threshold, (bit<32>)group);
        distance = sync_distance(shape, value, sent);
        falls = sync_falls(shape, held, value, sent);
        if (distance > threshold || falls) {
            joined = sync_enqueue(group, index, distance, falls, shape);
        }
    }
}

#endif
