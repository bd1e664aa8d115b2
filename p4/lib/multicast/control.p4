// Messages of the controller: PREPARE and LEAD (rules 6 to 9, 11, 12).

#ifndef STATEPLANE_MULTICAST_CONTROL_P4
#define STATEPLANE_MULTICAST_CONTROL_P4

#include "append.p4"
#include "events.p4"
#include "log.p4"
#include "metadata.p4"
#include "multicast_message.p4"
#include "rules.p4"
#include "send.p4"
#include "state.p4"

// A new epoch begins.
control MulticastHandlePrepare(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastSend() promise;
    MulticastRefuse() refuse;

    apply {
        if (meta.group.promised != 0 && MULTICAST_NEWER(meta.group.promised, hdr.message.epoch)) {
            refuse.apply(MULTICAST_CODE_FENCED, hdr, meta);
        } else {
            if (hdr.message.epoch != meta.group.promised) {
                multicast_events.count(MULTICAST_EVENT_PROMISED);
                meta.group.promised = hdr.message.epoch;
                multicast_promised.write(meta.group.at, hdr.message.epoch);
                if (meta.group.leads && !MULTICAST_RULE_STEPS_DOWN) {
                    multicast_led.write(meta.group.at, hdr.message.epoch);
                }
            }
            hdr.message.origin = meta.group.member;
            hdr.message.index = meta.group.end;
            hdr.message.term = meta.group.last_term;
            hdr.message.timestamp = meta.group.last_time;
            hdr.message.commit = meta.group.commit;
            hdr.message.base = meta.group.base;
            promise.apply(MULTICAST_TYPE_PROMISE, hdr.ipv4.source, hdr.udp.source_port, hdr, meta);
        }
    }
}

// Takes the list of receivers of the message; who is new has nothing beyond the base.
control MulticastTakeList(in bool all, in multicast_t message, inout multicast_metadata_t meta) {
    bit<32> listed;

    apply {
        multicast_receivers.read(listed, meta.group.at);
        if (all) {
            listed = 0;
        }
#define MULTICAST_LIST_ONE(i) \
        if (message.before[i:i] == 1 && listed[i:i] == 0) { \
            multicast_received.write( \
                meta.group.at * MULTICAST_MOST_RECEIVERS + i, \
                meta.group.base \
            ); \
        }
        MULTICAST_EACH(MULTICAST_LIST_ONE)
        multicast_receivers.write(meta.group.at, message.before);
        multicast_list.write(meta.group.at, message.list_version);
        multicast_learner.write(meta.group.at, message.learner);
    }
}

// Begins to lead: nothing of what a leader knows is taken over (rule 8).
control MulticastBeginToLead(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastTakeList() take_list;
    MulticastAppendNoOp() append_no_op;

    apply {
        multicast_events.count(MULTICAST_EVENT_LED);
        meta.group.leads = true;
        multicast_led.write(meta.group.at, meta.group.promised);
        multicast_own.write(meta.group.at, meta.group.end + 1);
        multicast_members.write(meta.group.at, hdr.message.destinations);
        multicast_announced.write(meta.group.at, meta.group.base);
        multicast_last_told.write(meta.group.at, meta.group.end);
        multicast_told_done.write(meta.group.at, meta.group.base);
        multicast_done_owed.write(meta.group.at, 0);
        multicast_last_decided.write(meta.group.at, meta.group.base);
        multicast_told_complete.write(meta.group.at, meta.group.base);
        take_list.apply(true, hdr.message, meta);
#define MULTICAST_FORGET(i) \
        if (MULTICAST_RULE_MATCHES_FORGOTTEN) { \
            multicast_match.write( \
                meta.group.at * MULTICAST_MOST_MEMBERS + i, \
                meta.group.base \
            ); \
        }
        MULTICAST_EACH(MULTICAST_FORGET)
        if (MULTICAST_RULE_OWN_NO_OP) {
            append_no_op.apply(hdr, meta);
        }
    }
}

// The member is to lead, or does and is asked how far it is.
control MulticastHandleLead(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastBeginToLead() begin_to_lead;
    MulticastTakeList() take_list;
    MulticastAppendNoOp() append_no_op;
    MulticastRoom() room_for;
    MulticastSend() send_state;
    MulticastRefuse() refuse;
    MulticastRefuse() refuse_full;
    bit<32> own;
    bit<32> match;
    bit<64> time;
    bit<16> version;
    bit<8> learner;
    bit<8> flags;
    bool room;

    apply {
        room_for.apply(0, meta, room);
        if ((hdr.message.epoch != meta.group.promised && MULTICAST_RULE_LEAD_EPOCH)
            || hdr.message.epoch == 0) {
            refuse.apply(MULTICAST_CODE_FENCED, hdr, meta);
        } else if (!meta.group.leads && !room) {
            // Without its no-op it would lead and never commit: it is asked again.
            refuse_full.apply(MULTICAST_CODE_FULL, hdr, meta);
        } else if (!meta.group.leads) {
            begin_to_lead.apply(hdr, meta);
        } else {
            multicast_list.read(version, meta.group.at);
            if (((hdr.message.list_version - version) & 0x8000) == 0) {
                if (hdr.message.list_version != version) {
                    take_list.apply(false, hdr.message, meta);
                }
                multicast_learner.write(meta.group.at, hdr.message.learner);
            }
            multicast_own.read(own, meta.group.at);
            learner = hdr.message.learner;
            flags = 0;
            if (!MULTICAST_NEWER(own, meta.group.commit)) {
                flags = flags | MULTICAST_FLAG_ESTABLISHED;
            }
            if (learner < MULTICAST_MOST_MEMBERS) {
                multicast_match.read(
                    match,
                    meta.group.at * MULTICAST_MOST_MEMBERS + (bit<32>)learner
                );
                if (!MULTICAST_NEWER(own, match)) {
                    flags = flags | MULTICAST_FLAG_JOINED;
                } else if (meta.group.base == meta.group.end) {
                    // There is nothing to send it that would tell it where to go on: a no-op goes
                    // out when its copy returns.
                    append_no_op.apply(hdr, meta);
                }
            }
            hdr.message.flags = flags;
            hdr.message.learner = learner;
            hdr.message.origin = meta.group.member;
            hdr.message.index = own;
            hdr.message.before = meta.group.end;
            multicast_list.read(hdr.message.list_version, meta.group.at);
            hdr.message.term = meta.group.last_term;
            // Of the last committed entry: what is behind it may be cut off, and a receiver that
            // begins there would wait for a timestamp that no log reaches (rule 26).
            multicast_base_time.read(time, meta.group.at);
            if (meta.group.commit != meta.group.base) {
                multicast_entry_time.read(time, MULTICAST_PLACE(meta, meta.group.commit));
            }
            hdr.message.timestamp = time;
            hdr.message.commit = meta.group.commit;
            hdr.message.base = meta.group.base;
            send_state.apply(
                MULTICAST_TYPE_LEADING,
                hdr.ipv4.source,
                hdr.udp.source_port,
                hdr,
                meta
            );
        }
    }
}

#endif
