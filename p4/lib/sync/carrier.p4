// Carriers: frames of the packet generator that take values from the ring to the engine. Each
// turn also sweeps a few locations, and each window moves t (rules 3, 7, 9, 10, 12 to 14).

#ifndef STATEPLANE_SYNC_CARRIER_P4
#define STATEPLANE_SYNC_CARRIER_P4

#include "change.p4"
#include "each.p4"
#include "events.p4"
#include "metadata.p4"
#include "rules.p4"
#include "send.p4"
#include "state.p4"
#include "sync_message.p4"

// Bytes of the longest frame on the wire.
const bit<64> SYNC_LONGEST = 194 + 12 * SYNC_BATCH;

// Settings of a group by the control plane.
control SyncSettings(inout sync_metadata_t meta) {
    // Budget in 2^-16 µs a byte, and the least to which losses slow it; µs of a window w; t stays
    // between `finest` and `coarsest`, which is 0 for an exact view (rules 13, 14).
    action sync_set(
        bit<32> byte_time,
        bit<32> slowest_byte_time,
        bit<48> window,
        bit<64> finest,
        bit<64> coarsest
    ) {
        meta.byte_time = (bit<64>)byte_time;
        meta.slowest_byte_time = (bit<64>)slowest_byte_time;
        meta.window = window;
        meta.finest = finest;
        meta.coarsest = coarsest;
    }

    table sync_settings {
        key = { meta.group: exact; }
        actions = { sync_set; }
        // A gigabit a second, an eighth of it under loss; 1 ms.
        default_action = sync_set(524, 4194, 1000, 0, 0xffffffffff);
#ifdef SYNC_RATES
        entries = { SYNC_RATES }
#endif
        size = SYNC_GROUPS;
    }

    apply {
        sync_settings.apply();
    }
}

// Moves t once in a window, by how full the ring is (rule 14), and gives a slowed budget back a
// thirty-second (rule 13).
control SyncRate(inout sync_metadata_t meta) {
    bit<64> head;
    bit<64> tail;
    bit<64> acked;
    bit<64> threshold;
    bit<64> other;
    bit<64> present;

    apply {
        sync_head.read(head, meta.at);
        sync_tail.read(tail, meta.at);
        sync_acked.read(acked, meta.at);
        sync_threshold.read(threshold, meta.at);
        other = threshold;
        tail = tail - head;
        if (tail > SYNC_BATCH) {
            if (head < acked + SYNC_WINDOW) {
                other = tail > 4 * SYNC_BATCH
                    ? threshold + threshold + 1
                    : threshold + (threshold >> 2) + 1;
            }
            sync_greatest.read(present, meta.at);
            if (other > present) {
                other = present > threshold ? present : threshold;
            }
        } else if (tail < SYNC_BATCH / 2) {
            other = threshold - ((threshold + 7) >> 3);
        }
        if (other < meta.finest) {
            other = meta.finest;
        }
        if (other > meta.coarsest) {
            other = meta.coarsest;
        }
        if (meta.shape.kind == SYNC_OPAQUE && SYNC_RULE_OPAQUE) {
            other = 0;
        }
        sync_threshold.write(meta.at, other);
        sync_threshold_sweep.read(present, meta.at);
        if (other > present) {
            sync_threshold_sweep.write(meta.at, other);
        }
        sync_byte_time.read(present, meta.at);
        present = present - (present >> 5);
        if (present < meta.byte_time) {
            present = meta.byte_time;
        }
        sync_byte_time.write(meta.at, present);
    }
}

