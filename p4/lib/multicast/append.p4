// A leader's treatment of START: append, answer or refuse (rules 2, 15, 21, 22).

#ifndef STATEPLANE_MULTICAST_APPEND_P4
#define STATEPLANE_MULTICAST_APPEND_P4

#include "decide.p4"
#include "events.p4"
#include "log.p4"
#include "metadata.p4"
#include "multicast_message.p4"
#include "ports.p4"
#include "rules.p4"
#include "send.p4"
#include "state.p4"

// Moves the clock to `heard`, unless that is too far (rule 2).
control MulticastHear(in bit<64> heard, inout multicast_metadata_t meta, out bool refused) {
    apply {
        refused = false;
        if (heard > meta.group.clock) {
            if (heard - meta.group.clock > MULTICAST_MAX_JUMP) {
                multicast_events.count(MULTICAST_EVENT_JUMP);
                refused = true;
            } else {
                meta.group.clock = heard;
                multicast_clock.write(meta.group.at, heard);
            }
        }
    }
}

// True if the slot behind the log's end takes an entry: the window has `spare` places besides,
// and a copy of the entry can be held (rules 22, 23).
control MulticastRoom(in bit<32> spare, in multicast_metadata_t meta, out bool room) {
    bit<8> held;

    apply {
        multicast_entry_held.read(held, MULTICAST_PLACE(meta, meta.group.end + 1));
        room = meta.group.end - meta.group.base < MULTICAST_WINDOW - spare && held < 2;
    }
}

// Appends the entry whose id, destinations and sender are in `meta.entry`, and sends PROP.
control MulticastAppend(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastStoreEntry() store_entry;
    MulticastPutEntry() put_entry;
    MulticastRecallDecisions() recall;
    bit<64> time;

    apply {
        time = (MULTICAST_RULE_LOG_CLOCK ? meta.group.last_time : meta.group.clock) + 1;
        if (meta.group.clock > meta.group.last_time) {
            // A no-op takes the clock itself to the log (rule 14).
            time = meta.entry.id == 0 ? meta.group.clock : meta.group.clock + 1;
        }
        meta.group.clock = time;
        multicast_clock.write(meta.group.at, time);
        meta.entry.index = meta.group.end + 1;
        meta.entry.term = meta.group.promised;
        meta.entry.timestamp = time;
        meta.entry.decided = 0;
        meta.entry.done = 0;
        meta.entry.voided = 0;
        meta.entry.final = time;
        meta.entry.final_group = (bit<8>)meta.group.at;
        store_entry.apply(meta);
        put_entry.apply(hdr, meta);
        meta.to = MULTICAST_MEMBERS;
        if (MULTICAST_BUSY(meta) && (meta.entry.index & 3) != 0) {
            hdr.message.flags = hdr.message.flags | MULTICAST_FLAG_LATER;
            multicast_last_later.write(meta.group.at, meta.entry.index);
        }
        if (meta.entry.id == 0 || meta.entry.destinations != 32w1 << (bit<8>)meta.group.at) {
            multicast_last_told.write(meta.group.at, meta.entry.index);
        }
        if (meta.entry.id != 0 && meta.entry.destinations != 32w1 << (bit<8>)meta.group.at) {
            recall.apply(meta);
        }
        if (meta.entry.id == 0) {
            multicast_events.count(MULTICAST_EVENT_NO_OP);
        } else {
            multicast_events.count(MULTICAST_EVENT_APPENDED);
            meta.to = meta.to | MULTICAST_RECEIVERS;
            meta.receiver_type = MULTICAST_TYPE_PAYLOAD;
            meta.receiver_payload = true;
            if (meta.entry.destinations != 32w1 << (bit<8>)meta.group.at && !MULTICAST_BUSY(meta)) {
                // While many are under way, decisions move the other clock soon enough.
                meta.to = meta.to | MULTICAST_LEADERS;
                meta.leader_type = MULTICAST_TYPE_HINT;
            }
        }
    }
}

// Appends a no-op, if there is room.
control MulticastAppendNoOp(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastRoom() room_for;
    MulticastAppend() append;
    bool room;

    apply {
        room_for.apply(0, meta, room);
        if (room) {
            meta.entry.id = 0;
            meta.entry.destinations = 32w1 << (bit<8>)meta.group.at;
            meta.entry.sender = 0;
            // The frame's own payload is no part of it.
            meta.bears = false;
            append.apply(hdr, meta);
        } else {
            multicast_events.count(MULTICAST_EVENT_OUTSIDE_WINDOW);
        }
    }
}

