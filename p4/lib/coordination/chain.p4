// Messages along the chain: what each member does with them (rules 2 to 5, 14).

#ifndef STATEPLANE_COORDINATION_CHAIN_P4
#define STATEPLANE_COORDINATION_CHAIN_P4

#include "answer.p4"
#include "apply.p4"
#include "coordination_message.p4"
#include "decide.p4"
#include "events.p4"
#include "extra.p4"
#include "group.p4"
#include "join.p4"
#include "lease.p4"
#include "metadata.p4"
#include "rules.p4"
#include "send.p4"
#include "watch.p4"

// Sends on, or answers, an entry that was applied.
control PassEntry(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    PushEntry() push_entry;
    AnswerEntry() answer_entry;
    SendToSwitch() send_to_successor;

    apply {
        if (meta.group.answers || !RULE_ANSWERER_PUSHES) {
            push_entry.apply(hdr.message.number, meta);
        }
        if (meta.group.answers) {
            if (meta.group.successor != 0 && (meta.extra & EXTRA_ASK) == 0) @unlikely {
                // For the joiner, which asks for what does not come (rule 15).
                meta.extra = meta.extra | EXTRA_ENTRIES;
                meta.extra_from = hdr.message.number;
                meta.extra_until = hdr.message.number;
            }
            answer_entry.apply(hdr, meta);
        } else if (meta.group.successor != 0) {
            send_to_successor.apply(meta.group.successor, hdr, meta);
        }
    }
}

// A request at the head that takes a number, or was decided before.
control HandleUpdate(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    Decide() decide;
    ApplyEntry() apply_entry;
    PutConfiguration() put_configuration;
    PassEntry() pass_entry;
    AnswerQuestion() answer_question;
    SendToSwitch() send_question;
    Refuse() refuse;
    bit<8> verdict;

    apply {
        decide.apply(hdr, meta, verdict);
        if (verdict == VERDICT_ENTRY) {
            if (hdr.message.outcome != OUTCOME_DONE && !RULE_FAILURES_PASS) {
                verdict = VERDICT_REFUSE;
            }
        }
        if (verdict == VERDICT_ENTRY) {
            hdr.message.type = TYPE_ENTRY;
            put_configuration.apply(hdr.message, meta);
            apply_entry.apply(hdr, meta);
            pass_entry.apply(hdr, meta);
        } else if (verdict == VERDICT_QUESTION) {
            hdr.message.type = TYPE_QUESTION;
            put_configuration.apply(hdr.message, meta);
            if (meta.group.answers) {
                answer_question.apply(hdr, meta);
            } else {
                send_question.apply(meta.group.successor, hdr, meta);
            }
        } else if (verdict == VERDICT_REFUSE) {
            refuse.apply(hdr.message.outcome, hdr, meta);
        }
    }
}

// Judges an entry's condition anew, as no member is to do (rule 3; NetChain judges CAS at each
// hop): for the rule's switch alone.
control JudgeAgain(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    FindSlot() find_slot;
    MeetsCondition() meets_condition;
    LoadRecord() load_record;
    bit<8> kind;
    bit<64> record;
    bool meets;

    apply {
        find_slot.apply(hdr.message.key, meta);
        kind = KIND_NONE;
        record = 0;
        if (meta.slot.found) {
            slot_kind.read(kind, meta.slot.index);
            slot_number.read(record, meta.slot.index);
        }
        meets_condition.apply(hdr.message, meta, kind, record, meets);
        if (!meets) {
            hdr.message.outcome = OUTCOME_MISMATCH;
            load_record.apply(hdr, meta);
        }
    }
}

// An entry from the predecessor.
control HandleEntry(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    AskPredecessor() ask_for_missing;
    AskPredecessor() ask_for_more;
    JudgeAgain() judge_again;
    ApplyEntry() apply_entry;
    PassEntry() pass_entry;
    bit<64> until;
    bit<64> newest;

    apply {
        newest = hdr.message.newest;
        if (meta.group.place == meta.group.members && meta.group.progress == PROGRESS_BEGINS) {
            coordination_events.count(EVENT_BEFORE_BEGIN);
        } else if (hdr.message.number <= meta.group.applied && RULE_EXACTLY_NEXT) {
            coordination_events.count(EVENT_DUPLICATE_ENTRY);
        } else if (hdr.message.number != meta.group.applied + 1 && RULE_EXACTLY_NEXT) {
            coordination_events.count(EVENT_MISSING_ENTRY);
            group_asked_until.read(until, meta.group.index);
            ask_for_missing.apply(newest, hdr.message.number <= until, meta);
        } else if (hdr.message.lane >= COORDINATION_LANES
            || (hdr.message.operation == OPERATION_LANE_NEXT
                && hdr.message.slot >= COORDINATION_LANES)
            || (hdr.message.operation != OPERATION_LANE_NEXT
                && hdr.message.slot >= COORDINATION_SLOTS)) {
            coordination_events.count(EVENT_BAD_MESSAGE);
        } else {
            coordination_events.count(EVENT_APPLIED);
            if (!RULE_OUTCOME_COPIED) {
                judge_again.apply(hdr, meta);
            }
            apply_entry.apply(hdr, meta);
            if (newest > meta.group.applied) @unlikely {
                ask_for_more.apply(newest, false, meta);
            }
            pass_entry.apply(hdr, meta);
        }
    }
}

