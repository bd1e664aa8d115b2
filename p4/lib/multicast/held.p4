// Held copies: they keep payload, and at the leader send what someone lacks (rules 15, 23).

#ifndef STATEPLANE_MULTICAST_HELD_P4
#define STATEPLANE_MULTICAST_HELD_P4

#include "decide.p4"
#include "events.p4"
#include "lead.p4"
#include "log.p4"
#include "metadata.p4"
#include "multicast_message.p4"
#include "patience.p4"
#include "ports.p4"
#include "rules.p4"
#include "state.p4"

// Sets `late` if the member or receiver at `place` of the registers `multicast_WHAT_...` is to get the
// entry at hand again.
#define MULTICAST_LATE(what, place, late) \
            multicast_##what.read(index, place); \
            if (MULTICAST_NEWER(meta.entry.index, index)) { \
                multicast_##what##_moved.read(moved, place); \
                multicast_##what##_patience.read(patience, place); \
                multicast_##what##_gap.read(gap, place); \
                overdue_at.apply(index + 1, moved, patience, meta, overdue); \
                overdue = overdue && meta.entry.index - index <= MULTICAST_FIRST; \
                if (earlier || overdue || gap == meta.entry.index) { \
                    late = true; \
                    multicast_##what##_resent.write(place, 1); \
                } \
            }

// Says if the entry at hand is sent again, since its copy came back (rule 23): to members and
// receivers that have later ones, and those that took nothing of the group for longer than they do of
// late. To others this one is under way: on busy machines copies come back before answers. They keep
// entries behind one that they lack, so that only the first ones are sent. An earlier leader's entries
// are under way to nobody.
control MulticastLate(in multicast_metadata_t meta, out bool members, out bool receivers) {
    MulticastOverdue() overdue_at;
    bit<32> listed;
    bit<32> index;
    bit<32> gap;
    bit<48> moved;
    bit<48> patience;
    bit<8> learner;
    bool earlier;
    bool overdue;

    apply {
        earlier = meta.entry.term != meta.group.promised;
        members = false;
        receivers = false;
        multicast_members.read(listed, meta.group.at);
        multicast_learner.read(learner, meta.group.at);
#define MULTICAST_LATE_MEMBER(i) \
        if ((listed[i:i] == 1 || learner == i) && i != meta.group.member) { \
            MULTICAST_LATE(match, meta.group.at * MULTICAST_MOST_MEMBERS + i, members) \
        }
        MULTICAST_EACH(MULTICAST_LATE_MEMBER)
        multicast_receivers.read(listed, meta.group.at);
#define MULTICAST_LATE_RECEIVER(i) \
        if (listed[i:i] == 1) { \
            MULTICAST_LATE(received, meta.group.at * MULTICAST_MOST_RECEIVERS + i, receivers) \
        }
        MULTICAST_EACH(MULTICAST_LATE_RECEIVER)
    }
}

