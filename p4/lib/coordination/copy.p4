// The tail's next message to the joiner: BEGIN, a slot, a lane, the end, or the hand-over
// (rule 15).

#ifndef STATEPLANE_COORDINATION_COPY_P4
#define STATEPLANE_COORDINATION_COPY_P4

#include "coordination_message.p4"
#include "events.p4"
#include "group.p4"
#include "lanes.p4"
#include "metadata.p4"
#include "rules.p4"
#include "send.p4"
#include "slots.p4"

// Places of a copy: slots, then lanes, then the end; BEGIN's answer has PLACE_BEGIN.
const bit<16> PLACE_END = COORDINATION_SLOTS + COORDINATION_LANES;
const bit<16> PLACE_BEGIN = 0xffff;

// True if place `cursor` has anything to copy; if not, goes on to the next.
control SkipEmptyPlace(in coordination_metadata_t meta, inout bit<16> cursor, inout bool found) {
    bit<32> index;
    bit<32> era;

    apply {
        if (!found && cursor < PLACE_END) {
            if (cursor < COORDINATION_SLOTS) {
                index = meta.group.index * COORDINATION_SLOTS + (bit<32>)cursor;
                slot_era.read(era, index);
            } else {
                index = meta.group.index * COORDINATION_LANES
                    + (bit<32>)(cursor - COORDINATION_SLOTS);
                lane_era.read(era, index);
            }
            if (era == meta.group.era) {
                found = true;
            } else {
                cursor = cursor + 1;
            }
        }
    }
}

// Makes the message what the joiner gets next. `more` says that no place with anything in it
// has been found yet.
control SendCopy(
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta,
    out bool more
) {
    SkipEmptyPlace() skip_1;
    SkipEmptyPlace() skip_2;
    SkipEmptyPlace() skip_3;
    SkipEmptyPlace() skip_4;
    SkipEmptyPlace() skip_5;
    SkipEmptyPlace() skip_6;
    SkipEmptyPlace() skip_7;
    SkipEmptyPlace() skip_8;
    LoadRecord() load_record;
    PutKept() put_kept;
    SendToSwitch() send_to_joiner;
    bit<16> cursor;
    bit<32> index;
    bool found;

    apply {
        more = false;
        found = true;
        group_round.read(hdr.message.guard_number, meta.group.index);
        if (meta.group.progress == PROGRESS_BEGINS) {
            hdr.message.type = TYPE_BEGIN;
            hdr.message.number = meta.group.applied;
            group_round.write(meta.group.index, meta.group.applied);
        } else if (meta.group.progress == PROGRESS_COPIES) {
            hdr.message.type = TYPE_COPY;
            group_cursor.read(cursor, meta.group.index);
            found = false;
            skip_1.apply(meta, cursor, found);
            skip_2.apply(meta, cursor, found);
            skip_3.apply(meta, cursor, found);
            skip_4.apply(meta, cursor, found);
            skip_5.apply(meta, cursor, found);
            skip_6.apply(meta, cursor, found);
            skip_7.apply(meta, cursor, found);
            skip_8.apply(meta, cursor, found);
            group_cursor.write(meta.group.index, cursor);
            if (!found && cursor >= PLACE_END) {
                found = true;
                // No more is acknowledged until the joiner has what is here.
                meta.group.progress = PROGRESS_CLOSES;
                group_progress.write(meta.group.index, PROGRESS_CLOSES);
                group_acked.write(meta.group.index, meta.group.applied);
            } else if (!found) {
                more = true;
            } else if (cursor < COORDINATION_SLOTS) {
                meta.slot.found = true;
                meta.slot.index = meta.group.index * COORDINATION_SLOTS + (bit<32>)cursor;
                load_record.apply(hdr, meta);
                slot_key.read(hdr.message.key, meta.slot.index);
            } else {
                index = meta.group.index * COORDINATION_LANES
                    + (bit<32>)(cursor - COORDINATION_SLOTS);
                put_kept.apply(index, hdr.message);
                hdr.message.record = hdr.message.number;
                lane_number.read(hdr.message.number, index);
                lane_request.read(hdr.message.request, index);
                lane_incarnation.read(hdr.message.lane_incarnation, index);
            }
            hdr.message.slot = cursor;
        } else {
            hdr.message.type = TYPE_HAND_OVER;
            group_floor.read(hdr.message.number, meta.group.index);
        }
        if (meta.group.progress == PROGRESS_CLOSES) {
            hdr.message.type = TYPE_COPY;
            hdr.message.number = 0;
            hdr.message.slot = PLACE_END;
        }
        if (found) {
            coordination_events.count(EVENT_COPY_SENT);
            send_to_joiner.apply(meta.group.successor, hdr, meta);
        }
    }
}

#endif
