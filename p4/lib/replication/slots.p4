// The table of flows: what a switch keeps of each, where it lies, and who may have its slot.

#ifndef STATEPLANE_REPLICATION_SLOTS_P4
#define STATEPLANE_REPLICATION_SLOTS_P4

#include "flow_hash.p4"
#include "metadata.p4"
#include "replication_message.p4"
#include "replication_rules.p4"
#include "term.p4"

// Status of a slot.
const bit<8> STATUS_FREE = 0;
// Claimed; no lease was ever granted for this claim.
const bit<8> STATUS_PENDING = 1;
const bit<8> STATUS_EXCLUSIVE = 2;
const bit<8> STATUS_SHARED = 3;
// The lease was given up, and its epoch never counts again; writes made under it may
// still be unacknowledged.
const bit<8> STATUS_RECALLED = 4;

#ifndef REPLICATION_BUCKETS
#define REPLICATION_BUCKETS 16384
#endif

// Slots of one bucket; FindInBucket and ClaimInBucket are unrolled for this number. A flow
// has two buckets: it lies in the second one only if it found the first one full, so that
// nearly all are found as soon as in a table of single buckets.
#define REPLICATION_WAYS 4
#define REPLICATION_SLOTS (REPLICATION_BUCKETS * REPLICATION_WAYS)

// Returned packets that are remembered, one bit each.
#define REPLICATION_WINDOW 128

// A slot that no packet used for so long, and whose writes are acknowledged, may be
// claimed by another flow although its lease is valid: the claim ends with the slot, and
// the store gets the lease back when it recalls it (rule 19). In µs.
#ifndef REPLICATION_IDLE_MICROSECONDS
#define REPLICATION_IDLE_MICROSECONDS 500000
#endif

// A slot whose lease request or write went unanswered for so long may be claimed
// by another flow, in µs.
const bit<48> UNANSWERED_MICROSECONDS = 10000000;

// Number of the last claim of a slot (rule 2).
register<bit<32>>(1) replication_claims;

// Flow slots. A slot whose key is 0 is free. Workers lock the slots of a bucket together: a packet
// uses those of its flow's first bucket, or of both if the flow is not in the first.
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<128>>(REPLICATION_SLOTS) slot_key;
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<8>>(REPLICATION_SLOTS) slot_status;
// The slot's shard (16 bits), and when the request was sent that its lease was granted to (48
// bits, µs of the switch clock), 0 without a lease.
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<64>>(REPLICATION_SLOTS) slot_grant;
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<32>>(REPLICATION_SLOTS) slot_claim;
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<32>>(REPLICATION_SLOTS) slot_epoch;
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<32>>(REPLICATION_SLOTS) slot_sequence;
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<32>>(REPLICATION_SLOTS) slot_acknowledged;
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<REPLICATION_STATE_BITS>>(REPLICATION_SLOTS) slot_value;
// Number of the last packet request.
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<32>>(REPLICATION_SLOTS) slot_request;
// Request number of the lease request whose copy is held, 0 if there is none.
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<32>>(REPLICATION_SLOTS) slot_asked;
// Packets that came back: the highest request number, and a bit for each of the
// REPLICATION_WINDOW numbers from it downwards (rule 4).
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<32>>(REPLICATION_SLOTS) slot_returned;
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<REPLICATION_WINDOW>>(REPLICATION_SLOTS) slot_window;
// Rule 26: number of the last packet request on its way whose packet is still to be
// processed, and of the last whose packet is to be released, 0 if there is none; and until
// when packets line up behind them.
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<32>>(REPLICATION_SLOTS) slot_unprocessed;
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<32>>(REPLICATION_SLOTS) slot_unreleased;
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<48>>(REPLICATION_SLOTS) slot_line;
@unit["replication_bucket", REPLICATION_WAYS]
register<bit<48>>(REPLICATION_SLOTS) slot_used;

// Looks the key up in the four ways of a bucket, which begins with the slot `first`.
control FindInBucket(inout replication_metadata_t meta, in bit<32> first) {
    bit<128> stored;

    apply {
        meta.slot.index = first;
        slot_key.read(stored, first);
        meta.found = stored == meta.key || (!RULE_KEY_COMPARISON && stored != 0);
        if (!meta.found) {
            meta.slot.index = first + 1;
            slot_key.read(stored, meta.slot.index);
            meta.found = stored == meta.key;
            if (!meta.found) {
                meta.slot.index = first + 2;
                slot_key.read(stored, meta.slot.index);
                meta.found = stored == meta.key;
                if (!meta.found) {
                    meta.slot.index = first + 3;
                    slot_key.read(stored, meta.slot.index);
                    meta.found = stored == meta.key;
                }
            }
        }
    }
}

