// A leader's treatment of ACK, of other leaders' messages and with RECEIVED.

#ifndef STATEPLANE_MULTICAST_LEAD_P4
#define STATEPLANE_MULTICAST_LEAD_P4

#include "append.p4"
#include "decide.p4"
#include "events.p4"
#include "log.p4"
#include "metadata.p4"
#include "multicast_message.p4"
#include "patience.p4"
#include "ports.p4"
#include "rules.p4"
#include "send.p4"
#include "state.p4"

// True if the logs of a majority of the members match up to `index` (rules 1, 4).
control MulticastMajority(in bit<32> index, in multicast_metadata_t meta, out bool majority) {
    bit<32> members;
    bit<32> match;
    bit<8> size;
    bit<8> votes;
    bit<8> learner;
    bool has;

    apply {
        multicast_members.read(members, meta.group.at);
        multicast_learner.read(learner, meta.group.at);
        size = 0;
        votes = 0;
#define MULTICAST_VOTE(i) \
        if (members[i:i] == 1 || learner == i) { \
            multicast_match.read(match, meta.group.at * MULTICAST_MOST_MEMBERS + i); \
            has = i == meta.group.member || !MULTICAST_NEWER(index, match); \
            if (members[i:i] == 1) { \
                size = size + 1; \
            } \
            if (has && (members[i:i] == 1 || !MULTICAST_RULE_LEARNER_NO_VOTE)) { \
                votes = votes + 1; \
            } \
        }
        MULTICAST_EACH(MULTICAST_VOTE)
        majority = votes + votes > size || !MULTICAST_RULE_MAJORITY;
    }
}

// Commits what a majority has, from the leader's first own entry on (rule 4).
control MulticastCommit(in bit<32> index, inout multicast_metadata_t meta) {
    MulticastMajority() majority_of;
    bit<32> own;
    bool majority;

    apply {
        multicast_own.read(own, meta.group.at);
        majority = false;
        if (MULTICAST_NEWER(index, meta.group.commit)
            && (!MULTICAST_NEWER(own, index) || !MULTICAST_RULE_OWN_TERM)
            && !MULTICAST_NEWER(index, meta.group.end)) {
            majority_of.apply(index, meta, majority);
        }
        if (majority) {
            multicast_events.count(MULTICAST_EVENT_COMMITTED);
            meta.group.commit = index;
            multicast_commit.write(meta.group.at, index);
        }
    }
}

// True if no follower that matches up to `match` answers for the entries behind: their PROPs bore LATER,
// and that which would stand for them was not sent yet.
control MulticastIsSilent(in bit<32> match, in multicast_metadata_t meta, out bool silent) {
    bit<32> later;

    apply {
        multicast_last_later.read(later, meta.group.at);
        silent = later == meta.group.end
            && meta.group.end != match
            && meta.group.end - match <= (meta.group.end & 3);
    }
}

