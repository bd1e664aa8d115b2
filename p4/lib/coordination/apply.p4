// The effect of a decided operation on ring, slots and lanes (rules 2, 3, 7).

#ifndef STATEPLANE_COORDINATION_APPLY_P4
#define STATEPLANE_COORDINATION_APPLY_P4

#include "coordination_message.p4"
#include "events.p4"
#include "group.p4"
#include "lanes.p4"
#include "metadata.p4"
#include "ring.p4"
#include "rules.p4"
#include "slots.p4"

// Moves lane `slot` of the message on to its next incarnation (rule 19).
control ApplyLaneNext(in coordination_t message, inout coordination_metadata_t meta) {
    LoadLane() load_lane;
    StoreKept() store_kept;

    apply {
        load_lane.apply(message.slot, meta);
        if (meta.lane.incarnation < message.handle[15:0] && meta.lane.number < message.number) {
            lane_era.write(meta.lane.index, meta.group.era);
            lane_incarnation.write(meta.lane.index, message.handle[15:0]);
            lane_request.write(meta.lane.index, 0);
            lane_number.write(meta.lane.index, message.number);
            store_kept.apply(meta.lane.index, 0, 0, 0, 0);
        }
    }
}

// Notes the request as its lane's last (rules 5, 6).
control ApplyLane(in coordination_t message, inout coordination_metadata_t meta) {
    StoreKept() store_kept;
    StoreKept() forget_kept;
    bit<32> era;
    bit<64> number;
    bit<16> incarnation;

    apply {
        meta.lane.index = meta.group.index * COORDINATION_LANES + (bit<32>)message.lane;
        lane_era.read(era, meta.lane.index);
        lane_number.read(number, meta.lane.index);
        // A lane that was copied may be newer (rule 15).
        if (era != meta.group.era || number < message.number || !RULE_NEWER_STAYS) {
            lane_incarnation.read(incarnation, meta.lane.index);
            lane_incarnation.write(meta.lane.index, message.lane_incarnation);
            lane_request.write(meta.lane.index, message.request);
            lane_number.write(meta.lane.index, message.number);
            if (message.operation != OPERATION_RESOLVE || !RULE_KEPT_REQUEST) {
                store_kept.apply(
                    meta.lane.index,
                    message.request,
                    message.number,
                    message.outcome,
                    message.token
                );
            } else if (era != meta.group.era || incarnation != message.lane_incarnation) {
                forget_kept.apply(meta.lane.index, 0, 0, 0, 0);
            }
            if (era != meta.group.era) {
                lane_era.write(meta.lane.index, meta.group.era);
            }
        }
    }
}

// Applies the message, an entry that is the exactly next.
control ApplyEntry(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    KeepEntry() keep_entry;
    StoreRecord() store_record;
    ApplyLaneNext() apply_lane_next;
    ApplyLane() apply_lane;
    bit<32> index;
    bit<32> era;
    bit<64> number;
    bit<64> floor;

    apply {
        meta.group.applied = hdr.message.number;
        group_applied.write(meta.group.index, meta.group.applied);
        keep_entry.apply(hdr, meta);
        // The outcome changed the record.
        if (hdr.message.record == hdr.message.number) {
            index = meta.group.index * COORDINATION_SLOTS + (bit<32>)hdr.message.slot;
            number = 0;
            if (meta.group.place == meta.group.members) @unlikely {
                // A slot that was copied may be newer (rule 15).
                slot_era.read(era, index);
                if (era == meta.group.era && RULE_NEWER_STAYS) {
                    slot_number.read(number, index);
                }
            }
            if (number < hdr.message.number) {
                store_record.apply(index, meta.group.era, hdr);
            }
        }
        if (hdr.message.operation == OPERATION_LANE_NEXT
            && hdr.message.outcome == OUTCOME_DONE) @unlikely {
            apply_lane_next.apply(hdr.message, meta);
        }
        apply_lane.apply(hdr.message, meta);
        if (meta.group.place == meta.group.members
            && meta.group.progress == PROGRESS_HANDS_OVER) @unlikely {
            group_floor.read(floor, meta.group.index);
            meta.group.answers = meta.group.applied >= floor || !RULE_FLOOR;
        }
    }
}

#endif
