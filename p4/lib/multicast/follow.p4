// A follower's treatment of PROP and SKIP (rules 3, 6, 12, 23).

#ifndef STATEPLANE_MULTICAST_FOLLOW_P4
#define STATEPLANE_MULTICAST_FOLLOW_P4

#include "events.p4"
#include "log.p4"
#include "metadata.p4"
#include "multicast_message.p4"
#include "patience.p4"
#include "rules.p4"
#include "send.p4"
#include "state.p4"

// Frees the first entry if it is committed here and freed at the leader.
control MulticastFollowBase(in bit<32> base, inout multicast_metadata_t meta) {
    MulticastLoadEntry() load_entry;
    MulticastFreeEntry() free_entry;

    apply {
        if (MULTICAST_NEWER(base, meta.group.base)
            && MULTICAST_NEWER(meta.group.commit, meta.group.base)) {
            load_entry.apply(meta.group.base + 1, meta);
            free_entry.apply(meta);
        }
    }
}

// Takes an epoch that is not older than the one promised; who led stops (rule 9).
control MulticastTakeEpoch(in bit<32> epoch, inout multicast_metadata_t meta, out bool taken) {
    apply {
        // Who promised nothing yet takes any: serial numbers have no first one.
        taken = meta.group.promised == 0
            || !MULTICAST_NEWER(meta.group.promised, epoch)
            || !MULTICAST_RULE_FENCE;
        if (meta.group.promised == 0 || MULTICAST_NEWER(epoch, meta.group.promised)) {
            meta.group.promised = epoch;
            multicast_promised.write(meta.group.at, epoch);
            if (MULTICAST_RULE_STEPS_DOWN) {
                meta.group.leads = false;
            } else if (meta.group.leads) {
                multicast_led.write(meta.group.at, epoch);
            }
        }
        if (!taken || meta.group.leads) {
            multicast_events.count(MULTICAST_EVENT_OTHER_EPOCH);
            taken = false;
        }
    }
}

// Tells the leader up to which index the log matches, and which index is wanted.
control MulticastAcknowledge(
    in bit<32> match,
    in bit<32> wanted,
    inout multicast_headers_t hdr,
    inout multicast_metadata_t meta
) {
    MulticastSend() send;

    apply {
        hdr.message.index = match;
        hdr.message.base = wanted;
        hdr.message.origin = meta.group.member;
        send.apply(MULTICAST_TYPE_ACK, hdr.ipv4.source, MULTICAST_UDP_PORT, hdr, meta);
    }
}

// Reads the entry of a PROP into `meta.entry`.
control MulticastTakeEntry(in multicast_t message, inout multicast_metadata_t meta) {
    apply {
        meta.entry.index = message.index;
        meta.entry.term = message.term;
        meta.entry.timestamp = message.timestamp;
        meta.entry.id = (message.flags & MULTICAST_FLAG_NO_OP) != 0
            ? 64w0
            : message.session ++ message.lane ++ message.number;
        meta.entry.destinations = message.destinations;
        meta.entry.sender = message.sender_address ++ message.sender_port;
    }
}

// Takes over what is committed at the leader, as far as the logs match.
control MulticastFollowCommit(in bit<32> match, in bit<32> said, inout multicast_metadata_t meta) {
    bit<32> commit;

    apply {
        commit = MULTICAST_NEWER(said, match) && MULTICAST_RULE_COMMIT_MATCHED ? match : said;
        if (MULTICAST_NEWER(commit, meta.group.commit)) {
            meta.group.commit = commit;
            multicast_commit.write(meta.group.at, commit);
        }
    }
}

