// A switch joins: the tail begins, copies slot by slot and lane by lane, and hands over; the
// joiner takes what is newer (rule 15).

#ifndef STATEPLANE_COORDINATION_JOIN_P4
#define STATEPLANE_COORDINATION_JOIN_P4

#include "coordination_message.p4"
#include "events.p4"
#include "extra.p4"
#include "group.p4"
#include "lanes.p4"
#include "metadata.p4"
#include "ring.p4"
#include "rules.p4"
#include "send.p4"
#include "slots.p4"

// The joiner takes BEGIN, a copy or the hand-over, and says so.
control HandleJoiner(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    AskPredecessor() ask_predecessor;
    StoreRecord() store_record;
    StoreKept() store_kept;
    DropValue() drop_value;
    SendToSwitch() send_to_predecessor;
    bit<32> index;
    bit<32> era;
    bit<64> number;
    bit<64> round;
    bit<16> incarnation;
    bool taken;

    apply {
        taken = false;
        group_round.read(round, meta.group.index);
        if (meta.group.place != meta.group.members) {
            coordination_events.count(EVENT_NOT_MEMBER);
        } else if (hdr.message.type == TYPE_BEGIN) {
            if (meta.group.progress == PROGRESS_BEGINS
                || (meta.group.progress == PROGRESS_COPIES && hdr.message.number >= round)) {
                taken = true;
                group_round.write(meta.group.index, hdr.message.number);
                group_progress.write(meta.group.index, PROGRESS_COPIES);
                if (hdr.message.number > meta.group.applied) {
                    meta.group.applied = hdr.message.number;
                    group_applied.write(meta.group.index, meta.group.applied);
                    group_first.write(meta.group.index, meta.group.applied + 1);
                }
                hdr.message.guard_number = hdr.message.number;
                hdr.message.slot = PLACE_BEGIN;
            }
            hdr.message.type = TYPE_COPIED;
        } else if (hdr.message.type == TYPE_COPY) {
            if (meta.group.progress == PROGRESS_COPIES) {
                taken = true;
                if (hdr.message.slot < COORDINATION_SLOTS) {
                    index = meta.group.index * COORDINATION_SLOTS + (bit<32>)hdr.message.slot;
                    slot_era.read(era, index);
                    slot_number.read(number, index);
                    if (era != meta.group.era || number < hdr.message.record || !RULE_NEWER_STAYS) {
                        store_record.apply(index, meta.group.era, hdr);
                        coordination_events.count(EVENT_COPY_TAKEN);
                    } else {
                        coordination_events.count(EVENT_COPY_OLD);
                    }
                } else if (hdr.message.slot < PLACE_END) {
                    index = meta.group.index * COORDINATION_LANES
                        + (bit<32>)(hdr.message.slot - COORDINATION_SLOTS);
                    lane_era.read(era, index);
                    lane_number.read(number, index);
                    if (era != meta.group.era || number < hdr.message.number || !RULE_NEWER_STAYS) {
                        lane_era.write(index, meta.group.era);
                        lane_incarnation.write(index, hdr.message.lane_incarnation);
                        lane_request.write(index, hdr.message.request);
                        lane_number.write(index, hdr.message.number);
                        store_kept.apply(
                            index,
                            hdr.message.handle,
                            hdr.message.record,
                            hdr.message.outcome,
                            hdr.message.token
                        );
                        coordination_events.count(EVENT_COPY_TAKEN);
                    } else {
                        // The entry of a RESOLVE came first, and left nothing in the lane: what
                        // the lane keeps is older (rule 6).
                        lane_incarnation.read(incarnation, index);
                        lane_kept_number.read(number, index);
                        if (incarnation == hdr.message.lane_incarnation
                            && number < hdr.message.record
                            && RULE_KEPT_COPIED) {
                            store_kept.apply(
                                index,
                                hdr.message.handle,
                                hdr.message.record,
                                hdr.message.outcome,
                                hdr.message.token
                            );
                        }
                        coordination_events.count(EVENT_COPY_OLD);
                    }
                }
            }
            hdr.message.type = TYPE_COPIED;
        } else {
            if (meta.group.progress == PROGRESS_COPIES
                || meta.group.progress == PROGRESS_HANDS_OVER) {
                taken = true;
                group_floor.write(meta.group.index, hdr.message.number);
                group_progress.write(meta.group.index, PROGRESS_HANDS_OVER);
            }
            hdr.message.type = TYPE_HANDED;
        }
        if (taken) {
            if (hdr.message.newest > meta.group.applied) {
                ask_predecessor.apply(hdr.message.newest, false, meta);
            }
            drop_value.apply(hdr);
            send_to_predecessor.apply(meta.group.predecessor, hdr, meta);
        } else {
            coordination_events.count(EVENT_COPY_REFUSED);
        }
    }
}

