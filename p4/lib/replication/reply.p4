// Messages from the store: which are believed, and what a reply does to the slot of its flow.

#ifndef STATEPLANE_REPLICATION_REPLY_P4
#define STATEPLANE_REPLICATION_REPLY_P4

#include "events.p4"
#include "lease.p4"
#include "metadata.p4"
#include "order.p4"
#include "replication_message.p4"
#include "replication_rules.p4"
#include "retransmission.p4"
#include "serial.p4"
#include "slots.p4"
#include "term.p4"

// When the chain of a shard was last heard (rule 17), in µs of the switch clock.
register<bit<48>>(REPLICATION_SHARDS) replication_heard;

// Tells whether a message is undamaged, of this run of this switch, and from the present
// chain of its shard. `whole`: its lengths agree with the frame's.
control CheckMessage(
    in replication_headers_t hdr,
    in replication_metadata_t meta,
    in standard_metadata_t standard_metadata,
    in bool whole,
    out bool believed
) {
    apply {
        believed = false;
        if (!hdr.message.isValid()
            || (!whole && standard_metadata.instance_type != INSTANCE_RECIRCULATED)
            || standard_metadata.checksum_error == 1
            || standard_metadata.parser_error != error.NoError
            || hdr.message.version != REPLICATION_VERSION) {
            replication_events.count(EVENT_BAD_MESSAGE);
        } else if (hdr.ipv4.destination != meta.own_address
            && standard_metadata.instance_type != INSTANCE_RECIRCULATED) {
            replication_events.count(EVENT_FOREIGN_SWITCH);
        } else if (hdr.message.switch_id != meta.switch_id) {
            replication_events.count(EVENT_FOREIGN_SWITCH);
        } else if (hdr.message.incarnation != meta.incarnation && RULE_INCARNATION) {
            replication_events.count(EVENT_OTHER_INCARNATION);
        } else if (!meta.chain_known) {
            replication_events.count(EVENT_UNKNOWN_SHARD);
        } else if (standard_metadata.instance_type != INSTANCE_RECIRCULATED
            && standard_metadata.ingress_port != meta.chain_port) {
            replication_events.count(EVENT_WRONG_PORT);
        } else if (standard_metadata.instance_type != INSTANCE_RECIRCULATED
            && hdr.message.chain_epoch != meta.chain_epoch) {
            replication_events.count(EVENT_OTHER_CHAIN_EPOCH);
        } else {
            believed = true;
        }
    }
}

// Takes a lease, and processes the packet that waited for it.
control HandleGrant(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    NoteGrant() note_grant;
    ReturnedOnce() returned_once;
    bool newer;
    bool first;
    bit<32> asked;

    apply {
        newer = meta.slot.status == STATUS_PENDING
            || IS_NEWER(hdr.message.lease_epoch, meta.slot.epoch);
        // What answers a request made under the present epoch is not older than that,
        // however far the numbers are apart.
        slot_asked.read(asked, meta.slot.index);
        if (asked != 0 && hdr.message.lease_epoch != meta.slot.epoch) {
            newer = newer || hdr.message.request == asked || IS_NEWER(hdr.message.request, asked);
        }
        if (!newer
            && (meta.slot.status == STATUS_RECALLED
                || hdr.message.lease_epoch != meta.slot.epoch)) {
            replication_events.count(EVENT_STALE_REPLY);
        } else if (!hdr.state.isValid()) {
            replication_events.count(EVENT_BAD_MESSAGE);
        } else {
            slot_asked.write(meta.slot.index, 0);
            if (newer || !RULE_INSTALL_ONCE) {
                meta.slot.epoch = hdr.message.lease_epoch;
                meta.slot.sequence = hdr.message.sequence;
                meta.slot.acknowledged = hdr.message.sequence;
                meta.value = hdr.state.value;
                slot_epoch.write(meta.slot.index, meta.slot.epoch);
                slot_sequence.write(meta.slot.index, meta.slot.sequence);
                slot_acknowledged.write(meta.slot.index, meta.slot.acknowledged);
                slot_value.write(meta.slot.index, meta.value);
                replication_events.count(EVENT_INSTALLED);
            }
            if ((hdr.message.flags & FLAG_SHARED) != 0) {
                meta.slot.status = STATUS_SHARED;
            } else {
                meta.slot.status = STATUS_EXCLUSIVE;
            }
            slot_status.write(meta.slot.index, meta.slot.status);
            note_grant.apply(meta, hdr.message, newer);
            if ((hdr.message.flags & FLAG_PACKET) != 0) {
                if (!meta.slot.counts) {
                    replication_events.count(EVENT_GRANT_EXPIRED);
                } else {
                    returned_once.apply(meta.slot.index, hdr.message.request, first);
                    if (first) {
                        meta.process = true;
                        standard_metadata.ingress_port = (bit<9>)hdr.message.ingress_port;
                    } else {
                        replication_events.count(EVENT_DUPLICATE_PACKET);
                    }
                }
            }
        }
    }
}

