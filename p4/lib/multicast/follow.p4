// A follower's treatment of PROP and SKIP (rules 3, 6, 12, 23).

#ifndef STATEPLANE_MULTICAST_FOLLOW_P4
#define STATEPLANE_MULTICAST_FOLLOW_P4

#include "events.p4"
#include "log.p4"
#include "metadata.p4"
#include "multicast_message.p4"
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

// Keeps a PROP whose entry is not the next one, but may be soon: the entries in front of it are
// lost or late (rule 3). One PROP of an index waits at a time. Which entry is wanted is told once, and
// again by each 16th return, since that may be lost.
control MulticastWait(in bit<32> index, inout multicast_metadata_t meta, out bool silent) {
    bit<32> waits;
    bit<32> told;

    apply {
        multicast_gap_told.read(told, meta.group.at);
        silent = told == meta.group.end + 1 && (meta.early & 15) != 15;
        multicast_gap_told.write(meta.group.at, meta.group.end + 1);
        multicast_entry_early.read(waits, MULTICAST_PLACE(meta, index));
        meta.waits = (waits != index || meta.early != 0)
            && meta.early < MULTICAST_EARLY_RETURNS;
        multicast_entry_early.write(MULTICAST_PLACE(meta, index), meta.waits ? index : ~index);
    }
}

// An entry of the leader.
control MulticastHandleProp(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastTakeEpoch() take_epoch;
    MulticastStoreEntry() store_entry;
    MulticastFollowBase() follow_base;
    MulticastFollowBase() follow_base_again;
    MulticastAcknowledge() acknowledge;
    MulticastWait() wait;
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

    apply {
        silent = false;
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
            } else if (!behind) {
                if (meta.early == 0) {
                    multicast_events.count(MULTICAST_EVENT_OUT_OF_ORDER);
                }
                if (MULTICAST_NEWER(index - 1, meta.group.end)) {
                    hdr.message.flags = hdr.message.flags | MULTICAST_FLAG_GAP;
                    wait.apply(index, meta, silent);
                } else {
                    silent = meta.early != 0;
                }
            } else if ((hdr.message.flags & MULTICAST_FLAG_NO_OP) == 0
                && (hdr.message.session >= MULTICAST_SESSIONS
                    || hdr.message.lane >= MULTICAST_LANES)) {
                multicast_events.count(MULTICAST_EVENT_UNKNOWN_LANE);
            } else {
                multicast_entry_term.read(term, MULTICAST_PLACE(meta, index));
                multicast_entry_held.read(held, MULTICAST_PLACE(meta, index));
                if (MULTICAST_HAS(meta, index)
                    && (term == hdr.message.term || !MULTICAST_RULE_CUT_OFF)) {
                    multicast_events.count(MULTICAST_EVENT_REPEATED);
                    match = index;
                } else if (held >= 2) {
                    multicast_events.count(MULTICAST_EVENT_HELD_TWICE);
                } else {
                    if (MULTICAST_HAS(meta, index)) {
                        multicast_events.count(MULTICAST_EVENT_CUT_OFF);
                    }
                    multicast_events.count(MULTICAST_EVENT_ACCEPTED);
                    meta.entry.index = index;
                    meta.entry.term = hdr.message.term;
                    meta.entry.timestamp = hdr.message.timestamp;
                    meta.entry.id = (hdr.message.flags & MULTICAST_FLAG_NO_OP) != 0
                        ? 64w0
                        : hdr.message.session ++ hdr.message.lane ++ hdr.message.number;
                    meta.entry.destinations = hdr.message.destinations;
                    meta.entry.sender = hdr.message.sender_address ++ hdr.message.sender_port;
                    store_entry.apply(meta);
                    match = index;
                    silent = (hdr.message.flags & MULTICAST_FLAG_LATER) != 0;
                }
                if (match == index || !MULTICAST_RULE_COMMIT_MATCHED) {
                    // What is committed at the leader, as far as the logs match.
                    term = MULTICAST_NEWER(hdr.message.commit, index)
                        && MULTICAST_RULE_COMMIT_MATCHED
                        ? index
                        : hdr.message.commit;
                    if (MULTICAST_NEWER(term, meta.group.commit)) {
                        meta.group.commit = term;
                        multicast_commit.write(meta.group.at, term);
                    }
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
            if (!silent) {
                acknowledge.apply(match, wanted, hdr, meta);
            }
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
