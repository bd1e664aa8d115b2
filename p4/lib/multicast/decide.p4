// Decisions: those of other groups, and what a leader tells of its own (rules 13, 15, 19, 24).

#ifndef STATEPLANE_MULTICAST_DECIDE_P4
#define STATEPLANE_MULTICAST_DECIDE_P4

#include "events.p4"
#include "log.p4"
#include "metadata.p4"
#include "multicast_message.p4"
#include "ports.p4"
#include "rules.p4"
#include "state.p4"

// Another group's leader says in `before` up to which index of its own log it is done (rule 24). Its
// last word counts, also if an earlier one comes late: each was true, and a number that is kept for
// 2 ^ 31 entries would be ahead of all that come.
control MulticastHearDone(in multicast_t message, in multicast_metadata_t meta) {
    apply {
        multicast_done_to.write(MULTICAST_PEER_PLACE(meta, message.origin), message.before);
        multicast_done_epoch.write(MULTICAST_PEER_PLACE(meta, message.origin), message.epoch);
    }
}

// Another group decided a message that is not in the log: its START is on the way, since a sender
// reaches one leader before the other. The decision waits in the message's lane (rule 15). Its timestamp
// need not be kept: the clock has it, so that the entry's own will be later.
control MulticastKeepDecision(in multicast_t message, in multicast_metadata_t meta) {
    bit<32> lane;
    bit<32> origin;
    bit<32> decided;
    bit<40> number;

    apply {
        origin = (32w1 << message.origin) & message.destinations & ~(32w1 << (bit<8>)meta.group.at);
        if (message.session >= MULTICAST_SESSIONS
            || message.lane >= MULTICAST_LANES
            || origin == 0) {
            multicast_events.count(MULTICAST_EVENT_UNKNOWN_LANE);
        } else {
            lane = MULTICAST_LANE_PLACE(meta, message.session, message.lane);
            multicast_ahead_number.read(number, lane);
            multicast_ahead_decided.read(decided, lane);
            if (message.number < number) {
                multicast_events.count(MULTICAST_EVENT_UNKNOWN_MESSAGE);
            } else {
                multicast_events.count(MULTICAST_EVENT_AHEAD);
                decided = (message.number == number ? decided : 32w0) | origin;
                multicast_ahead_number.write(lane, message.number);
                multicast_ahead_decided.write(lane, decided);
                multicast_ahead_peer.write(lane, message.origin);
                multicast_ahead_peer_index.write(lane, message.index);
                multicast_ahead_peer_epoch.write(lane, message.epoch);
            }
        }
    }
}

// Gives the entry at hand, which was appended, the decisions that came before it.
control MulticastRecallDecisions(inout multicast_metadata_t meta) {
    MulticastStoreMarks() store_marks;
    bit<32> lane;
    bit<40> number;
    bit<8> peer;
    bit<32> peer_index;
    bit<32> peer_epoch;

    apply {
        lane = MULTICAST_LANE_PLACE(meta, meta.entry.id[63:48], meta.entry.id[47:40]);
        multicast_ahead_number.read(number, lane);
        if (number == meta.entry.id[39:0]) {
            multicast_ahead_decided.read(meta.entry.decided, lane);
            multicast_ahead_peer.read(peer, lane);
            multicast_ahead_peer_index.read(peer_index, lane);
            multicast_ahead_peer_epoch.read(peer_epoch, lane);
            multicast_entry_peer.write(meta.entry.at, peer);
            multicast_entry_peer_index.write(meta.entry.at, peer_index);
            multicast_entry_peer_epoch.write(meta.entry.at, peer_epoch);
            store_marks.apply(meta);
        }
    }
}