// Answers a START whose message is in the log or over. If a leader tells with it the decision that the
// entry lacked, receivers and leaders hear of that: nothing else tells receivers of it.
control MulticastAnswerKnown(
    in bool old,
    in bit<32> index,
    inout multicast_headers_t hdr,
    inout multicast_metadata_t meta
) {
    MulticastLoadEntry() load_entry;
    MulticastNote() note;
    MulticastAnnounce() announce;
    MulticastAllReceived() all_received;
    MulticastCovered() covered_by;
    MulticastAnswerLeader() answer;
    MulticastSend() complete;
    bit<32> received;
    bit<8> type;
    bool covered;
    bool have;
    bool finishes;

    apply {
        have = false;
        finishes = false;
        if (!old) {
            load_entry.apply(index, meta);
            if ((hdr.message.flags & MULTICAST_FLAG_OF_LEADER) != 0 && hdr.message.timestamp != 0) {
                // It tells its decision at once (rule 15).
                note.apply(hdr.message, meta, finishes);
            }
            all_received.apply(meta, received);
            covered_by.apply(meta, covered);
            have = !MULTICAST_NEWER(index, received) && covered;
            hdr.message.index = index;
            hdr.message.timestamp = meta.entry.timestamp;
            hdr.message.final = meta.entry.final;
            hdr.message.final_group = meta.entry.final_group;
        }
        if (finishes) {
            announce.apply(false, hdr, meta);
        } else if ((hdr.message.flags & MULTICAST_FLAG_OF_LEADER) != 0) {
            type = have ? MULTICAST_TYPE_DONE : MULTICAST_TYPE_DECIDED;
            if (old) {
                multicast_events.count(MULTICAST_EVENT_OLD);
                type = MULTICAST_TYPE_OLD;
            }
            hdr.message.before = meta.group.done;
            if (old || !MULTICAST_NEWER(index, meta.group.commit)) {
                answer.apply(type, hdr, meta);
            } else {
                multicast_events.count(MULTICAST_EVENT_REPEATED);
            }
        } else if (old
            || (have
                && (index - meta.group.base <= MULTICAST_WINDOW / 2
                    || !MULTICAST_RULE_HELD_BACK))) {
            multicast_events.count(MULTICAST_EVENT_COMPLETED);
            hdr.message.flags = 0;
            if (old) {
                // The final timestamp is forgotten: this one is not below it (rules 17, 24).
                hdr.message.flags = MULTICAST_FLAG_VOID;
                hdr.message.final = meta.group.last_time;
            }
            complete.apply(
                MULTICAST_TYPE_COMPLETE,
                hdr.ipv4.source,
                hdr.udp.source_port,
                hdr,
                meta
            );
        } else {
            multicast_events.count(MULTICAST_EVENT_REPEATED);
        }
    }
}

// A message to order.
control MulticastHandleStart(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastFind() find;
    MulticastHear() hear;
    MulticastRoom() room_for;
    MulticastAppend() append;
    MulticastKeepDecision() keep_decision;
    MulticastAnswerKnown() answer_known;
    MulticastRefuse() refuse;
    bit<8> lanes;
    bit<8> code;
    bit<32> index;
    bool of_leader;
    bool found;
    bool old;
    bool jumps;
    bool room;

    action grant(bit<8> granted) {
        lanes = granted;
    }

    // Lanes that the controller granted to each session (rule 22).
    table multicast_sessions {
        key = { hdr.message.session: exact; }
        actions = { grant; }
        default_action = grant(0);
        size = MULTICAST_SESSIONS;
    }

    apply {
        code = 0;
        of_leader = (hdr.message.flags & MULTICAST_FLAG_OF_LEADER) != 0;
        multicast_sessions.apply();
        if (of_leader) {
            lanes = MULTICAST_LANES;
        }
        if (!meta.group.leads) {
            code = MULTICAST_CODE_NOT_LEADER;
        } else if ((hdr.message.destinations >> (bit<8>)meta.group.at)[0:0] == 0) {
            code = MULTICAST_CODE_NOT_ADDRESSED;
        } else if (lanes == 0 || hdr.message.session >= MULTICAST_SESSIONS) {
            code = MULTICAST_CODE_UNKNOWN_SESSION;
        } else if (hdr.message.lane >= lanes
            || hdr.message.lane >= MULTICAST_LANES
            || hdr.message.number == 0) {
            code = MULTICAST_CODE_UNKNOWN_LANE;
        } else if (meta.payload > meta.group.longest) {
            code = MULTICAST_CODE_TOO_LONG;
        } else {
            find.apply(hdr.message, meta, found, old, index);
            if (found || old) {
                answer_known.apply(old, index, hdr, meta);
            } else {
                room_for.apply(MULTICAST_WINDOW / 8, meta, room);
                if (!room) {
                    code = MULTICAST_CODE_FULL;
                } else {
                    hear.apply(of_leader ? hdr.message.timestamp : hdr.message.final, meta, jumps);
                    if (jumps) {
                        code = MULTICAST_CODE_JUMP;
                    } else {
                        if (of_leader && hdr.message.timestamp != 0) {
                            // It tells its decision at once (rule 15).
                            keep_decision.apply(hdr.message, meta);
                        }
                        meta.entry.id = hdr.message.session ++ hdr.message.lane
                            ++ hdr.message.number;
                        meta.entry.destinations = hdr.message.destinations;
                        meta.entry.sender = of_leader
                            ? hdr.message.sender_address ++ hdr.message.sender_port
                            : hdr.ipv4.source ++ hdr.udp.source_port;
                        append.apply(hdr, meta);
                    }
                }
            }
        }
        if (code == MULTICAST_CODE_NOT_LEADER) {
            multicast_events.count(MULTICAST_EVENT_NOT_LEADER);
        }
        if (code != 0 && !of_leader) {
            refuse.apply(code, hdr, meta);
        }
    }
}

#endif
