// Locks: owner, token and queue in one record (rule 20).

#ifndef STATEPLANE_COORDINATION_LOCK_P4
#define STATEPLANE_COORDINATION_LOCK_P4

#include "coordination_message.p4"
#include "group.p4"
#include "metadata.p4"
#include "rules.p4"
#include "slots.p4"

// Bytes of a lock's value without those who wait: owner (session, handle) and token.
const bit<16> LOCK_BYTES = 16;
// Bytes of one that waits: session and handle.
const bit<16> WAITER_BYTES = 8;

// Those who wait for a lock, first the one that is next; zeros behind the last.
struct coordination_queue_t {
    bit<64> waiter_0;
    bit<64> waiter_1;
    bit<64> waiter_2;
    bit<64> waiter_3;
    bit<64> waiter_4;
    bit<64> waiter_5;
    bit<64> waiter_6;
    bit<64> waiter_7;
    bit<64> waiter_8;
    bit<64> waiter_9;
    bit<64> waiter_10;
    bit<64> waiter_11;
    bit<64> waiter_12;
    bit<64> waiter_13;
}

// Reads the queue from the message's value.
control ReadQueue(in coordination_headers_t hdr, out coordination_queue_t queue) {
    apply {
        queue.waiter_0 = 0;
        queue.waiter_1 = 0;
        queue.waiter_2 = 0;
        queue.waiter_3 = 0;
        queue.waiter_4 = 0;
        queue.waiter_5 = 0;
        queue.waiter_6 = 0;
        queue.waiter_7 = 0;
        queue.waiter_8 = 0;
        queue.waiter_9 = 0;
        queue.waiter_10 = 0;
        queue.waiter_11 = 0;
        queue.waiter_12 = 0;
        queue.waiter_13 = 0;
        if (hdr.value[1].isValid()) {
            queue.waiter_0 = hdr.value[1].bytes[127:64];
            queue.waiter_1 = hdr.value[1].bytes[63:0];
        }
        if (hdr.value[2].isValid()) {
            queue.waiter_2 = hdr.value[2].bytes[127:64];
            queue.waiter_3 = hdr.value[2].bytes[63:0];
        }
        if (hdr.value[3].isValid()) {
            queue.waiter_4 = hdr.value[3].bytes[127:64];
            queue.waiter_5 = hdr.value[3].bytes[63:0];
        }
        if (hdr.value[4].isValid()) {
            queue.waiter_6 = hdr.value[4].bytes[127:64];
            queue.waiter_7 = hdr.value[4].bytes[63:0];
        }
        if (hdr.value[5].isValid()) {
            queue.waiter_8 = hdr.value[5].bytes[127:64];
            queue.waiter_9 = hdr.value[5].bytes[63:0];
        }
        if (hdr.value[6].isValid()) {
            queue.waiter_10 = hdr.value[6].bytes[127:64];
            queue.waiter_11 = hdr.value[6].bytes[63:0];
        }
        if (hdr.value[7].isValid()) {
            queue.waiter_12 = hdr.value[7].bytes[127:64];
            queue.waiter_13 = hdr.value[7].bytes[63:0];
        }
    }
}