// The tail learns what the joiner has.
control HandleCopied(in coordination_headers_t hdr, inout coordination_metadata_t meta) {
    bit<16> cursor;
    bit<64> round;
    bit<64> closing;
    bit<64> newest;

    apply {
        group_cursor.read(cursor, meta.group.index);
        group_round.read(round, meta.group.index);
        group_acked.read(closing, meta.group.index);
        group_joiner_newest.read(newest, meta.group.index);
        if (hdr.message.type == TYPE_COPIED
            && hdr.message.guard_number == round
            && hdr.message.newest > newest) {
            group_joiner_newest.write(meta.group.index, hdr.message.newest);
        }
        if (meta.group.place + 1 != meta.group.members || meta.group.joins == 0) {
            coordination_events.count(EVENT_NOT_MEMBER);
        } else if (hdr.message.type == TYPE_HANDED) {
            if (meta.group.progress == PROGRESS_HANDS_OVER) {
                group_progress.write(meta.group.index, PROGRESS_HANDED);
            }
        } else if (hdr.message.guard_number != round && RULE_ROUND) {
            coordination_events.count(EVENT_COPIED_OLD);
        } else if (meta.group.progress == PROGRESS_BEGINS && hdr.message.slot == PLACE_BEGIN) {
            group_progress.write(meta.group.index, PROGRESS_COPIES);
            group_cursor.write(meta.group.index, 0);
            meta.extra = meta.extra | EXTRA_COPY;
        } else if (meta.group.progress == PROGRESS_COPIES && hdr.message.slot == cursor) {
            group_cursor.write(meta.group.index, cursor + 1);
            meta.extra = meta.extra | EXTRA_COPY;
        } else if (meta.group.progress == PROGRESS_CLOSES && hdr.message.slot == PLACE_END) {
            // What the joiner lacks is in the ring here as long as no one acknowledges more.
            if (hdr.message.newest >= closing || !RULE_CLOSES) {
                group_progress.write(meta.group.index, PROGRESS_HANDS_OVER);
                group_floor.write(meta.group.index, meta.group.applied);
                group_leased_until.write(meta.group.index, 0);
                coordination_events.count(EVENT_HANDED_OVER);
            }
            meta.extra = meta.extra | EXTRA_COPY;
        } else {
            coordination_events.count(EVENT_COPIED_OLD);
        }
    }
}

// The group that this switch feeds, or fed last.
register<bit<32>>(1) coordination_fed;
// The group that was looked at last.
register<bit<32>>(1) coordination_looked;

// True if this switch feeds the joiner of a group, and has not been told that it is done.
control FeedsGroup(in bit<32> index, out bool feeds) {
    bit<8> joins;
    bit<8> place;
    bit<8> members;
    bit<8> progress;

    apply {
        group_joins.read(joins, index);
        group_place.read(place, index);
        group_members.read(members, index);
        group_progress.read(progress, index);
        feeds = joins == 1
            && place + 1 == members
            && progress >= PROGRESS_BEGINS
            && progress <= PROGRESS_HANDS_OVER;
    }
}

// Goes on to the next group unless this one is fed.
control FeedsNext(inout bit<32> index, inout bool feeds) {
    FeedsGroup() feeds_group;

    apply {
        if (!feeds) {
            index = index + 1;
            if (index >= COORDINATION_GROUPS) {
                index = 0;
            }
            feeds_group.apply(index, feeds);
        }
    }
}

// A copy is due: of one of the next groups that is to be fed, or of the one that is. So all have
// their turn, also beside one whose configuration others have left, whose copy never ends.
control ContinueCopy(inout coordination_metadata_t meta) {
    FeedsGroup() feeds_group;
    FeedsNext() next_1;
    FeedsNext() next_2;
    FeedsNext() next_3;
    FeedsNext() next_4;
    bit<32> index;
    bool feeds;

    apply {
        feeds = false;
        coordination_looked.read(index, 0);
        next_1.apply(index, feeds);
        next_2.apply(index, feeds);
        next_3.apply(index, feeds);
        next_4.apply(index, feeds);
        coordination_looked.write(0, index);
        if (feeds) {
            coordination_fed.write(0, index);
        } else {
            coordination_fed.read(index, 0);
            feeds_group.apply(index, feeds);
        }
        if (feeds) {
            meta.extra = EXTRA_COPY;
            meta.extra_group = (bit<16>)index;
        } else {
            coordination_events.count(EVENT_TICK_IDLE);
        }
    }
}

#endif