// How far a member's log matches.
control MulticastHandleAck(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastCommit() commit_matched;
    MulticastCommit() commit_next;
    MulticastLoadEntry() load_entry;
    MulticastAnnounce() announce;
    MulticastIsSilent() is_silent;
    MulticastSend() send_skip;
    MulticastSend() send_ask;
    MulticastLearn() learn;
    bit<48> moved;
    bit<48> patience;
    bit<1> resent;
    bit<32> members;
    bit<32> match;
    bit<32> place;
    bit<32> own;
    bit<32> next;
    bit<32> told;
    bit<32> incarnation;
    bit<8> learner;
    bool silent;

    apply {
        multicast_members.read(members, meta.group.at);
        multicast_learner.read(learner, meta.group.at);
        if (!meta.group.leads) {
            multicast_events.count(MULTICAST_EVENT_NOT_LEADER);
        } else if (hdr.message.epoch != meta.group.promised && MULTICAST_RULE_ACK_EPOCH) {
            multicast_events.count(MULTICAST_EVENT_OTHER_EPOCH);
        } else if (hdr.message.origin >= MULTICAST_MOST_MEMBERS
            || ((members >> hdr.message.origin)[0:0] == 0 && hdr.message.origin != learner)
            || MULTICAST_NEWER(hdr.message.index, meta.group.end)) {
            multicast_events.count(MULTICAST_EVENT_UNKNOWN_MEMBER);
        } else {
            place = meta.group.at * MULTICAST_MOST_MEMBERS + (bit<32>)hdr.message.origin;
            multicast_match.read(match, place);
            if ((hdr.message.flags & MULTICAST_FLAG_GAP) != 0) {
                multicast_match_gap.write(place, hdr.message.base);
                multicast_gap_moved.write(meta.group.at, meta.now);
            }
            if (MULTICAST_NEWER(hdr.message.index, match)) {
                multicast_match.write(place, hdr.message.index);
                MULTICAST_MOVES(match, place, match + 1, 9)
            }
            commit_matched.apply(hdr.message.index, meta);
            // A vote may complete a majority for less than its own index.
            multicast_own.read(own, meta.group.at);
            next = MULTICAST_NEWER(own, meta.group.commit + 1) ? own : meta.group.commit + 1;
            commit_next.apply(next, meta);
            multicast_announced.read(next, meta.group.at);
            if (MULTICAST_NEWER(meta.group.base, next)) {
                next = meta.group.base;
            }
            is_silent.apply(hdr.message.index, meta, silent);
            // A follower that says what it lacks gets that again.
            silent = silent && (hdr.message.flags & MULTICAST_FLAG_GAP) == 0;
            // For the start that said ACK (rule 5).
            incarnation = hdr.message.incarnation;
            if (!MULTICAST_NEWER(hdr.message.base, meta.group.base) && MULTICAST_RULE_SKIP) {
                multicast_events.count(MULTICAST_EVENT_SKIPPED);
                hdr.message.index = meta.group.base;
                hdr.message.term = meta.group.base_term;
                multicast_base_time.read(hdr.message.timestamp, meta.group.at);
                send_skip.apply(
                    MULTICAST_TYPE_SKIP,
                    hdr.ipv4.source,
                    MULTICAST_UDP_PORT,
                    hdr,
                    meta
                );
                hdr.message.incarnation = incarnation;
            } else if (MULTICAST_NEWER(meta.group.commit, next)) {
                // A vote may commit several entries. Receivers have heard of those of this epoch, and
                // conclude from the last one that they are committed (rule 18).
                multicast_last_told.read(told, meta.group.at);
                next = MULTICAST_NEWER(told, next) ? next + 1 : meta.group.commit;
                load_entry.apply(next, meta);
                multicast_announced.write(meta.group.at, next);
                if (meta.group.commit == next
                    || !MULTICAST_BUSY(meta)
                    || meta.entry.term != meta.group.promised
                    || meta.entry.id == 0
                    || meta.entry.destinations != 32w1 << (bit<8>)meta.group.at) {
                    announce.apply(false, hdr, meta);
                }
                meta.again = meta.group.commit != next || silent;
            } else if (silent) {
                multicast_events.count(MULTICAST_EVENT_ASKED);
                hdr.message.index = meta.group.end;
                hdr.message.term = meta.group.last_term;
                send_ask.apply(MULTICAST_TYPE_ASK, hdr.ipv4.source, MULTICAST_UDP_PORT, hdr, meta);
                hdr.message.incarnation = incarnation;
            }
        }
    }
}