// Writes the queue into the message's value.
control WriteQueue(inout coordination_headers_t hdr, in coordination_queue_t queue) {
    apply {
        hdr.message.value_length = LOCK_BYTES;
        hdr.value[1].setInvalid();
        if (queue.waiter_0 != 0) {
            hdr.value[1].setValid();
            hdr.value[1].bytes = queue.waiter_0 ++ queue.waiter_1;
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
        if (queue.waiter_1 != 0) {
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
        hdr.value[2].setInvalid();
        if (queue.waiter_2 != 0) {
            hdr.value[2].setValid();
            hdr.value[2].bytes = queue.waiter_2 ++ queue.waiter_3;
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
        if (queue.waiter_3 != 0) {
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
        hdr.value[3].setInvalid();
        if (queue.waiter_4 != 0) {
            hdr.value[3].setValid();
            hdr.value[3].bytes = queue.waiter_4 ++ queue.waiter_5;
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
        if (queue.waiter_5 != 0) {
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
        hdr.value[4].setInvalid();
        if (queue.waiter_6 != 0) {
            hdr.value[4].setValid();
            hdr.value[4].bytes = queue.waiter_6 ++ queue.waiter_7;
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
        if (queue.waiter_7 != 0) {
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
        hdr.value[5].setInvalid();
        if (queue.waiter_8 != 0) {
            hdr.value[5].setValid();
            hdr.value[5].bytes = queue.waiter_8 ++ queue.waiter_9;
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
        if (queue.waiter_9 != 0) {
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
        hdr.value[6].setInvalid();
        if (queue.waiter_10 != 0) {
            hdr.value[6].setValid();
            hdr.value[6].bytes = queue.waiter_10 ++ queue.waiter_11;
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
        if (queue.waiter_11 != 0) {
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
        hdr.value[7].setInvalid();
        if (queue.waiter_12 != 0) {
            hdr.value[7].setValid();
            hdr.value[7].bytes = queue.waiter_12 ++ queue.waiter_13;
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
        if (queue.waiter_13 != 0) {
            hdr.message.value_length = hdr.message.value_length + WAITER_BYTES;
        }
    }
}

// Puts `holder` into a place if it is the first that is free.
#define APPEND_AT(waiter) \
    if (!queued && waiter == 0) { \
        waiter = holder; \
        queued = true; \
    }

// Puts `holder` at the end of the queue. `queued` tells whether there was a place.
control AppendToQueue(inout coordination_queue_t queue, in bit<64> holder, out bool queued) {
    apply {
        queued = false;
        APPEND_AT(queue.waiter_0)
        APPEND_AT(queue.waiter_1)
        APPEND_AT(queue.waiter_2)
        APPEND_AT(queue.waiter_3)
        APPEND_AT(queue.waiter_4)
        APPEND_AT(queue.waiter_5)
        APPEND_AT(queue.waiter_6)
        APPEND_AT(queue.waiter_7)
        APPEND_AT(queue.waiter_8)
        APPEND_AT(queue.waiter_9)
        APPEND_AT(queue.waiter_10)
        APPEND_AT(queue.waiter_11)
        APPEND_AT(queue.waiter_12)
        APPEND_AT(queue.waiter_13)
    }
}

// From the place of `holder` on, each moves up.
#define REMOVE_AT(waiter, behind) \
    left = left || waiter == holder; \
    if (left) { \
        waiter = behind; \
    }

// Takes `holder` out of the queue. `left` tells whether it was there.
control RemoveFromQueue(inout coordination_queue_t queue, in bit<64> holder, out bool left) {
    apply {
        left = false;
        REMOVE_AT(queue.waiter_0, queue.waiter_1)
        REMOVE_AT(queue.waiter_1, queue.waiter_2)
        REMOVE_AT(queue.waiter_2, queue.waiter_3)
        REMOVE_AT(queue.waiter_3, queue.waiter_4)
        REMOVE_AT(queue.waiter_4, queue.waiter_5)
        REMOVE_AT(queue.waiter_5, queue.waiter_6)
        REMOVE_AT(queue.waiter_6, queue.waiter_7)
        REMOVE_AT(queue.waiter_7, queue.waiter_8)
        REMOVE_AT(queue.waiter_8, queue.waiter_9)
        REMOVE_AT(queue.waiter_9, queue.waiter_10)
        REMOVE_AT(queue.waiter_10, queue.waiter_11)
        REMOVE_AT(queue.waiter_11, queue.waiter_12)
        REMOVE_AT(queue.waiter_12, queue.waiter_13)
        REMOVE_AT(queue.waiter_13, 64w0)
    }
}

// Judges ACQUIRE and RELEASE. The message has the record, as it is after that.
control JudgeLock(
    in bit<64> number,
    in bool guarded,
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta
) {
    FindSlot() find_slot;
    FindFree() find_free;
    LoadRecord() load_record;
    DropValue() drop_value;
    ReadQueue() read_queue;
    WriteQueue() write_queue;
    AppendToQueue() append_to_queue;
    RemoveFromQueue() remove_from_queue;
    coordination_queue_t queue;
    coordination_queue_t without;
    bit<64> holder;
    bit<64> owner;
    bool waits;
    bool changed;

    apply {
        holder = hdr.message.session ++ hdr.message.handle;
        find_slot.apply(hdr.message.key, meta);
        load_record.apply(hdr, meta);
        owner = 0;
        if (hdr.message.kind == KIND_LOCK) {
            owner = hdr.value[0].bytes[127:64];
        }
        changed = false;
        if (guarded) {
            hdr.message.outcome = OUTCOME_GUARDED;
        } else if (meta.slot.found && hdr.message.kind != KIND_LOCK) {
            hdr.message.outcome = OUTCOME_WRONG_KIND;
        } else if (hdr.message.operation == OPERATION_ACQUIRE) {
            if (!meta.slot.found) {
                find_free.apply(meta, changed);
                hdr.message.outcome = OUTCOME_FULL;
                if (changed) {
                    hdr.message.outcome = OUTCOME_DONE;
                    hdr.message.kind = KIND_LOCK;
                    hdr.message.value_length = LOCK_BYTES;
                    owner = holder;
                    hdr.message.token = number;
                }
            } else if (owner == holder) {
                hdr.message.outcome = OUTCOME_DONE;
            } else if ((hdr.message.flags & FLAG_WAIT) == 0) {
                hdr.message.outcome = OUTCOME_TAKEN;
            } else {
                hdr.message.outcome = OUTCOME_QUEUED;
                read_queue.apply(hdr, queue);
                without = queue;
                remove_from_queue.apply(without, holder, waits);
                if (!waits) {
                    append_to_queue.apply(queue, holder, changed);
                    if (changed) {
                        write_queue.apply(hdr, queue);
                    } else {
                        hdr.message.outcome = OUTCOME_FULL;
                    }
                }
            }
        } else if (!meta.slot.found) {
            hdr.message.outcome = OUTCOME_ABSENT;
        } else {
            read_queue.apply(hdr, queue);
            if (owner != holder) {
                hdr.message.outcome = OUTCOME_NOT_OWNER;
                remove_from_queue.apply(queue, holder, changed);
            } else {
                changed = true;
                owner = queue.waiter_0;
                hdr.message.token = number;
                remove_from_queue.apply(queue, owner, waits);
            }
            if (changed) {
                hdr.message.outcome = OUTCOME_DONE;
                if (owner != 0) {
                    write_queue.apply(hdr, queue);
                } else {
                    // Free is no record.
                    hdr.message.kind = KIND_NONE;
                    hdr.message.token = 0;
                    drop_value.apply(hdr);
                }
            }
        }
        if (changed) {
            hdr.message.record = number;
            hdr.message.slot = (bit<16>)(meta.slot.index - meta.group.index * COORDINATION_SLOTS);
            hdr.message.session = owner[63:32];
            if (hdr.message.kind == KIND_LOCK) {
                hdr.value[0].setValid();
                hdr.value[0].bytes = owner ++ hdr.message.token;
            }
        }
    }
}

#endif
