// The log: entries by index, lanes by id.

#ifndef STATEPLANE_MULTICAST_LOG_P4
#define STATEPLANE_MULTICAST_LOG_P4

#include "events.p4"
#include "metadata.p4"
#include "multicast_message.p4"
#include "rules.p4"
#include "state.p4"

// Place of the entry `index` of a group.
#define MULTICAST_PLACE(meta, index) \
    ((meta).group.at * MULTICAST_WINDOW + ((index) & (MULTICAST_WINDOW - 1)))

// Place of the lane of the message at hand; its session and lane are known to be in range.
#define MULTICAST_LANE_PLACE(meta, session, lane) \
    (((meta).group.at * MULTICAST_SESSIONS + (bit<32>)(session)) * MULTICAST_LANES \
        + (bit<32>)(lane))

// True if the log has the entry `index`: it is neither freed nor beyond the end.
#define MULTICAST_HAS(meta, index) \
    (MULTICAST_NEWER(index, (meta).group.base) && !MULTICAST_NEWER(index, (meta).group.end))

// Reads what the switch has of the group.
control MulticastLoadGroup(in bit<8> group, inout multicast_metadata_t meta) {
    bit<32> led;

    apply {
        meta.group.at = (bit<32>)group;
        multicast_incarnation.read(meta.group.incarnation, 0);
        multicast_promised.read(meta.group.promised, meta.group.at);
        multicast_led.read(led, meta.group.at);
        meta.group.leads = led == meta.group.promised && led != 0;
        multicast_base.read(meta.group.base, meta.group.at);
        multicast_base_term.read(meta.group.base_term, meta.group.at);
        multicast_end.read(meta.group.end, meta.group.at);
        multicast_last_term.read(meta.group.last_term, meta.group.at);
        multicast_last_time.read(meta.group.last_time, meta.group.at);
        multicast_commit.read(meta.group.commit, meta.group.at);
        multicast_told_done.read(meta.group.done, meta.group.at);
        if (MULTICAST_NEWER(meta.group.base, meta.group.done)) {
            meta.group.done = meta.group.base;
        }
        multicast_clock.read(meta.group.clock, meta.group.at);
    }
}

// True if many entries are under way: messages about later ones tell of earlier ones too.
#define MULTICAST_BUSY(meta) ((meta).group.end - (meta).group.commit >= MULTICAST_MANY)

// Place of what is known of another group.
#define MULTICAST_PEER_PLACE(meta, origin) ((meta).group.at * 32 + (bit<32>)(origin))

// Reads the entry `index`, which the log has, with the marks of the present leader.
control MulticastLoadEntry(in bit<32> index, inout multicast_metadata_t meta) {
    bit<32> known_in;
    bit<32> other;
    bit<8> peer;
    bit<32> peer_index;
    bit<32> peer_epoch;
    bit<32> done;
    bit<32> done_epoch;

    apply {
        meta.entry.at = MULTICAST_PLACE(meta, index);
        meta.entry.index = index;
        multicast_entry_term.read(meta.entry.term, meta.entry.at);
        multicast_entry_time.read(meta.entry.timestamp, meta.entry.at);
        multicast_entry_id.read(meta.entry.id, meta.entry.at);
        multicast_entry_destinations.read(meta.entry.destinations, meta.entry.at);
        multicast_entry_sender.read(meta.entry.sender, meta.entry.at);
        multicast_entry_known_in.read(known_in, meta.entry.at);
        meta.entry.decided = 0;
        meta.entry.done = 0;
        meta.entry.voided = 0;
        meta.entry.final = meta.entry.timestamp;
        meta.entry.final_group = (bit<8>)meta.group.at;
        if (known_in == meta.group.promised || !MULTICAST_RULE_MARKS_OF_ENTRY) {
            multicast_entry_decided.read(meta.entry.decided, meta.entry.at);
            multicast_entry_done.read(meta.entry.done, meta.entry.at);
            multicast_entry_void.read(meta.entry.voided, meta.entry.at);
            multicast_entry_final.read(meta.entry.final, meta.entry.at);
            multicast_entry_final_group.read(meta.entry.final_group, meta.entry.at);
            other = meta.entry.destinations & ~(32w1 << (bit<8>)meta.group.at);
            if (other != 0 && (other & (other - 1)) == 0) {
                // The other group tells up to which index of its own log it is done.
                multicast_entry_peer.read(peer, meta.entry.at);
                multicast_entry_peer_index.read(peer_index, meta.entry.at);
                multicast_entry_peer_epoch.read(peer_epoch, meta.entry.at);
                multicast_done_to.read(done, MULTICAST_PEER_PLACE(meta, peer));
                multicast_done_epoch.read(done_epoch, MULTICAST_PEER_PLACE(meta, peer));
                if (done_epoch == peer_epoch && !MULTICAST_NEWER(peer_index, done)) {
                    meta.entry.done = meta.entry.done | other;
                }
            }
        }
    }
}

