// Messages besides the one that a packet becomes. A mirrored copy comes back with metadata that
// say which, and becomes the first of them; while more are left, it is mirrored again.

#ifndef STATEPLANE_COORDINATION_EXTRA_P4
#define STATEPLANE_COORDINATION_EXTRA_P4

#include "coordination_message.p4"
#include "copy.p4"
#include "events.p4"
#include "group.p4"
#include "metadata.p4"
#include "ports.p4"
#include "ring.p4"
#include "rules.p4"
#include "send.p4"
#include "watch.p4"

// Most entries that are asked for at once, and µs before the same ones are asked for again.
const bit<64> ASKED_ENTRIES = 16;
const bit<48> ASK_MICROSECONDS = 200;

// Asks the predecessor for the entries up to `known` that this switch lacks, unless it has just
// done so (rule 2). `within`: an entry beyond the next came that had been asked for itself, so
// that one before it is lost.
control AskPredecessor(in bit<64> known, in bool within, inout coordination_metadata_t meta) {
    bit<64> from;
    bit<64> until;
    bit<48> at;

    apply {
        // A joiner has nothing to go on from before BEGIN.
        if (meta.group.predecessor != 0
            && !(meta.group.place == meta.group.members && meta.group.progress == PROGRESS_BEGINS)
            && RULE_NEWEST_ASKED) {
            group_asked_from.read(from, meta.group.index);
            group_asked_until.read(until, meta.group.index);
            group_asked_at.read(at, meta.group.index);
            if (meta.group.applied >= until
                || meta.now >= at + ASK_MICROSECONDS
                || (within && from != meta.group.applied + 1)) {
                meta.extra = meta.extra | EXTRA_ASK;
                meta.extra_from = meta.group.applied + 1;
                meta.extra_until = meta.group.applied + ASKED_ENTRIES;
                if (known < meta.extra_until) {
                    meta.extra_until = known;
                }
                group_asked_from.write(meta.group.index, meta.extra_from);
                group_asked_until.write(meta.group.index, meta.extra_until);
                group_asked_at.write(meta.group.index, meta.now);
                coordination_events.count(EVENT_ASKED);
            } else {
                coordination_events.count(EVENT_ASK_LIMITED);
            }
        }
    }
}

// Makes the packet, a copy that came back, the first of its messages.
control SendExtra(
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    LoadGroup() load_group;
    StartMessage() start_message;
    PutConfiguration() put_configuration;
    LoadEntry() load_entry;
    SendToSwitch() send_to_successor;
    SendToSwitch() send_entry;
    SendToSwitch() send_to_predecessor;
    SendToSwitch() send_to_head;
    SendCopy() send_copy;
    SendEvent() send_event;
    bit<64> number;
    bool kept;
    bool more;
    bit<8> holds;
    bit<64> joiner;

    apply {
        load_group.apply(meta.extra_group, meta);
        start_message.apply(0, meta.extra_group, hdr);
        put_configuration.apply(hdr.message, meta);
        kept = true;
        if ((meta.extra & EXTRA_ASK) != 0) {
            meta.extra = meta.extra & ~EXTRA_ASK;
            hdr.message.type = TYPE_ASK;
            hdr.message.number = meta.extra_from;
            hdr.message.record = meta.extra_until;
            send_to_predecessor.apply(meta.group.predecessor, hdr, meta);
        } else if ((meta.extra & EXTRA_PROBE) != 0) {
            meta.extra = meta.extra & ~EXTRA_PROBE;
            hdr.message.type = TYPE_PROBE;
            send_to_successor.apply(meta.group.successor, hdr, meta);
        } else if ((meta.extra & EXTRA_ACK) != 0) {
            meta.extra = meta.extra & ~EXTRA_ACK;
            // Rule 15: not while the copy closes, nor after the hand-over.
            if (meta.group.answers && (meta.group.progress != PROGRESS_CLOSES || !RULE_CLOSES)) {
                hdr.message.type = TYPE_ACK;
                hdr.message.number = meta.group.applied;
                group_holds.read(holds, meta.group.index);
                if (holds == 1) @unlikely {
                    group_joiner_newest.read(joiner, meta.group.index);
                    if (joiner < hdr.message.number) {
                        hdr.message.number = joiner;
                    }
                }
                send_to_head.apply(hdr.message.chain_1, hdr, meta);
            } else {
                coordination_events.count(EVENT_ACK_WITHHELD);
            }
        } else if ((meta.extra & EXTRA_COPY) != 0) {
            more = false;
            if (meta.group.joins == 1
                && meta.group.place + 1 == meta.group.members
                && meta.group.progress >= PROGRESS_BEGINS
                && meta.group.progress <= PROGRESS_HANDS_OVER) {
                send_copy.apply(hdr, meta, more);
            }
            if (!more) {
                meta.extra = meta.extra & ~EXTRA_COPY;
            }
        } else {
            number = meta.extra_from;
            if ((meta.extra & EXTRA_ENTRIES) == 0) @unlikely {
                number = meta.event_from;
            }
            load_entry.apply(number, hdr, meta, kept);
            if ((meta.extra & EXTRA_ENTRIES) == 0) @unlikely {
                send_event.apply(kept, hdr, meta);
            } else {
                hdr.message.type = TYPE_ENTRY;
                if (kept && meta.extra_from < meta.extra_until) {
                    meta.extra_from = meta.extra_from + 1;
                } else {
                    meta.extra = meta.extra & ~EXTRA_ENTRIES;
                }
                if (kept && meta.group.successor != 0) {
                    coordination_events.count(EVENT_RESENT);
                    send_entry.apply(meta.group.successor, hdr, meta);
                } else {
                    coordination_events.count(EVENT_BEYOND_RING);
                    group_joiner_newest.read(joiner, meta.group.index);
                    if (meta.group.joins == 1
                        && meta.extra_from > joiner
                        && meta.group.place + 1 == meta.group.members
                        && meta.group.progress > PROGRESS_BEGINS
                        && meta.group.progress < PROGRESS_HANDS_OVER) {
                        // The joiner is too far behind: the copy begins again, and the head's
                        // bound keeps what it lacks from then on (rule 15).
                        group_progress.write(meta.group.index, PROGRESS_BEGINS);
                        if (RULE_HOLDS_ACKS) {
                            group_holds.write(meta.group.index, 1);
                        }
                        meta.extra = EXTRA_COPY;
                    }
                }
            }
        }
    }
}

// Brings copies back to ingress.
control CoordinationEgress(
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply {
        if (standard_metadata.instance_type == INSTANCE_INGRESS_CLONE && meta.extra != 0) {
            recirculate_preserving_field_list(FIELD_LIST_EXTRA);
        }
    }
}

#endif