// Keeps the entry of a PROP that is not the next one, but is once those in front of it come, which are
// lost or late (rule 3). The one that is wanted is told once, and again after a while.
control MulticastKeepEarly(
    in multicast_t message,
    inout multicast_metadata_t meta,
    out bool silent
) {
    MulticastIsEarly() is_early;
    MulticastTakeEntry() take_entry;
    MulticastKeepEntry() keep_entry;
    bit<32> furthest;
    bit<32> furthest_in;
    bit<32> told;
    bit<48> told_at;
    bit<8> held;
    bool early;

    apply {
        is_early.apply(message.index, meta, early);
        multicast_entry_held.read(held, MULTICAST_PLACE(meta, message.index));
        if (!early && held >= 2) {
            multicast_events.count(MULTICAST_EVENT_HELD_TWICE);
        } else if (!early) {
            take_entry.apply(message, meta);
            keep_entry.apply(meta);
            multicast_entry_early.write(meta.entry.at, meta.entry.index);
            multicast_entry_early_in.write(meta.entry.at, meta.group.promised);
            multicast_entry_before.write(meta.entry.at, message.before);
            multicast_furthest.read(furthest, meta.group.at);
            multicast_furthest_in.read(furthest_in, meta.group.at);
            if (furthest_in != meta.group.promised || MULTICAST_NEWER(message.index, furthest)) {
                multicast_furthest.write(meta.group.at, message.index);
                multicast_furthest_in.write(meta.group.at, meta.group.promised);
            }
        }
        multicast_gap_told.read(told, meta.group.at);
        multicast_gap_told_at.read(told_at, meta.group.at);
        silent = told == meta.group.end + 1
            && multicast_elapsed(told_at, meta.now) < MULTICAST_TOLD;
        if (!silent) {
            multicast_gap_told.write(meta.group.at, meta.group.end + 1);
            multicast_gap_told_at.write(meta.group.at, meta.now);
        }
    }
}

// The entry behind the last one, if it came early. It is taken as it would be if it came now.
control MulticastNextEarly(in multicast_metadata_t meta, out bool next) {
    MulticastIsEarly() is_early;
    bit<32> before;

    apply {
        is_early.apply(meta.group.end + 1, meta, next);
        multicast_entry_before.read(before, MULTICAST_PLACE(meta, meta.group.end + 1));
        next = next && (before == meta.group.last_term || !MULTICAST_RULE_ENTRY_BEFORE);
    }
}

// Takes the entry behind the last one, which came early, to the log.
control MulticastTakeEarly(inout multicast_metadata_t meta) {
    MulticastLoadEntry() load_entry;
    MulticastExtend() extend;

    apply {
        load_entry.apply(meta.group.end + 1, meta);
        multicast_entry_early.write(meta.entry.at, ~meta.entry.index);
        multicast_events.count(MULTICAST_EVENT_ACCEPTED);
        extend.apply(meta);
    }
}

// A PROP came back, since entries behind its own came early: one joins the log with each pass, and the
// last pass tells how far the log is.
control MulticastJoin(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastNextEarly() next_early;
    MulticastNextEarly() more_early;
    MulticastTakeEarly() take_early;
    MulticastFollowCommit() follow_commit;
    MulticastFollowBase() follow_base;
    MulticastAcknowledge() acknowledge;
    bit<32> furthest;
    bit<32> furthest_in;
    bit<32> base;
    bool next;

    apply {
        if (!meta.group.leads && hdr.message.epoch == meta.group.promised) {
            base = hdr.message.base;
            next_early.apply(meta, next);
            if (next) {
                take_early.apply(meta);
                follow_commit.apply(meta.group.end, hdr.message.commit, meta);
                follow_base.apply(base, meta);
                more_early.apply(meta, next);
            }
            if (next) {
                meta.joins = 1;
            } else {
                hdr.message.flags = hdr.message.flags & ~MULTICAST_FLAG_GAP;
                multicast_furthest.read(furthest, meta.group.at);
                multicast_furthest_in.read(furthest_in, meta.group.at);
                if (furthest_in == meta.group.promised
                    && MULTICAST_NEWER(furthest, meta.group.end)) {
                    hdr.message.flags = hdr.message.flags | MULTICAST_FLAG_GAP;
                    multicast_gap_told.write(meta.group.at, meta.group.end + 1);
                    multicast_gap_told_at.write(meta.group.at, meta.now);
                }
                acknowledge.apply(meta.group.end, meta.group.end + 1, hdr, meta);
            }
        }
    }
}