// Notes that the group in `origin` decided, or is done, or knows the message as over. `finishes` if no
// destination's decision is lacking any more, and the entry is committed: receivers hear of that once.
control MulticastNote(in multicast_t message, inout multicast_metadata_t meta, out bool finishes) {
    MulticastStoreMarks() store_marks;
    MulticastHearDone() hear_done;
    bit<32> origin;
    bit<32> others;
    bit<32> last;
    bool lacks;

    apply {
        others = meta.entry.destinations & ~(32w1 << (bit<8>)meta.group.at);
        lacks = (others & ~meta.entry.decided) != 0;
        origin = (32w1 << message.origin) & others;
        if (message.type == MULTICAST_TYPE_OLD) {
            meta.entry.decided = 0xffffffff;
            meta.entry.done = 0xffffffff;
            meta.entry.voided = MULTICAST_RULE_VOID ? 1w1 : 1w0;
        } else if (origin != 0) {
            meta.entry.decided = meta.entry.decided | origin;
            if (message.timestamp > meta.entry.final
                || (message.timestamp == meta.entry.final
                    && message.origin > meta.entry.final_group)) {
                meta.entry.final = message.timestamp;
                meta.entry.final_group = message.origin;
            }
            if (message.type == MULTICAST_TYPE_DONE) {
                meta.entry.done = meta.entry.done | origin;
            }
            multicast_last_decided.read(last, meta.group.at);
            if (MULTICAST_NEWER(meta.entry.index, last)) {
                multicast_last_decided.write(meta.group.at, meta.entry.index);
            }
            hear_done.apply(message, meta);
            multicast_entry_peer.write(meta.entry.at, message.origin);
            multicast_entry_peer_index.write(meta.entry.at, message.index);
            multicast_entry_peer_epoch.write(meta.entry.at, message.epoch);
        }
        store_marks.apply(meta);
        finishes = lacks
            && (others & ~meta.entry.decided) == 0
            && !MULTICAST_NEWER(meta.entry.index, meta.group.commit);
    }
}

// Up to which index all receivers have all; the end if there is none.
control MulticastAllReceived(in multicast_metadata_t meta, out bit<32> received) {
    bit<32> receivers;
    bit<32> one;

    apply {
        multicast_receivers.read(receivers, meta.group.at);
        received = meta.group.commit;
#define MULTICAST_LEAST(i) \
        if (receivers[i:i] == 1 && MULTICAST_RULE_ALL_RECEIVED) { \
            multicast_received.read(one, meta.group.at * MULTICAST_MOST_RECEIVERS + i); \
            if (MULTICAST_NEWER(received, one)) { \
                received = one; \
            } \
        }
        MULTICAST_EACH(MULTICAST_LEAST)
    }
}

// True if the entry at hand may be told as received and be freed as far as clocks go: a committed
// entry of the group has a timestamp that is not below the final one (rule 24).
control MulticastCovered(in multicast_metadata_t meta, out bool covered) {
    bit<64> time;

    apply {
        multicast_entry_time.read(time, MULTICAST_PLACE(meta, meta.group.commit));
        covered = time >= meta.entry.final || meta.entry.voided == 1 || !MULTICAST_RULE_COVERED;
    }
}

// Tells the place of the entry at hand, which is committed: DECIDED to other destinations, and
// DELIVER to the receivers once all destinations have decided (rules 13, 19).
control MulticastAnnounce(
    in bool with_payload,
    inout multicast_headers_t hdr,
    inout multicast_metadata_t meta
) {
    MulticastPutEntry() put_entry;
    bit<32> own;

    apply {
        own = 32w1 << (bit<8>)meta.group.at;
        put_entry.apply(hdr, meta);
        if ((meta.entry.destinations & ~(meta.entry.decided | own)) == 0
            || !MULTICAST_RULE_UNIFORM) {
            multicast_events.count(MULTICAST_EVENT_DELIVERED);
            meta.to = meta.to | MULTICAST_RECEIVERS;
            meta.receiver_type = MULTICAST_TYPE_DELIVER;
            meta.receiver_payload = with_payload;
        }
        if (meta.entry.destinations != own && !with_payload) {
            meta.to = meta.to | MULTICAST_LEADERS;
            meta.leader_type = MULTICAST_TYPE_DECIDED;
        }
    }
}

#endif
