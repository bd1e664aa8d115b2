// The head's judgement of a request (rules 3, 5, 6, 8, 21).

#ifndef STATEPLANE_COORDINATION_DECIDE_P4
#define STATEPLANE_COORDINATION_DECIDE_P4

#include "coordination_message.p4"
#include "events.p4"
#include "group.p4"
#include "lanes.p4"
#include "lock.p4"
#include "metadata.p4"
#include "rules.p4"
#include "slots.p4"

// Outcome of a request.
const bit<8> VERDICT_DROP = 0;
const bit<8> VERDICT_REFUSE = 1;
const bit<8> VERDICT_QUESTION = 2;
const bit<8> VERDICT_ENTRY = 3;

// True if what lies in the slot that was found, if one was, meets a condition. Kind and number
// are those of the slot.
control MeetsCondition(
    in coordination_t message,
    in coordination_metadata_t meta,
    in bit<8> kind,
    in bit<64> number,
    out bool meets
) {
    bit<16> length;
    bit<128> chunk;

    apply {
        meets = true;
        if (message.condition != CONDITION_NONE) {
            meets = kind == KIND_VALUE;
            if (message.condition == CONDITION_ABSENT) {
                meets = !meets;
            } else if (message.condition == CONDITION_NUMBER) {
                meets = meets && number == message.operand[63:0];
            } else if (message.condition == CONDITION_VALUE && meets) {
                slot_length.read(length, meta.slot.index);
                slot_value_0.read(chunk, meta.slot.index);
                // Bytes behind a value do not count.
                meets = length == (bit<16>)message.operand_length
                    && ((chunk ^ message.operand) >> (128 - (message.operand_length << 3))) == 0;
            }
        }
    }
}

// True if the request's guard holds, a condition on another record of the group (rule 21).
control GuardHolds(in coordination_t message, inout coordination_metadata_t meta, out bool holds) {
    FindSlot() find_slot;
    bit<8> kind;
    bit<64> number;
    bit<64> token;

    apply {
        find_slot.apply(message.guard_key, meta);
        kind = KIND_NONE;
        number = 0;
        token = 0;
        if (meta.slot.found) {
            slot_kind.read(kind, meta.slot.index);
            slot_number.read(number, meta.slot.index);
            slot_token.read(token, meta.slot.index);
        }
        holds = kind == KIND_VALUE || kind == KIND_LOCK;
        if (message.guard_condition == CONDITION_ABSENT) {
            holds = !holds;
        } else if (message.guard_condition == CONDITION_NUMBER) {
            holds = holds && number == message.guard_number;
        } else if (message.guard_condition == CONDITION_TOKEN) {
            holds = kind == KIND_LOCK && token == message.guard_number;
        }
        holds = holds || !RULE_GUARD;
    }
}

// Judges WRITE and DELETE. If the outcome is DONE the message has the new record, else the
// record as it is.
control JudgeWrite(
    in bit<64> number,
    in bool guarded,
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta
) {
    FindSlot() find_slot;
    FindFree() find_free;
    MeetsCondition() meets_condition;
    LoadRecord() load_record;
    DropValue() drop_value;
    bit<8> kind;
    bit<64> record;
    bit<64> token;
    bool holds;

    apply {
        find_slot.apply(hdr.message.key, meta);
        kind = KIND_NONE;
        record = 0;
        token = 0;
        if (meta.slot.found) {
            slot_kind.read(kind, meta.slot.index);
            slot_number.read(record, meta.slot.index);
            slot_token.read(token, meta.slot.index);
        }
        meets_condition.apply(hdr.message, meta, kind, record, holds);
        if (guarded) {
            hdr.message.outcome = OUTCOME_GUARDED;
        } else if (kind != KIND_LOCK && hdr.message.token < token && RULE_TOKEN) {
            hdr.message.outcome = OUTCOME_STALE_TOKEN;
        } else if (kind == KIND_LOCK) {
            hdr.message.outcome = OUTCOME_WRONG_KIND;
        } else if (!holds) {
            hdr.message.outcome = OUTCOME_MISMATCH;
        } else if (hdr.message.operation == OPERATION_DELETE && kind != KIND_VALUE) {
            hdr.message.outcome = OUTCOME_ABSENT;
        } else {
            hdr.message.outcome = OUTCOME_DONE;
            if (!meta.slot.found) {
                find_free.apply(meta, holds);
                if (!holds) {
                    hdr.message.outcome = OUTCOME_FULL;
                }
            }
        }

        if (hdr.message.outcome == OUTCOME_DONE) {
            hdr.message.record = number;
            hdr.message.slot = (bit<16>)(meta.slot.index - meta.group.index * COORDINATION_SLOTS);
            if (hdr.message.operation == OPERATION_WRITE) {
                hdr.message.kind = KIND_VALUE;
            } else {
                hdr.message.kind = KIND_NONE;
                if (hdr.message.token != 0 && RULE_TOKEN_KEPT) {
                    hdr.message.kind = KIND_EMPTY;
                }
                hdr.message.session = 0;
                drop_value.apply(hdr);
            }
        } else {
            load_record.apply(hdr, meta);
        }
    }
}