// An entry of the leader.
control MulticastHandleProp(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastTakeEpoch() take_epoch;
    MulticastTakeEntry() take_entry;
    MulticastStoreEntry() store_entry;
    MulticastKeepEarly() keep_early;
    MulticastIsEarly() is_early;
    MulticastTakeEarly() take_early;
    MulticastNextEarly() next_early;
    MulticastFollowCommit() follow_commit;
    MulticastFollowBase() follow_base;
    MulticastFollowBase() follow_base_again;
    MulticastAcknowledge() acknowledge;
    bit<32> index;
    bit<32> base;
    bit<32> match;
    bit<32> wanted;
    bit<32> term;
    bit<8> held;
    bool taken;
    bool behind;
    bool empty;
    bool silent;
    bool early;
    bool accepted;
    bool next;

    apply {
        silent = false;
        accepted = false;
        next = false;
        index = hdr.message.index;
        base = hdr.message.base;
        take_epoch.apply(hdr.message.epoch, meta, taken);
        if (taken) {
            match = meta.group.base;
            // The entry before is the base, or in the log with its term.
            term = meta.group.base_term;
            if (index - 1 != meta.group.base) {
                multicast_entry_term.read(term, MULTICAST_PLACE(meta, index - 1));
            }
            behind = (index - 1 == meta.group.base || MULTICAST_HAS(meta, index - 1))
                && (term == hdr.message.before || !MULTICAST_RULE_ENTRY_BEFORE);
            // Who never had an entry goes on from the leader's base: serial numbers have no first
            // one.
            empty = meta.group.last_term == 0 && base != meta.group.base;
            if (empty) {
                multicast_events.count(MULTICAST_EVENT_OUT_OF_ORDER);
            } else if (!MULTICAST_NEWER(index, meta.group.base)) {
                multicast_events.count(MULTICAST_EVENT_REPEATED);
            } else if (index - meta.group.base > MULTICAST_WINDOW) {
                multicast_events.count(MULTICAST_EVENT_OUTSIDE_WINDOW);
            } else if ((hdr.message.flags & MULTICAST_FLAG_NO_OP) == 0
                && (hdr.message.session >= MULTICAST_SESSIONS
                    || hdr.message.lane >= MULTICAST_LANES)) {
                multicast_events.count(MULTICAST_EVENT_UNKNOWN_LANE);
            } else if (!behind) {
                multicast_events.count(MULTICAST_EVENT_OUT_OF_ORDER);
                if (MULTICAST_NEWER(index - 1, meta.group.end)) {
                    hdr.message.flags = hdr.message.flags | MULTICAST_FLAG_GAP;
                    keep_early.apply(hdr.message, meta, silent);
                }
            } else {
                multicast_entry_term.read(term, MULTICAST_PLACE(meta, index));
                multicast_entry_held.read(held, MULTICAST_PLACE(meta, index));
                is_early.apply(index, meta, early);
                if (MULTICAST_HAS(meta, index)
                    && (term == hdr.message.term || !MULTICAST_RULE_CUT_OFF)) {
                    multicast_events.count(MULTICAST_EVENT_REPEATED);
                    match = index;
                } else if (early) {
                    // Its copy is held: an entry with two copies could not be cut off.
                    take_early.apply(meta);
                    accepted = true;
                } else if (held >= 2) {
                    multicast_events.count(MULTICAST_EVENT_HELD_TWICE);
                } else {
                    if (MULTICAST_HAS(meta, index)) {
                        multicast_events.count(MULTICAST_EVENT_CUT_OFF);
                    }
                    multicast_events.count(MULTICAST_EVENT_ACCEPTED);
                    take_entry.apply(hdr.message, meta);
                    store_entry.apply(meta);
                    accepted = true;
                }
                if (accepted) {
                    match = index;
                    silent = (hdr.message.flags & MULTICAST_FLAG_LATER) != 0;
                    next_early.apply(meta, next);
                }
                if (match == index || !MULTICAST_RULE_COMMIT_MATCHED) {
                    follow_commit.apply(index, hdr.message.commit, meta);
                }
            }
            wanted = meta.group.end + 1;
            if (match == meta.group.base && MULTICAST_NEWER(index, meta.group.base)) {
                // It asks for the entry before, or for the first that it lacks.
                wanted = MULTICAST_NEWER(index - 1, meta.group.end)
                    ? meta.group.end + 1
                    : index - 1;
                wanted = MULTICAST_NEWER(wanted, meta.group.base) ? wanted : meta.group.base + 1;
            }
            if (empty) {
                match = base;
                wanted = base;
            } else {
                follow_base.apply(base, meta);
                follow_base_again.apply(base, meta);
            }
            if (next) {
                meta.joins = 1;
            } else if (!silent) {
                acknowledge.apply(match, wanted, hdr, meta);
            }
        }
    }
}

