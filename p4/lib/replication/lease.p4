// Leases: how one is granted, used, asked about, and how it ends before its time.

#ifndef STATEPLANE_REPLICATION_LEASE_P4
#define STATEPLANE_REPLICATION_LEASE_P4

#include "events.p4"
#include "metadata.p4"
#include "replication_message.p4"
#include "replication_rules.p4"
#include "slots.p4"
#include "term.p4"

// Notes when the request was sent that a grant answers (rule 1): the newest one's of those of one
// epoch, whose first is `newer` than the lease before.
control NoteGrant(inout replication_metadata_t meta, in replication_t message, in bool newer) {
    JudgeLease() judge_grant;
    bit<48> sent;

    apply {
        sent = message.send_time;
        if (!RULE_GRANT_SENT) {
            sent = meta.now;
        }
        if (newer || sent > meta.slot.granted) {
            meta.slot.granted = sent;
            // The request's: a program with more shards chooses another one for the same key.
            meta.slot.shard = message.shard;
            slot_grant.write(meta.slot.index, message.shard ++ sent);
        }
        judge_grant.apply(meta);
    }
}

// Ends the lease of a slot at once, for good (rule 19).
control GiveUp(inout replication_metadata_t meta) {
    apply {
        if (RULE_RECALL_STOPS) {
            slot_status.write(meta.slot.index, STATUS_RECALLED);
            slot_grant.write(meta.slot.index, meta.slot.shard ++ 48w0);
        }
    }
}

// The store asks for a lease because another switch needs it: it ends at once, and
// the answer tells the last write made under it, for which the store waits (rule 19).
// A claim that has no slot uses no lease. A grant that is still on its way is asked for
// again when it has come.
//
// Or the store asks for a lease that was unused for `age` µs (rule 22): one that was used since
// goes on. Both answers tell for how long it was unused.
control HandleRecall(inout replication_headers_t hdr, inout replication_metadata_t meta) {
    GiveUp() give_up;
    bool present;
    bool goes_on = false;
    bit<48> used;
    bit<64> unused = 0;

    apply {
        present = meta.found
            && meta.slot.status != STATUS_PENDING
            && hdr.message.lease_epoch == meta.slot.epoch;
        if (present) {
            slot_used.read(used, meta.slot.index);
            // Of several workers another one's packet may be the later one.
            if (meta.now > used) {
                unused = (bit<64>)(meta.now - used);
            }
            goes_on = hdr.message.type == TYPE_IDLE
                && meta.slot.status != STATUS_RECALLED
                && unused < hdr.message.age;
            hdr.message.sequence = meta.slot.sequence;
        }
        hdr.message.age = unused;
        if (goes_on) {
            hdr.message.type = TYPE_USED;
            replication_events.count(EVENT_USED);
        } else if (present || !meta.found) {
            hdr.message.type = TYPE_RELEASE_REQUEST;
            if (present) {
                give_up.apply(meta);
            }
            replication_events.count(EVENT_RECALLED);
        }
        if (present || !meta.found) {
            hdr.message.flags = 0;
            hdr.message.state_length = 0;
            hdr.state.setInvalid();
            meta.without_packet = true;
            meta.send = true;
        }
    }
}

#endif