// Visits the next location: has it cross the cut, and queues what is not sent of it (rule 12).
control SyncVisit(in sync_metadata_t meta) {
    SyncSettle() settle;
    SyncAccess() access;
    SyncEnqueue() enqueue;
    bit<32> cursor;
    bit<32> left;
    bit<64> value;
    bit<64> sent;
    bit<64> distance;
    bit<48> began;

    apply {
        sync_cursor.read(cursor, meta.at);
        settle.apply(meta.group, cursor, meta.shape);
        value = 0;
        access.apply(meta.group, cursor, false, value);
        sync_sent.read(sent, meta.shape.base + cursor);
        distance = sync_distance(meta.shape, value, sent);
        sync_whole.read(left, meta.at);
        if ((distance != 0 && SYNC_RULE_SWEEP) || left != 0) {
            enqueue.apply(meta.group, cursor, distance, false, meta.shape);
        }
        if (left != 0) {
            sync_whole.write(meta.at, left - 1);
        }
        sync_unsettled.read(left, meta.at);
        if (left != 0) {
            sync_unsettled.write(meta.at, left - 1);
        }
        cursor = cursor + 1;
        if (cursor >= meta.shape.size) {
            cursor = 0;
            sync_threshold_sweep.read(value, meta.at);
            sync_threshold_last.write(meta.at, value);
            sync_threshold.read(value, meta.at);
            sync_threshold_sweep.write(meta.at, value);
            sync_sweep_began.read(began, meta.at);
            if (began != 0) {
                began = meta.now - began;
                sync_sweep_took.write(meta.at, began[31:0]);
            }
            sync_sweep_began.write(meta.at, meta.now);
        }
        sync_cursor.write(meta.at, cursor);
    }
}

// Visits an eighth as many locations as a carrier takes under any load, and as many as it takes
// while the ring is short (rule 12).
control SyncSweep(in sync_metadata_t meta) {
#define SYNC_VISITOR(i) SyncVisit() visit_##i;
    SYNC_EACH(SYNC_VISITOR)
    bit<64> head;
    bit<64> tail;

    apply {
        sync_head.read(head, meta.at);
        sync_tail.read(tail, meta.at);
#define SYNC_VISIT(i) \
        if (i < SYNC_EIGHTH || tail - head < SYNC_BATCH) { \
            visit_##i.apply(meta); \
        }
        SYNC_EACH(SYNC_VISIT)
    }
}

// Takes the location at position `head` out of the ring, with its present value.
control SyncCarry(
    in sync_metadata_t meta,
    in bit<64> end,
    inout bit<64> head,
    inout bit<64> shift,
    inout bit<8> count,
    inout sync_value_t carried
) {
    SyncSettle() settle;
    SyncAccess() access;
    bit<32> index;
    bit<2> queued;
    bit<64> value;
    bit<64> sent;

    apply {
        carried.setInvalid();
        if (head < end) {
            sync_ring.read(index, meta.shape.ring_base + (head[31:0] & meta.shape.ring_mask));
            settle.apply(meta.group, index, meta.shape);
            value = 0;
            access.apply(meta.group, index, false, value);
            sync_sent.read(sent, meta.shape.base + index);
            shift = shift + sync_distance(meta.shape, value, sent);
            sync_queued.read(queued, meta.shape.base + index);
            carried.setValid();
            carried.index = index;
            if (queued == SYNC_QUEUED_BREAK) @unlikely {
                // A width more than the distance shows, so that one misses it who lacks this value.
                if (SYNC_RULE_BREAK_SHIFT) {
                    shift = shift
                        + (meta.shape.mask < SYNC_UNBOUNDED ? meta.shape.mask + 1 : SYNC_UNBOUNDED);
                }
                carried.index = index | SYNC_DISCONTINUITY;
            }
            sync_sent.write(meta.shape.base + index, value);
            sync_queued.write(meta.shape.base + index, 0);
            carried.value = value;
            head = head + 1;
            count = count + 1;
        }
    }
}

// Moves the peak on when all that was queued before is sent (rule 3).
control SyncPeak(in bit<64> head, in bit<64> tail, in sync_metadata_t meta) {
    bit<64> until;
    bit<64> peak;

    apply {
        sync_peak_until.read(until, meta.at);
        if (head >= until) {
            sync_peak.read(peak, meta.at);
            sync_peak_last.write(meta.at, peak);
            sync_peak.write(meta.at, 0);
            sync_peak_until.write(meta.at, tail);
        }
    }
}