// The leader asks up to which index the log matches, since nothing follows the entry of the message, for
// which another one was to be answered (rule 3).
control MulticastHandleAsk(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastTakeEpoch() take_epoch;
    MulticastAcknowledge() acknowledge;
    bit<32> index;
    bit<32> match;
    bit<32> wanted;
    bit<32> term;
    bool taken;

    apply {
        index = hdr.message.index;
        take_epoch.apply(hdr.message.epoch, meta, taken);
        if (taken) {
            match = meta.group.base;
            wanted = meta.group.end + 1;
            multicast_entry_term.read(term, MULTICAST_PLACE(meta, index));
            if (MULTICAST_HAS(meta, index) && term == hdr.message.term) {
                match = index;
            } else if (MULTICAST_NEWER(index, meta.group.base)) {
                hdr.message.flags = hdr.message.flags | MULTICAST_FLAG_GAP;
                wanted = MULTICAST_NEWER(index, meta.group.end) ? meta.group.end + 1 : index;
            }
            acknowledge.apply(match, wanted, hdr, meta);
        }
    }
}

// Entries that the leader freed before this member had them (rule 12).
control MulticastHandleSkip(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastTakeEpoch() take_epoch;
    MulticastAcknowledge() acknowledge;
    bit<32> index;
    bit<32> term;
    bool taken;

    apply {
        index = hdr.message.index;
        take_epoch.apply(hdr.message.epoch, meta, taken);
        if (taken) {
            if (MULTICAST_NEWER(index, meta.group.base) || meta.group.last_term == 0) {
                multicast_entry_term.read(term, MULTICAST_PLACE(meta, index));
                if (!MULTICAST_HAS(meta, index) || term != hdr.message.term) {
                    multicast_events.count(MULTICAST_EVENT_SKIPPED);
                    meta.group.base = index;
                    meta.group.base_term = hdr.message.term;
                    meta.group.end = index;
                    meta.group.last_term = hdr.message.term;
                    meta.group.last_time = hdr.message.timestamp;
                    multicast_base.write(meta.group.at, index);
                    multicast_base_term.write(meta.group.at, hdr.message.term);
                    multicast_base_time.write(meta.group.at, hdr.message.timestamp);
                    multicast_end.write(meta.group.at, index);
                    multicast_last_term.write(meta.group.at, hdr.message.term);
                    multicast_last_time.write(meta.group.at, hdr.message.timestamp);
                    multicast_commit.write(meta.group.at, index);
                } else if (MULTICAST_NEWER(index, meta.group.commit)) {
                    // What was freed is committed.
                    meta.group.commit = index;
                    multicast_commit.write(meta.group.at, index);
                }
            }
            acknowledge.apply(
                MULTICAST_NEWER(index, meta.group.base) ? index : meta.group.base,
                meta.group.end + 1,
                hdr,
                meta
            );
        }
    }
}

#endif