// A question, a read or a probe from the predecessor, which bears what that has.
control HandlePassing(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    AskPredecessor() ask_predecessor;
    AnswerQuestion() answer_question;
    AnswerRead() answer_read;
    AnswerWatch() answer_watch;
    SendToSwitch() send_to_successor;

    apply {
        if (hdr.message.newest > meta.group.applied) @unlikely {
            ask_predecessor.apply(hdr.message.newest, false, meta);
        }
        if (!meta.group.answers) {
            if (meta.group.successor != 0) {
                send_to_successor.apply(meta.group.successor, hdr, meta);
            }
        } else if (hdr.message.type == TYPE_QUESTION) {
            answer_question.apply(hdr, meta);
        } else if (hdr.message.type == TYPE_PASS && hdr.message.operation == OPERATION_WATCH) {
            answer_watch.apply(hdr, meta);
        } else if (hdr.message.type == TYPE_PASS) {
            answer_read.apply(hdr, meta);
        } else {
            meta.extra = meta.extra | EXTRA_ACK;
        }
    }
}

// The successor lacks entries.
control HandleAsk(in coordination_headers_t hdr, inout coordination_metadata_t meta) {
    apply {
        meta.extra = meta.extra | EXTRA_ENTRIES;
        meta.extra_from = hdr.message.number;
        meta.extra_until = hdr.message.number + (ASKED_ENTRIES - 1);
        if (hdr.message.record < meta.extra_until) {
            meta.extra_until = hdr.message.record;
        }
        if (meta.group.applied < meta.extra_until) {
            meta.extra_until = meta.group.applied;
        }
        if (meta.extra_from > meta.extra_until) {
            meta.extra = 0;
        }
    }
}

// All have the entries so far.
control HandleAck(in coordination_headers_t hdr, in coordination_metadata_t meta) {
    bit<64> acked;

    apply {
        group_acked.read(acked, meta.group.index);
        if (hdr.message.number > acked && hdr.message.number <= meta.group.applied) {
            group_acked.write(meta.group.index, hdr.message.number);
        }
    }
}

// A message of another switch of the chain.
control HandleChain(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    HandleEntry() handle_entry;
    HandlePassing() handle_passing;
    HandleAsk() handle_ask;
    HandleAck() handle_ack;
    HandleLease() handle_lease;
    HandleJoiner() handle_joiner;
    HandleCopied() handle_copied;
    bit<48> blocked;
    bool from_predecessor;
    bool from_successor;

    apply {
        group_blocked_until.read(blocked, meta.group.index);
        from_predecessor = hdr.ipv4.source == meta.group.predecessor || !RULE_PREDECESSOR;
        from_successor = hdr.ipv4.source == meta.group.successor || !RULE_SUCCESSOR;
        if (meta.group.place == PLACE_NONE) {
            coordination_events.count(EVENT_NOT_MEMBER);
        } else if (hdr.message.epoch != meta.group.epoch && RULE_EPOCH) {
            coordination_events.count(EVENT_OTHER_EPOCH);
        } else if (meta.now < blocked && RULE_PROMISE) {
            coordination_events.count(EVENT_BLOCKED);
        } else if (hdr.message.type == TYPE_ENTRY && from_predecessor) {
            handle_entry.apply(hdr, meta);
        } else if ((hdr.message.type == TYPE_QUESTION
            || hdr.message.type == TYPE_PASS
            || hdr.message.type == TYPE_PROBE)
            && from_predecessor) {
            handle_passing.apply(hdr, meta);
        } else if (hdr.message.type == TYPE_ASK && from_successor) {
            handle_ask.apply(hdr, meta);
        } else if (hdr.message.type == TYPE_ACK && meta.group.place == PLACE_HEAD) {
            handle_ack.apply(hdr, meta);
        } else if (hdr.message.type == TYPE_LEASE
            && (from_predecessor
                || (meta.group.place == PLACE_HEAD
                    && hdr.ipv4.source == hdr.message.client_address))) {
            handle_lease.apply(hdr, meta);
        } else if ((hdr.message.type == TYPE_BEGIN
            || hdr.message.type == TYPE_COPY
            || hdr.message.type == TYPE_HAND_OVER)
            && from_predecessor) {
            handle_joiner.apply(hdr, meta);
        } else if ((hdr.message.type == TYPE_COPIED || hdr.message.type == TYPE_HANDED)
            && from_successor) {
            handle_copied.apply(hdr, meta);
        } else {
            coordination_events.count(EVENT_OTHER_SENDER);
        }
    }
}

#endif
