// Held copies: they keep payload, and at the leader send what someone lacks (rules 15, 23).

#ifndef STATEPLANE_MULTICAST_HELD_P4
#define STATEPLANE_MULTICAST_HELD_P4

#include "events.p4"
#include "lead.p4"
#include "log.p4"
#include "metadata.p4"
#include "multicast_message.p4"
#include "ports.p4"
#include "rules.p4"
#include "state.p4"

// A copy came back to a leader: its entry is at hand.
control MulticastRetransmit(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastMajority() majority_of;
    MulticastAllReceived() all_received;
    MulticastStoreMarks() store_marks;
    MulticastAnnounce() announce;
    MulticastPutEntry() put_entry;
    MulticastProgress() progress;
    bit<64> lacks;
    bit<32> received;
    bit<32> own;
    bit<32> lane;
    bit<40> number;
    bit<40> freed;
    bool majority;
    bool all;
    bool committed;
    bool uncovered;

    apply {
        own = 32w1 << (bit<8>)meta.group.at;
        committed = !MULTICAST_NEWER(meta.entry.index, meta.group.commit);
        majority_of.apply(meta.entry.index, meta, majority, all);
        all_received.apply(meta, received);
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
        if (committed && MULTICAST_NEWER(meta.entry.index, received)) {
            announce.apply(meta.entry.id != 0, hdr, meta);
        } else {
            put_entry.apply(hdr, meta);
        }
        if (!committed || !all) {
            meta.to = meta.to | MULTICAST_MEMBERS;
        }
        uncovered = committed
            && !MULTICAST_NEWER(meta.entry.index, received)
            && meta.entry.voided == 0
            && meta.entry.final > meta.group.last_time;
        if (((meta.entry.destinations & ~((meta.entry.decided & meta.entry.done) | own)) != 0
            || uncovered)
            && MULTICAST_RULE_FINISH) {
            // A leader that decided, but is not done, answers with DONE when it is. An answer also takes the
            // final timestamp to the log, if no receiver names it: this copy is held and cannot.
            meta.to = meta.to | MULTICAST_LEADERS;
            meta.leader_type = MULTICAST_TYPE_START;
            meta.leader_time = committed ? meta.entry.timestamp : 64w0;
        }
        if (meta.to == 0) {
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
    bit<8> held;

    apply {
        load_entry.apply(meta.held_index, meta);
        if (MULTICAST_HAS(meta, meta.held_index) && meta.entry.term == meta.held_term) {
            meta.hold = true;
            meta.attempt = meta.attempt < MULTICAST_HOLDS - 1 ? meta.attempt + 1 : meta.attempt;
            meta.bears = meta.entry.id != 0;
            if (meta.group.leads && MULTICAST_RULE_RETRANSMIT) {
                retransmit.apply(hdr, meta);
            }
        } else {
            multicast_events.count(MULTICAST_EVENT_COPY_OVER);
            multicast_entry_held.read(held, meta.entry.at);
            multicast_entry_held.write(meta.entry.at, held - 1);
        }
    }
}

#endif