// Looks the key up in its first bucket, then in both, and loads the slot. The worker holds the
// buckets that were searched.
control FindSlot(inout replication_metadata_t meta) {
    FlowHash() flow_hash;
    FirstBucket() first_bucket;
    SecondBucket() second_bucket;
    FindInBucket() find_in_first;
    FindInBucket() find_in_second;
    JudgeLease() judge_lease;
    bit<64> mixed;
    bit<64> grant;
    bit<32> first;
    bit<32> second;

    apply {
        flow_hash.apply(meta.key, mixed);
        first_bucket.apply(mixed, REPLICATION_BUCKETS, first);
        @atomic @uses("replication_bucket", first) { }
        find_in_first.apply(meta, first * REPLICATION_WAYS);
        if (!meta.found) @unlikely {
            second_bucket.apply(mixed, REPLICATION_BUCKETS, second);
            @atomic @uses("replication_bucket", first, second) { }
            first = first * REPLICATION_WAYS;
            second = second * REPLICATION_WAYS;
            // The worker let go of the first bucket before it took both: another one may have
            // put the flow there.
            find_in_first.apply(meta, first);
            if (!meta.found) {
                find_in_second.apply(meta, second);
            }
            if (!meta.found) {
                meta.slot.index = first;
                meta.slot.second = second;
            }
        }
        if (meta.found) {
            slot_status.read(meta.slot.status, meta.slot.index);
            slot_claim.read(meta.slot.claim, meta.slot.index);
            slot_epoch.read(meta.slot.epoch, meta.slot.index);
            slot_grant.read(grant, meta.slot.index);
            meta.slot.shard = grant[63:48];
            meta.slot.granted = grant[47:0];
            slot_sequence.read(meta.slot.sequence, meta.slot.index);
            slot_acknowledged.read(meta.slot.acknowledged, meta.slot.index);
            slot_value.read(meta.value, meta.slot.index);
            judge_lease.apply(meta);
        }
    }
}

// True if a slot may be given to another flow: it is free; or its lease was given up or is
// idle, and all its writes are acknowledged; or it waited too long for an answer.
control MayClaim(in bit<32> index, in bit<48> now, out bool free) {
    bit<128> stored;
    bit<8> status;
    bit<48> used;
    bit<32> sequence;
    bit<32> acknowledged;

    apply {
        slot_key.read(stored, index);
        slot_status.read(status, index);
        slot_used.read(used, index);
        slot_sequence.read(sequence, index);
        slot_acknowledged.read(acknowledged, index);
        free = stored == 0
            || (status != STATUS_PENDING
                && sequence == acknowledged
                && (status == STATUS_RECALLED || used + REPLICATION_IDLE_MICROSECONDS <= now))
            || used + UNANSWERED_MICROSECONDS < now;
    }
}

// Looks for a slot to claim in the bucket that begins with the slot `first`.
control ClaimInBucket(inout replication_metadata_t meta, in bit<32> first) {
    MayClaim() may_claim;

    apply {
        meta.slot.index = first;
        may_claim.apply(first, meta.now, meta.found);
        if (!meta.found) {
            meta.slot.index = first + 1;
            may_claim.apply(meta.slot.index, meta.now, meta.found);
        }
        if (!meta.found) {
            meta.slot.index = first + 2;
            may_claim.apply(meta.slot.index, meta.now, meta.found);
        }
        if (!meta.found) {
            meta.slot.index = first + 3;
            may_claim.apply(meta.slot.index, meta.now, meta.found);
        }
    }
}

// Claims a slot for a key that FindSlot did not find, in its first bucket if one may be
// claimed there, else in its second. `found` tells whether there was one.
control ClaimSlot(inout replication_metadata_t meta) {
    ClaimInBucket() claim_in_first;
    ClaimInBucket() claim_in_second;
    bit<32> first;

    apply {
        first = meta.slot.index;
        claim_in_first.apply(meta, first);
        if (!meta.found) {
            claim_in_second.apply(meta, meta.slot.second);
        }
        if (meta.found) {
            @atomic @apart {
                replication_claims.read(meta.slot.claim, 0);
                meta.slot.claim = meta.slot.claim + 1;
                replication_claims.write(0, meta.slot.claim);
            }
            meta.slot.status = STATUS_PENDING;
            meta.slot.epoch = 0;
            meta.slot.shard = meta.shard;
            meta.slot.granted = 0;
            meta.slot.counts = false;
            meta.slot.sequence = 0;
            meta.slot.acknowledged = 0;
            slot_key.write(meta.slot.index, meta.key);
            slot_status.write(meta.slot.index, STATUS_PENDING);
            slot_grant.write(meta.slot.index, meta.shard ++ 48w0);
            slot_claim.write(meta.slot.index, meta.slot.claim);
            slot_epoch.write(meta.slot.index, 0);
            slot_sequence.write(meta.slot.index, 0);
            slot_acknowledged.write(meta.slot.index, 0);
            slot_value.write(meta.slot.index, 0);
            slot_request.write(meta.slot.index, 0);
            slot_asked.write(meta.slot.index, 0);
            slot_returned.write(meta.slot.index, 0);
            slot_window.write(meta.slot.index, 1);
            slot_unprocessed.write(meta.slot.index, 0);
            slot_unreleased.write(meta.slot.index, 0);
            slot_line.write(meta.slot.index, 0);
            slot_used.write(meta.slot.index, meta.now);
        }
    }
}

#endif
