// Leases: when a packet may be processed under one, until when it counts, when it is renewed,
// and how it ends before its time.

#ifndef STATEPLANE_REPLICATION_LEASE_P4
#define STATEPLANE_REPLICATION_LEASE_P4

#include "events.p4"
#include "metadata.p4"
#include "replication_message.p4"
#include "replication_rules.p4"
#include "slots.p4"

// Moves the deadline (rule 1). Shrinking by 1/512 is sound while all clock rates
// are within 900 ppm of true time.
control ExtendLease(inout replication_metadata_t meta, in replication_t message, in bool replace) {
    bit<48> span;
    bit<48> deadline;

    apply {
        span = (bit<48>)message.parked + (bit<48>)message.period;
        deadline = message.send_time + span - (span >> 9);
        if (message.period != 0 && (replace || deadline > meta.slot.deadline)) {
            meta.slot.deadline = deadline;
            slot_deadline.write(meta.slot.index, deadline);
            slot_period.write(meta.slot.index, message.period);
        }
    }
}

// Processes a packet under the lease that its flow has, and tells whether to renew that.
control UseLease(inout replication_metadata_t meta) {
    bit<32> period;
    bit<48> renewed;

    apply {
        meta.process = true;
        slot_used.write(meta.slot.index, meta.now);
        slot_period.read(period, meta.slot.index);
        // Rule 8: at half the period, and again each eighth of it.
        if (meta.now + (bit<48>)(period >> 1) > meta.slot.deadline) @unlikely {
            slot_renewed.read(renewed, meta.slot.index);
            meta.renews = meta.now > renewed + (bit<48>)(period >> 3);
            if (meta.renews) {
                slot_renewed.write(meta.slot.index, meta.now);
            }
        }
    }
}

// The store asks for a lease because another switch needs it: it ends at once, and
// the answer tells the last write made under it, for which the store waits (rule 19).
// A claim that has no slot uses no lease. A grant that is still on its way is asked for
// again when it has come.
control HandleRecall(inout replication_headers_t hdr, inout replication_metadata_t meta) {
    bool present;

    apply {
        present = meta.found
            && meta.slot.status != STATUS_PENDING
            && hdr.message.lease_epoch == meta.slot.epoch;
        if (present) {
            hdr.message.sequence = meta.slot.sequence;
            if (RULE_RECALL_STOPS) {
                slot_status.write(meta.slot.index, STATUS_RECALLED);
                slot_deadline.write(meta.slot.index, 0);
            }
        }
        if (present || !meta.found) {
            hdr.message.type = TYPE_RELEASE_REQUEST;
            hdr.message.flags = 0;
            hdr.message.state_length = 0;
            hdr.state.setInvalid();
            meta.without_packet = true;
            meta.send = true;
            replication_events.count(EVENT_RECALLED);
        }
    }
}

#endif