// Judges a request that is numbered. The message becomes its entry's, or has the outcome of
// a refusal.
control Decide(
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta,
    out bit<8> verdict
) {
    LoadLane() load_lane;
    LoadLane() load_target;
    GuardHolds() guard_holds;
    JudgeWrite() judge_write;
    JudgeLock() judge_lock;
    DropValue() drop_value;
    bit<64> number;
    bit<64> acked;
    bit<8> keeps;
    bool bounded;
    bool holds;

    apply {
        load_lane.apply(hdr.message.lane, meta);
        verdict = VERDICT_REFUSE;
        if (hdr.message.lane_incarnation > meta.lane.incarnation && RULE_LANE_BEGINS) @unlikely {
            // Who has the lane's later incarnation knows that the earlier one has ended.
            meta.lane.request = 0;
        }
        if (hdr.message.lane_incarnation < meta.lane.incarnation && RULE_LANE_INCARNATION) {
            hdr.message.outcome = OUTCOME_LANE_ENDED;
        } else if (hdr.message.lane_incarnation > meta.lane.incarnation && !RULE_LANE_BEGINS) {
            hdr.message.outcome = OUTCOME_BUSY;
        } else if (hdr.message.request == meta.lane.request && RULE_DUPLICATE) {
            verdict = VERDICT_QUESTION;
            hdr.message.number = meta.lane.number;
        } else if (hdr.message.request < meta.lane.request && RULE_LOWER_REQUEST) {
            verdict = VERDICT_DROP;
            coordination_events.count(EVENT_LOWER_REQUEST);
        } else if (meta.group.applied[COUNT_BITS - 1:0] == 0xffffffffffff) {
            hdr.message.outcome = OUTCOME_EXHAUSTED;
        } else {
            number = meta.group.applied + 1;
            group_acked.read(acked, meta.group.index);
            // Who answers itself has no one to wait for, but a joiner that is to catch up.
            bounded = !meta.group.answers || meta.group.progress == PROGRESS_CLOSES;
            if (!bounded && meta.group.progress != PROGRESS_NONE) @unlikely {
                group_holds.read(keeps, meta.group.index);
                if (keeps == 1) {
                    bounded = true;
                    group_joiner_newest.read(acked, meta.group.index);
                }
            }
            if (bounded && number > acked + COORDINATION_RING && RULE_RING_BOUND) {
                hdr.message.outcome = OUTCOME_BUSY;
                coordination_events.count(EVENT_BUSY);
                meta.extra = meta.extra | EXTRA_PROBE;
            } else {
                verdict = VERDICT_ENTRY;
                holds = true;
                if (hdr.message.guard_condition != CONDITION_NONE) {
                    guard_holds.apply(hdr.message, meta, holds);
                }
                if (hdr.message.operation == OPERATION_WRITE
                    || hdr.message.operation == OPERATION_DELETE) {
                    judge_write.apply(number, !holds, hdr, meta);
                } else if (hdr.message.operation == OPERATION_ACQUIRE
                    || hdr.message.operation == OPERATION_RELEASE) {
                    judge_lock.apply(number, !holds, hdr, meta);
                } else {
                    hdr.message.outcome = OUTCOME_DONE;
                    if (hdr.message.operation == OPERATION_LANE_NEXT) {
                        load_target.apply(hdr.message.slot, meta);
                        if (meta.lane.incarnation > hdr.message.handle[15:0]) {
                            hdr.message.outcome = OUTCOME_MISMATCH;
                        }
                    } else {
                        // The client's would be no place, which members refuse.
                        hdr.message.slot = 0;
                    }
                    hdr.message.kind = KIND_NONE;
                    hdr.message.record = 0;
                    hdr.message.token = 0;
                    drop_value.apply(hdr);
                }
                hdr.message.number = number;
                coordination_events.count(EVENT_DECIDED);
            }
        }
    }
}

#endif