// Writes the marks of the entry at hand.
control MulticastStoreMarks(in multicast_metadata_t meta) {
    apply {
        multicast_entry_known_in.write(meta.entry.at, meta.group.promised);
        multicast_entry_decided.write(meta.entry.at, meta.entry.decided);
        multicast_entry_done.write(meta.entry.at, meta.entry.done);
        multicast_entry_void.write(meta.entry.at, meta.entry.voided);
        multicast_entry_final.write(meta.entry.at, meta.entry.final);
        multicast_entry_final_group.write(meta.entry.at, meta.entry.final_group);
    }
}

// Keeps an entry in its slot. Its fields are in `meta.entry`; the frame is held.
control MulticastKeepEntry(inout multicast_metadata_t meta) {
    bit<8> held;

    apply {
        meta.entry.at = MULTICAST_PLACE(meta, meta.entry.index);
        multicast_entry_term.write(meta.entry.at, meta.entry.term);
        multicast_entry_time.write(meta.entry.at, meta.entry.timestamp);
        multicast_entry_id.write(meta.entry.at, meta.entry.id);
        multicast_entry_destinations.write(meta.entry.at, meta.entry.destinations);
        multicast_entry_sender.write(meta.entry.at, meta.entry.sender);
        multicast_entry_known_in.write(meta.entry.at, 0);
        multicast_entry_appended.write(meta.entry.at, meta.now);
        multicast_entry_held.read(held, meta.entry.at);
        multicast_entry_held.write(meta.entry.at, held + 1);
        multicast_entry_copy.read(meta.held_copy, meta.entry.at);
        meta.held_copy = meta.held_copy + 1;
        multicast_entry_copy.write(meta.entry.at, meta.held_copy);
        meta.hold = true;
        meta.held_index = meta.entry.index;
        meta.held_term = meta.entry.term;
        // A follower has nothing to send when its copy comes back, unless it leads by then.
        meta.attempt = meta.group.leads ? 8w0 : MULTICAST_FOLLOWS;
    }
}

// Makes the entry at hand the last one of the log.
control MulticastExtend(inout multicast_metadata_t meta) {
    bit<32> lane;

    apply {
        if (meta.entry.id != 0) {
            lane = MULTICAST_LANE_PLACE(meta, meta.entry.id[63:48], meta.entry.id[47:40]);
            multicast_lane_number.write(lane, meta.entry.id[39:0]);
            multicast_lane_index.write(lane, meta.entry.index);
        }
        meta.group.end = meta.entry.index;
        meta.group.last_term = meta.entry.term;
        meta.group.last_time = meta.entry.timestamp;
        multicast_end.write(meta.group.at, meta.group.end);
        multicast_last_term.write(meta.group.at, meta.group.last_term);
        multicast_last_time.write(meta.group.at, meta.group.last_time);
    }
}

// Puts an entry into the log behind what is there, or in place of what is cut off. Its fields are
// in `meta.entry`; the frame is held.
control MulticastStoreEntry(inout multicast_metadata_t meta) {
    MulticastKeepEntry() keep_entry;
    MulticastExtend() extend;

    apply {
        keep_entry.apply(meta);
        extend.apply(meta);
    }
}

