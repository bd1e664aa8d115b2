// Copies of requests, held until the answer is overdue (paper §5.2).

#ifndef STATEPLANE_REPLICATION_RETRANSMISSION_P4
#define STATEPLANE_REPLICATION_RETRANSMISSION_P4

#include "events.p4"
#include "metadata.p4"
#include "ports.p4"
#include "replication_message.p4"
#include "replication_rules.p4"
#include "serial.p4"
#include "slots.p4"

// A lease request that was transmitted so often without an answer is given up.
const bit<16> LEASE_ATTEMPTS = 16;

// A held copy came back: transmit it again unless it was answered (paper §5.2).
control HandleHeldCopy(inout replication_headers_t hdr, inout replication_metadata_t meta) {
    bit<32> asked;

    apply {
        if (hdr.message.type == TYPE_WRITE_REQUEST) {
            // Only the copy of the last write: it carries the whole state.
            meta.send = (meta.slot.status == STATUS_EXCLUSIVE
                || meta.slot.status == STATUS_RECALLED)
                && hdr.message.lease_epoch == meta.slot.epoch
                && hdr.message.sequence == meta.slot.sequence
                && IS_NEWER(hdr.message.sequence, meta.slot.acknowledged);
        } else {
            slot_asked.read(asked, meta.slot.index);
            if (asked == hdr.message.request) {
                if (hdr.message.attempt < LEASE_ATTEMPTS) {
                    meta.send = true;
                } else {
                    replication_events.count(EVENT_LEASE_GIVEN_UP);
                    slot_asked.write(meta.slot.index, 0);
                }
            }
        }
        if (meta.send) {
            hdr.message.attempt = hdr.message.attempt + 1;
            meta.hold = true;
            replication_events.count(EVENT_RETRANSMITTED);
        }
    }
}

// Keeps a copy of a request that was sent, and brings held copies back to ingress.
@side_effects_allowed
control ReplicationEgress(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    bit<32> session;
    bit<16> headers_length;

    apply {
        if (standard_metadata.instance_type == INSTANCE_EGRESS_CLONE && hdr.message.isValid()) {
            // The session cut the packet off; the headers follow suit.
            headers_length = message_frame_bytes(hdr.state.isValid());
            hdr.message.flags = hdr.message.flags & ~FLAG_PACKET;
            hdr.ipv4.total_length = headers_length - ETHERNET_BYTES;
            hdr.udp.length = headers_length - (ETHERNET_BYTES + IPV4_BYTES);
            recirculate_preserving_field_list(0);
        } else if (meta.hold && hdr.message.isValid() && RULE_RETRANSMISSION) {
            session = (bit<32>)hdr.message.attempt;
            if (hdr.message.attempt >= HOLD_SESSIONS) {
                session = (bit<32>)(HOLD_SESSIONS - 1);
            }
            if (hdr.message.type == TYPE_WRITE_REQUEST) {
                session = session + HOLD_SESSION_WRITE;
            } else {
                session = session + HOLD_SESSION_LEASE;
            }
            clone(CloneType.E2E, session);
        }
    }
}

#endif