// Makes an UPDATE of the frame, if there is something to send and both budget and credit allow
// it, or if a mark is due.
control SyncUpdate(inout sync_headers_t hdr, inout sync_metadata_t meta) {
#define SYNC_CARRIER(i) SyncCarry() carry_##i;
    SYNC_EACH(SYNC_CARRIER)
    SyncPeak() peak;
    SyncDescribe() describe;
    SyncSend() send;
    bit<64> head;
    bit<64> tail;
    bit<64> end;
    bit<64> shift;
    bit<64> other;
    bit<48> sent_at;
    bit<8> count;
    bool due;

    apply {
        sync_head.read(head, meta.at);
        sync_tail.read(tail, meta.at);
        sync_acked.read(end, meta.at);
        end = end + SYNC_WINDOW;
        if (end > tail || !SYNC_RULE_CREDIT) {
            end = tail;
        } else if (head >= end && head < tail) {
            sync_events.count(SYNC_EVENT_NO_CREDIT);
        }
        sync_sent_at.read(sent_at, meta.at);
        due = meta.now - sent_at >= meta.window && SYNC_RULE_MARKS;
        sync_spent_until.read(other, meta.at);
        if (head >= end && !due) {
            // Nothing to say.
        } else if (other > (bit<64>)meta.now << 16 && SYNC_RULE_BUDGET) {
            sync_events.count(SYNC_EVENT_OVER_BUDGET);
        } else {
            sync_shift.read(shift, meta.at);
            hdr.message.setValid();
            hdr.message.before = shift;
            hdr.message.position = head;
            count = 0;
#define SYNC_CARRY(i) carry_##i.apply(meta, end, head, shift, count, hdr.values[i]);
            SYNC_EACH(SYNC_CARRY)
            sync_head.write(meta.at, head);
            if (SYNC_RULE_SHIFT) {
                sync_shift.write(meta.at, shift);
            }
            sync_stamp.read(other, meta.at);
            if (count != 0 || SYNC_RULE_STAMP) {
                sync_stamp.write(meta.at, other + 1);
            }
            sync_sent_at.write(meta.at, meta.now);
            peak.apply(head, tail, meta);
            hdr.message.type = SYNC_TYPE_UPDATE;
            hdr.message.outcome = 0;
            hdr.message.operation = 0;
            sync_cut_bound.read(hdr.message.number, meta.at);
            hdr.message.count = count;
            sync_starter.read(hdr.message.starter, meta.at);
            sync_poll.read(hdr.message.poll, meta.at);
            describe.apply(hdr, meta);
            hdr.ipv4.setValid();
            hdr.udp.setValid();
            sync_engine_mac.read(hdr.ethernet.destination, meta.at);
            sync_own_mac.read(hdr.ethernet.source, meta.at);
            hdr.ipv4.source = meta.own_address;
            sync_engine_address.read(hdr.ipv4.destination, meta.at);
            hdr.udp.source_port = SYNC_UDP_PORT;
            sync_engine_port.read(hdr.udp.destination_port, meta.at);
            if (count == 0) {
                sync_events.count(SYNC_EVENT_MARKS);
            } else {
                sync_events.count(SYNC_EVENT_UPDATES);
            }
            send.apply(hdr, meta);
        }
    }
}

// A carrier's turn.
control SyncTurn(inout sync_headers_t hdr, inout sync_metadata_t meta) {
    SyncRate() rate;
    SyncSweep() sweep;
    SyncUpdate() update;
    bit<48> end;
    bit<64> starter;

    apply {
        sync_window_end.read(end, meta.at);
        if (meta.now >= end) {
            rate.apply(meta);
            sync_window_end.write(meta.at, meta.now + meta.window);
        }
        sweep.apply(meta);
        sync_starter.read(starter, meta.at);
        if (starter != 0) {
            update.apply(hdr, meta);
        }
    }
}

#endif