// A copy came back to a leader: its entry is at hand.
control MulticastRetransmit(
    inout multicast_headers_t hdr,
    inout multicast_metadata_t meta,
    out bool sent
) {
    MulticastAllReceived() all_received;
    MulticastLate() late;
    MulticastOverdue() overdue;
    MulticastStoreMarks() store_marks;
    MulticastAnnounce() announce;
    MulticastPutEntry() put_entry;
    MulticastProgress() progress;
    bit<64> lacks;
    bit<32> received;
    bit<32> own;
    bit<32> last;
    bit<32> lane;
    bit<40> number;
    bit<40> freed;
    bit<48> moved;
    bit<48> patience;
    bool members;
    bool receivers;
    bool committed;
    bool still;
    bool uncovered;
    bool undecided;
    bool passed;
    bool first;

    apply {
        own = 32w1 << (bit<8>)meta.group.at;
        committed = !MULTICAST_NEWER(meta.entry.index, meta.group.commit);
        if (meta.entry.id != 0 && committed) {
            lane = MULTICAST_LANE_PLACE(meta, meta.entry.id[63:48], meta.entry.id[47:40]);
            multicast_lane_number.read(number, lane);
            multicast_lane_freed.read(freed, lane);
            if ((number > meta.entry.id[39:0] || freed >= meta.entry.id[39:0])
                && MULTICAST_RULE_VOID) {
                // Its lane went on, or it was freed before at another index: a late duplicate
                // (rule 25).
                meta.entry.decided = 0xffffffff;
                meta.entry.done = 0xffffffff;
                meta.entry.voided = 1;
                store_marks.apply(meta);
            }
        }
        late.apply(meta, members, receivers);
        if (committed && receivers) {
            announce.apply(meta.entry.id != 0, hdr, meta);
        } else {
            put_entry.apply(hdr, meta);
        }
        if (members) {
            meta.to = meta.to | MULTICAST_MEMBERS;
        }
        uncovered = false;
        if (committed && meta.entry.voided == 0 && meta.entry.final > meta.group.last_time) {
            all_received.apply(meta, received);
            uncovered = !MULTICAST_NEWER(meta.entry.index, received);
        }
        // Nothing was freed for longer than it takes of late.
        multicast_base_moved.read(moved, meta.group.at);
        multicast_base_patience.read(patience, meta.group.at);
        overdue.apply(meta.group.base + 1, moved, patience, meta, still);
        undecided = (meta.entry.destinations & ~(meta.entry.decided | own)) != 0;
        // Leaders take STARTs in about the same order, and answer in that.
        multicast_last_decided.read(last, meta.group.at);
        passed = MULTICAST_NEWER(last, meta.entry.index + MULTICAST_PASSED);
        if (undecided && passed) {
            multicast_gap_moved.write(meta.group.at, meta.now);
        }
        first = meta.entry.index - meta.group.base <= MULTICAST_FIRST;
        // Of an earlier leader's entries nobody tells it unasked.
        if (((undecided && (still || passed || meta.entry.term != meta.group.promised))
            || (still
                && ((first && (meta.entry.destinations & ~(meta.entry.done | own)) != 0)
                    || uncovered)))
            && MULTICAST_RULE_FINISH) {
            // A leader that decided, but is not done, answers with DONE when it is. An answer also takes the
            // final timestamp to the log, if no receiver names it: this copy is held and cannot.
            meta.to = meta.to | MULTICAST_LEADERS;
            multicast_base_resent.write(meta.group.at, 1);
            meta.leader_type = MULTICAST_TYPE_START;
            meta.leader_time = committed ? meta.entry.timestamp : 64w0;
        }
        sent = meta.to != 0;
        if (!sent) {
            progress.apply(hdr, meta, lacks);
        } else {
            multicast_events.count(MULTICAST_EVENT_RETRANSMITTED);
        }
    }
}

// A copy came back: it is held on while the log has its entry.
control MulticastHandleHeld(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastLoadEntry() load_entry;
    MulticastRetransmit() retransmit;
    MulticastIsEarly() is_early;
    bit<48> gap;
    bit<8> copy;
    bit<8> held;
    bool sent;
    bool early;

    apply {
        load_entry.apply(meta.held_index, meta);
        is_early.apply(meta.held_index, meta, early);
        multicast_entry_copy.read(copy, meta.entry.at);
        // An entry that was kept early in one epoch, and taken in another, has two copies.
        if ((MULTICAST_HAS(meta, meta.held_index) || early)
            && meta.entry.term == meta.held_term
            && copy == meta.held_copy) {
            meta.hold = true;
            if (!meta.group.leads) {
                meta.attempt = MULTICAST_FOLLOWS;
            } else {
                sent = false;
                meta.bears = meta.entry.id != 0;
                if (MULTICAST_RULE_RETRANSMIT) {
                    retransmit.apply(hdr, meta, sent);
                }
                multicast_gap_moved.read(gap, meta.group.at);
                if (meta.attempt == MULTICAST_FOLLOWS
                    || (!sent && gap != 0 && multicast_elapsed(gap, meta.now) < MULTICAST_LOSSY)) {
                    // It follows no more, or packets are lost: someone may say that it lacks this entry.
                    meta.attempt = 0;
                } else if (meta.attempt < MULTICAST_HOLDS - 1) {
                    meta.attempt = meta.attempt + 1;
                }
            }
        } else {
            multicast_events.count(MULTICAST_EVENT_COPY_OVER);
            multicast_entry_held.read(held, meta.entry.at);
            multicast_entry_held.write(meta.entry.at, held - 1);
        }
    }
}

#endif