// Tells and frees what all receivers have, one entry a packet: DONE to other destinations, unless the
// next one will tell it or many are under way, and COMPLETE to the sender, unless that is too far
// beyond the base (rules 22, 24). A packet after which there
// is more of that comes back at once. `lacks` is the final timestamp for which all that waits, 0 if
// none is.
control MulticastProgress(
    inout multicast_headers_t hdr,
    inout multicast_metadata_t meta,
    out bit<64> lacks
) {
    MulticastAllReceived() all_received;
    MulticastCovered() covered_done;
    MulticastCovered() covered_complete;
    MulticastCovered() covered_free;
    MulticastLoadEntry() load_done;
    MulticastLoadEntry() load_complete;
    MulticastLoadEntry() load_free;
    MulticastPutEntry() put_done;
    MulticastPutEntry() put_complete;
    MulticastFreeEntry() free_entry;
    MulticastSend() send;
    MulticastLearn() learn;
    bit<48> moved;
    bit<48> patience;
    bit<1> resent;
    bit<32> received;
    bit<32> own;
    bit<32> next;
    bit<32> owed;
    bit<32> others;
    bit<32> told;
    bool covered;
    bool goes_on;

    apply {
        lacks = 0;
        goes_on = false;
        own = 32w1 << (bit<8>)meta.group.at;
        all_received.apply(meta, received);
        if (MULTICAST_NEWER(received, meta.group.done)) {
            load_done.apply(meta.group.done + 1, meta);
            covered_done.apply(meta, covered);
            if (covered) {
                meta.group.done = meta.group.done + 1;
                multicast_told_done.write(meta.group.at, meta.group.done);
                goes_on = true;
                // Entries that are done together are told together, but those of more than two groups.
                multicast_done_owed.read(owed, meta.group.at);
                others = meta.entry.destinations & ~own;
                owed = owed | others;
                told = 0;
                if ((others & (others - 1)) != 0) {
                    told = others;
                } else if (received == meta.group.done
                    && (!MULTICAST_BUSY(meta) || (meta.group.done & 3) == 0)) {
                    told = owed;
                }
                if (told != 0) {
                    if (told != others) {
                        // Groups hear nothing of messages that do not address them (rule 16).
                        meta.entry.id = 0;
                        meta.entry.sender = 0;
                    }
                    put_done.apply(hdr, meta);
                    hdr.message.destinations = told;
                    meta.to = MULTICAST_LEADERS;
                    meta.leader_type = MULTICAST_TYPE_DONE;
                }
                owed = owed & ~told;
                multicast_done_owed.write(meta.group.at, owed);
            } else {
                lacks = meta.entry.final;
            }
        }
        multicast_told_complete.read(next, meta.group.at);
        if (MULTICAST_NEWER(meta.group.base, next)) {
            next = meta.group.base;
        }
        if (meta.to == 0
            && MULTICAST_NEWER(received, next)
            && (next - meta.group.base < MULTICAST_WINDOW / 2 || !MULTICAST_RULE_HELD_BACK)) {
            load_complete.apply(next + 1, meta);
            covered_complete.apply(meta, covered);
            if (covered) {
                next = next + 1;
                goes_on = true;
                multicast_told_complete.write(meta.group.at, next);
                if (meta.entry.id != 0) {
                    multicast_events.count(MULTICAST_EVENT_COMPLETED);
                    put_complete.apply(hdr, meta);
                    send.apply(
                        MULTICAST_TYPE_COMPLETE,
                        meta.entry.sender[47:16],
                        meta.entry.sender[15:0],
                        hdr,
                        meta
                    );
                }
            }
        }
        if (MULTICAST_NEWER(next, meta.group.base)
            && MULTICAST_NEWER(meta.group.done, meta.group.base)) {
            load_free.apply(meta.group.base + 1, meta);
            covered_free.apply(meta, covered);
            if (covered
                && ((meta.entry.destinations & ~(meta.entry.done | own)) == 0
                    || !MULTICAST_RULE_DONE)) {
                // Entries are freed one by one, however many are received together.
                MULTICAST_MOVES(base, meta.group.at, meta.entry.index, 12)
                free_entry.apply(meta);
                goes_on = true;
            } else if (!covered) {
                // Told as received before another leader decided a later timestamp for it.
                lacks = meta.entry.final;
            }
        }
        meta.again = goes_on
            && (MULTICAST_NEWER(received, meta.group.done)
                || MULTICAST_NEWER(received, next)
                || MULTICAST_NEWER(received, meta.group.base));
    }
}

// Takes a timestamp that entries wait for to the log, if the frame has nothing else to tell (rule
// 14). Receivers name it only while they have the message and do not deliver it. They do not name
// that of a duplicate, which they drop, and a group may have no receivers.
control MulticastCover(
    in bit<64> lacks,
    inout multicast_headers_t hdr,
    inout multicast_metadata_t meta
) {
    MulticastHear() hear;
    MulticastAppendNoOp() append_no_op;
    bool jumps;

    apply {
        if (lacks > meta.group.last_time
            && meta.to == 0
            && !meta.sends
            && MULTICAST_RULE_CLOCK_LOGGED) {
            hear.apply(lacks, meta, jumps);
            if (!jumps) {
                append_no_op.apply(hdr, meta);
            }
        }
    }
}