// True if the entry `index` came early in the present epoch: it is in its slot, and not in the log.
control MulticastIsEarly(in bit<32> index, in multicast_metadata_t meta, out bool early) {
    bit<32> kept;
    bit<32> kept_in;

    apply {
        multicast_entry_early.read(kept, MULTICAST_PLACE(meta, index));
        multicast_entry_early_in.read(kept_in, MULTICAST_PLACE(meta, index));
        early = kept == index
            && kept_in == meta.group.promised
            && !meta.group.leads
            && MULTICAST_NEWER(index, meta.group.end);
    }
}

// Frees the first entry of the log, which is in `meta.entry` (rules 21, 24).
control MulticastFreeEntry(inout multicast_metadata_t meta) {
    bit<32> lane;
    bit<40> freed;

    apply {
        multicast_events.count(MULTICAST_EVENT_FREED);
        if (meta.entry.id != 0) {
            lane = MULTICAST_LANE_PLACE(meta, meta.entry.id[63:48], meta.entry.id[47:40]);
            multicast_lane_freed.read(freed, lane);
            if (meta.entry.id[39:0] > freed) {
                multicast_lane_freed.write(lane, meta.entry.id[39:0]);
            }
        }
        meta.group.base = meta.entry.index;
        meta.group.base_term = meta.entry.term;
        multicast_base.write(meta.group.at, meta.group.base);
        multicast_base_term.write(meta.group.at, meta.group.base_term);
        multicast_base_time.write(meta.group.at, meta.entry.timestamp);
    }
}

// Looks for the message at hand (rules 21, 25): `index` if the log has it, or `old` if it is over.
// An id out of range is nowhere.
control MulticastFind(
    in multicast_t message,
    in multicast_metadata_t meta,
    out bool found,
    out bool old,
    out bit<32> index
) {
    bit<32> lane;
    bit<40> number;
    bit<40> freed;
    bit<64> id;

    apply {
        found = false;
        old = false;
        index = 0;
        if (message.session < MULTICAST_SESSIONS && message.lane < MULTICAST_LANES) {
            lane = MULTICAST_LANE_PLACE(meta, message.session, message.lane);
            multicast_lane_number.read(number, lane);
            multicast_lane_freed.read(freed, lane);
            multicast_lane_index.read(index, lane);
            multicast_entry_id.read(id, MULTICAST_PLACE(meta, index));
            old = (message.number < number || message.number <= freed) && MULTICAST_RULE_LANE_ENDED;
            found = !old
                && message.number == number
                && MULTICAST_HAS(meta, index)
                && (id == message.session ++ message.lane ++ message.number
                    || !MULTICAST_RULE_LANE_COMPARED);
        }
    }
}

// Writes the entry at hand into the message.
control MulticastPutEntry(inout multicast_headers_t hdr, in multicast_metadata_t meta) {
    apply {
        hdr.message.group = (bit<8>)meta.group.at;
        hdr.message.origin = meta.group.member;
        hdr.message.epoch = meta.group.promised;
        hdr.message.code = 0;
        hdr.message.session = meta.entry.id[63:48];
        hdr.message.lane = meta.entry.id[47:40];
        hdr.message.number = meta.entry.id[39:0];
        hdr.message.destinations = meta.entry.destinations;
        hdr.message.index = meta.entry.index;
        hdr.message.term = meta.entry.term;
        hdr.message.timestamp = meta.entry.timestamp;
        hdr.message.final = meta.entry.final;
        hdr.message.final_group = meta.entry.final_group;
        hdr.message.sender_address = meta.entry.sender[47:16];
        hdr.message.sender_port = meta.entry.sender[15:0];
        hdr.message.commit = meta.group.commit;
        hdr.message.base = meta.group.base;
        hdr.message.before = meta.group.base_term;
        hdr.message.learner = MULTICAST_NO_LEARNER;
        hdr.message.flags = (meta.bears ? MULTICAST_FLAG_PAYLOAD : 8w0)
            | (meta.entry.id == 0 ? MULTICAST_FLAG_NO_OP : 8w0)
            | (meta.entry.voided == 1 ? MULTICAST_FLAG_VOID : 8w0);
        multicast_list.read(hdr.message.list_version, meta.group.at);
        if (meta.entry.index != meta.group.base + 1) {
            multicast_entry_term.read(
                hdr.message.before,
                MULTICAST_PLACE(meta, meta.entry.index - 1)
            );
        }
    }
}

#endif
