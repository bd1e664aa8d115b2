// Requests of clients: which switch takes them, and which it sends on (rules 10, 11, 14).

#ifndef STATEPLANE_COORDINATION_REQUEST_P4
#define STATEPLANE_COORDINATION_REQUEST_P4

#include "answer.p4"
#include "chain.p4"
#include "coordination_message.p4"
#include "events.p4"
#include "group.p4"
#include "metadata.p4"
#include "rules.p4"
#include "send.p4"
#include "watch.p4"

// How often a switch sends a request on.
const bit<8> MOST_REDIRECTS = 2;

// A request for this switch.
control HandleRequest(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    HandleUpdate() handle_update;
    AnswerRead() answer_alone;
    AnswerRead() answer_read;
    AnswerWatch() answer_watch;
    PutConfiguration() put_configuration;
    SendToSwitch() send_pass;
    SendToSwitch() send_to_head;
    Refuse() refuse_malformed;
    Refuse() refuse_generation;
    Refuse() refuse_moved;
    bool reads;
    bool watches;
    bool stale;
    bool malformed;
    bit<48> blocked;
    bit<48> leased;
    bit<32> head;

    apply {
        group_blocked_until.read(blocked, meta.group.index);
        watches = hdr.message.operation == OPERATION_WATCH;
        reads = hdr.message.operation == OPERATION_READ
            || hdr.message.operation == OPERATION_SCAN
            || watches;
        malformed = hdr.message.operation < OPERATION_READ
            || hdr.message.operation > OPERATION_WATCH
            || hdr.message.condition > CONDITION_VALUE
            || hdr.message.guard_condition > CONDITION_TOKEN
            || hdr.message.guard_condition == CONDITION_VALUE
            || hdr.message.operand_length > MAX_OPERAND
            || (hdr.message.value_length > SHORT_VALUE && hdr.message.operation != OPERATION_WRITE);
        if (!reads) {
            malformed = malformed
                || hdr.message.lane >= COORDINATION_LANES
                || hdr.message.request == 0
                || ((hdr.message.operation == OPERATION_ACQUIRE
                    || hdr.message.operation == OPERATION_RELEASE)
                    && hdr.message.session == 0
                    && hdr.message.handle == 0)
                || (hdr.message.operation == OPERATION_LANE_NEXT
                    && (hdr.message.slot >= COORDINATION_LANES
                        || hdr.message.slot == hdr.message.lane
                        || hdr.message.handle[31:16] != 0));
        }
        if (watches) @unlikely {
            // The answerer is to be the one of its epoch (rule 23).
            hdr.message.flags = hdr.message.flags & ~(FLAG_LEASED | FLAG_STALE);
        }
        leased = 0;
        if (reads && meta.group.answers && (hdr.message.flags & FLAG_LEASED) != 0) {
            group_leased_until.read(leased, meta.group.index);
            if (meta.group.members == 1 && meta.group.place == PLACE_HEAD) {
                leased = meta.now + 1;
            }
        }
        // The switch that joins lacks what was not copied yet.
        stale = reads
            && (hdr.message.flags & FLAG_STALE) != 0
            && meta.group.place < meta.group.members;
        if (malformed) {
            refuse_malformed.apply(OUTCOME_MALFORMED, hdr, meta);
        } else if (meta.group.place == PLACE_NONE) {
            refuse_moved.apply(OUTCOME_MOVED, hdr, meta);
        } else if (hdr.message.generation != meta.group.generation && RULE_GENERATION) {
            refuse_generation.apply(OUTCOME_WRONG_GENERATION, hdr, meta);
        } else if (meta.now < blocked && RULE_PROMISE) {
            coordination_events.count(EVENT_BLOCKED);
        } else if (stale) {
            coordination_events.count(EVENT_STALE_READ);
            answer_alone.apply(hdr, meta);
        } else if (meta.now < leased
            || (!RULE_LEASE
                && reads
                && meta.group.answers
                && (hdr.message.flags & FLAG_LEASED) != 0)) {
            coordination_events.count(EVENT_LEASED_READ);
            answer_alone.apply(hdr, meta);
        } else if (meta.group.place == PLACE_HEAD || !RULE_HEAD_DECIDES) {
            if (!reads) {
                handle_update.apply(hdr, meta);
            } else if (watches && (meta.group.answers || !RULE_ANSWERER_PUSHES)) {
                answer_watch.apply(hdr, meta);
            } else if (meta.group.answers) {
                answer_read.apply(hdr, meta);
            } else {
                hdr.message.type = TYPE_PASS;
                put_configuration.apply(hdr.message, meta);
                send_pass.apply(meta.group.successor, hdr, meta);
            }
        } else if (hdr.message.redirects < MOST_REDIRECTS) {
            hdr.message.redirects = hdr.message.redirects + 1;
            group_chain_1.read(head, meta.group.index);
            send_to_head.apply(head, hdr, meta);
        } else {
            refuse_moved.apply(OUTCOME_MOVED, hdr, meta);
        }
    }
}

#endif