// HINT, DECIDED, DONE and OLD of another destination's leader.
control MulticastHandleLeader(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastHear() hear;
    MulticastHearDone() hear_done;
    MulticastFind() find;
    MulticastLoadEntry() load_entry;
    MulticastKeepDecision() keep_decision;
    MulticastNote() note;
    MulticastAnnounce() announce;
    MulticastProgress() progress;
    MulticastCover() cover;
    bit<64> lacks;
    bit<32> index;
    bool found;
    bool old;
    bool jumps;
    bool finishes;

    apply {
        jumps = false;
        if (!meta.group.leads) {
            multicast_events.count(MULTICAST_EVENT_NOT_LEADER);
        } else {
            hear.apply(
                hdr.message.type == MULTICAST_TYPE_OLD ? 64w0 : hdr.message.timestamp,
                meta,
                jumps
            );
        }
        if (meta.group.leads
            && !jumps
            && (hdr.message.type != MULTICAST_TYPE_HINT || !MULTICAST_RULE_HINT)) {
            find.apply(hdr.message, meta, found, old, index);
            if (!found && hdr.message.type == MULTICAST_TYPE_DONE) {
                hear_done.apply(hdr.message, meta);
                progress.apply(hdr, meta, lacks);
                cover.apply(lacks, hdr, meta);
            } else if (!found && !old && hdr.message.type == MULTICAST_TYPE_DECIDED) {
                keep_decision.apply(hdr.message, meta);
            } else if (!found) {
                multicast_events.count(MULTICAST_EVENT_UNKNOWN_MESSAGE);
            } else {
                load_entry.apply(index, meta);
                if (hdr.message.type == MULTICAST_TYPE_OLD
                    && MULTICAST_NEWER(index, meta.group.commit)) {
                    // Only what is committed can be void.
                    multicast_events.count(MULTICAST_EVENT_UNKNOWN_MESSAGE);
                } else {
                    note.apply(hdr.message, meta, finishes);
                    if (finishes) {
                        announce.apply(false, hdr, meta);
                        // The other leaders have this group's timestamp or ask for it.
                        meta.to = MULTICAST_RECEIVERS;
                    } else {
                        progress.apply(hdr, meta, lacks);
                        cover.apply(lacks, hdr, meta);
                    }
                }
            }
        }
    }
}

// A receiver has all up to an index.
control MulticastHandleReceived(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastHear() hear;
    MulticastProgress() progress;
    MulticastCover() cover;
    MulticastSend() send_base;
    MulticastLearn() learn;
    bit<48> moved;
    bit<48> patience;
    bit<1> resent;
    bit<64> lacks;
    bit<32> receivers;
    bit<32> received;
    bit<32> place;
    bit<16> version;
    bool jumps;

    apply {
        multicast_receivers.read(receivers, meta.group.at);
        multicast_list.read(version, meta.group.at);
        if (!meta.group.leads) {
            multicast_events.count(MULTICAST_EVENT_NOT_LEADER);
        } else if (hdr.message.origin >= MULTICAST_MOST_RECEIVERS
            || (receivers >> hdr.message.origin)[0:0] == 0
            || (hdr.message.list_version != version && MULTICAST_RULE_LIST_VERSION)
            || MULTICAST_NEWER(hdr.message.index, meta.group.end)) {
            multicast_events.count(MULTICAST_EVENT_UNKNOWN_RECEIVER);
        } else if (MULTICAST_NEWER(meta.group.base, hdr.message.index)) {
            // It began at a place in the order, and this leader had freed more: it hears that it
            // lacks what nobody keeps, also when there is nothing to deliver (rule 26).
            multicast_events.count(MULTICAST_EVENT_SKIPPED);
            hdr.message.flags = MULTICAST_FLAG_NO_OP;
            hdr.message.origin = meta.group.member;
            hdr.message.commit = meta.group.commit;
            hdr.message.base = meta.group.base;
            send_base.apply(MULTICAST_TYPE_DELIVER, hdr.ipv4.source, MULTICAST_UDP_PORT, hdr, meta);
        } else {
            place = meta.group.at * MULTICAST_MOST_RECEIVERS + (bit<32>)hdr.message.origin;
            multicast_received.read(received, place);
            if ((hdr.message.flags & MULTICAST_FLAG_GAP) != 0) {
                multicast_received_gap.write(place, hdr.message.index + 1);
                multicast_gap_moved.write(meta.group.at, meta.now);
            }
            if (MULTICAST_NEWER(hdr.message.index, received)) {
                multicast_received.write(place, hdr.message.index);
                MULTICAST_MOVES(received, place, received + 1, 9)
            }
            lacks = hdr.message.final;
            jumps = true;
            if (lacks > meta.group.last_time && MULTICAST_RULE_CLOCK_LOGGED) {
                hear.apply(lacks, meta, jumps);
            }
            if (jumps) {
                progress.apply(hdr, meta, lacks);
            }
            cover.apply(lacks, hdr, meta);
        }
    }
}

#endif