// Gives the slot up if the claim has nothing more to expect from the store.
control HandleRefusal(in replication_t message, in replication_metadata_t meta) {
    action free_slot() {
        slot_key.write(meta.slot.index, 0);
        slot_status.write(meta.slot.index, STATUS_FREE);
        slot_claim.write(meta.slot.index, 0);
        slot_asked.write(meta.slot.index, 0);
    }

    apply {
        replication_events.count(EVENT_REFUSED);
        if (message.code == CODE_FENCED) {
            // Fences the epoch that the request bore, not a later grant of
            // the same claim. One that was given up and left nothing unwritten may
            // have asked again.
            if (meta.slot.status != STATUS_PENDING
                && message.sequence == meta.slot.epoch
                && !(meta.slot.status == STATUS_RECALLED
                    && meta.slot.sequence == meta.slot.acknowledged)) {
                replication_events.count(EVENT_FENCED);
                free_slot();
            }
        } else if (message.code == CODE_NO_RECORD
            || message.code == CODE_POOL_EXHAUSTED
            || message.code == CODE_BAD_STATE
            || message.code == CODE_STORE_FULL
            || message.code == CODE_NOT_WRITABLE
            || message.code == CODE_QUOTA_EXCEEDED) {
            free_slot();
        }
    }
}

// A write or a renewal is answered: the packet that waited leaves.
control HandleAcknowledgement(
    in replication_t message,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReturnedOnce() returned_once;
    bool first;
    bit<32> held;

    apply {
        // What the claim did not write cannot be acknowledged to it.
        held = message.sequence;
        if (held != meta.slot.sequence && !IS_NEWER(meta.slot.sequence, held)) {
            held = meta.slot.sequence;
        }
        if (IS_NEWER(held, meta.slot.acknowledged)) {
            meta.slot.acknowledged = held;
            slot_acknowledged.write(meta.slot.index, meta.slot.acknowledged);
        }
        if ((message.flags & FLAG_PACKET) != 0) {
            returned_once.apply(meta.slot.index, message.request, first);
            if (first) {
                meta.release = true;
                standard_metadata.ingress_port = (bit<9>)message.ingress_port;
                replication_events.count(EVENT_RELEASED);
            } else {
                replication_events.count(EVENT_DUPLICATE_PACKET);
            }
        }
    }
}

// A message from the store, for this switch and of a slot that it holds.
control HandleReply(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    LeaveLine() leave_line;
    HandleGrant() handle_grant;
    HandleRefusal() handle_refusal;
    HandleAcknowledgement() handle_acknowledgement;

    apply {
        if ((hdr.message.flags & FLAG_PACKET) != 0) {
            leave_line.apply(meta.slot.index, hdr.message.request);
        }
        if (hdr.message.type == TYPE_LEASE_REPLY) {
            handle_grant.apply(hdr, meta, standard_metadata);
        } else if (hdr.message.type == TYPE_REFUSAL) {
            handle_refusal.apply(hdr.message, meta);
        } else if (meta.slot.status == STATUS_PENDING
            || hdr.message.lease_epoch != meta.slot.epoch) {
            replication_events.count(EVENT_STALE_REPLY);
        } else {
            handle_acknowledgement.apply(hdr.message, meta, standard_metadata);
        }
    }
}

// A message that is believed: an answer or a recall of the store, or a held copy that came back.
control HandleMessage(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    HandleReply() handle_reply;
    HandleRecall() handle_recall;
    HandleHeldCopy() handle_held_copy;
    bit<48> line;
    bit<32> unreleased;

    apply {
        if (standard_metadata.instance_type == INSTANCE_RECIRCULATED) {
            if (meta.found) {
                handle_held_copy.apply(hdr, meta);
            }
        } else if (hdr.message.type == TYPE_RECALL || hdr.message.type == TYPE_IDLE) {
            handle_recall.apply(hdr, meta);
        } else if (hdr.message.type == TYPE_PROBE_REPLY) {
            @atomic @apart {
                replication_heard.write((bit<32>)meta.shard, meta.now);
            }
        } else if (hdr.message.type == TYPE_LEASE_REPLY
            || hdr.message.type == TYPE_WRITE_REPLY
            || hdr.message.type == TYPE_RENEW_REPLY
            || hdr.message.type == TYPE_REFUSAL) {
            @atomic @apart {
                replication_heard.write((bit<32>)meta.shard, meta.now);
            }
            if (meta.found) {
                handle_reply.apply(hdr, meta, standard_metadata);
                if (meta.process) {
                    slot_line.read(line, meta.slot.index);
                    slot_unreleased.read(unreleased, meta.slot.index);
                    meta.behind = unreleased != 0 && meta.now < line && RULE_RELEASE_ORDER;
                }
            } else {
                replication_events.count(EVENT_STALE_REPLY);
            }
        } else {
            replication_events.count(EVENT_FOREIGN_TYPE);
        }
    }
}

#endif
