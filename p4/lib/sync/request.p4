// Requests of an engine about a group: to begin, polls, repairs, writes, staged values, cuts, frozen
// values.

#ifndef STATEPLANE_SYNC_REQUEST_P4
#define STATEPLANE_SYNC_REQUEST_P4

#include "change.p4"
#include "each.p4"
#include "events.p4"
#include "metadata.p4"
#include "rules.p4"
#include "send.p4"
#include "state.p4"
#include "sync_message.p4"

// An engine begins its view where the ring is, and every location is queued (rule 11).
control SyncHandleStart(inout sync_headers_t hdr, inout sync_metadata_t meta) {
    SyncDropValues() drop_values;
    SyncDescribe() describe;
    SyncAnswer() answer;
    SyncRefuse() refuse;
    bit<64> term;
    bit<64> starter;
    bit<64> other;
    bit<1> read_only;

    apply {
        sync_term.read(term, meta.at);
        sync_starter.read(starter, meta.at);
        if (hdr.message.starter == 0 || hdr.message.term == 0) {
            refuse.apply(SYNC_OUTCOME_MALFORMED, hdr, meta);
        } else if (hdr.message.term < term && SYNC_RULE_FENCE) {
            refuse.apply(SYNC_OUTCOME_FENCED, hdr, meta);
        } else if (hdr.message.term == term && hdr.message.starter < starter) {
            refuse.apply(SYNC_OUTCOME_NOT_STARTED, hdr, meta);
        } else {
            if (hdr.message.term != term || hdr.message.starter != starter) {
                sync_events.count(SYNC_EVENT_STARTED);
                sync_starter.write(meta.at, hdr.message.starter);
                if (hdr.message.term != term) {
                    sync_term.write(meta.at, hdr.message.term);
                    sync_write_number.write(meta.at, 0);
                    if (SYNC_RULE_STAGED_APART) {
                        sync_staging.write(meta.at, 0);
                        sync_staging_count.write(meta.at, 0);
                    }
                }
                sync_head.read(other, meta.at);
                sync_started_position.write(meta.at, other);
                sync_acked.write(meta.at, other);
                sync_stamp.read(other, meta.at);
                sync_started_stamp.write(meta.at, other);
                sync_shift.read(other, meta.at);
                sync_started_shift.write(meta.at, other);
                sync_poll.write(meta.at, 0);
                sync_lost.write(meta.at, 0);
                if (SYNC_RULE_WHOLE) {
                    sync_whole.write(meta.at, meta.shape.size);
                }
                sync_engine_mac.write(meta.at, hdr.ethernet.source);
                sync_own_mac.write(meta.at, hdr.ethernet.destination);
                sync_engine_address.write(meta.at, hdr.ipv4.source);
                sync_engine_port.write(meta.at, hdr.udp.source_port);
            }
            drop_values.apply(hdr);
            describe.apply(hdr, meta);
            hdr.message.type = SYNC_TYPE_STARTED;
            hdr.message.outcome = SYNC_OUTCOME_DONE;
            sync_read_only.read(read_only, 0);
            hdr.message.operation = (bit<8>)read_only;
            sync_started_stamp.read(hdr.message.stamp, meta.at);
            sync_started_position.read(hdr.message.position, meta.at);
            sync_started_shift.read(hdr.message.before, meta.at);
            hdr.message.after = hdr.message.before;
            sync_write_number.read(hdr.message.number, meta.at);
            answer.apply(hdr, meta);
        }
    }
}

// Poll: what the engine has, what it has kept, and what it lost. The next UPDATE echoes it.
control SyncHandlePoll(inout sync_headers_t hdr, inout sync_metadata_t meta) {
    bit<64> present;
    bit<64> head;
    bit<32> count;
    bit<32> most;

    apply {
        sync_events.count(SYNC_EVENT_POLLED);
        sync_polled_at.write(meta.at, meta.now);
        sync_acked.read(present, meta.at);
        sync_head.read(head, meta.at);
        if (hdr.message.position > present && hdr.message.position <= head) {
            sync_acked.write(meta.at, hdr.message.position);
        }
        sync_poll.read(present, meta.at);
        if (hdr.message.poll > present) {
            sync_poll.write(meta.at, hdr.message.poll);
        }
        sync_kept.read(count, meta.at);
        sync_epoch.read(most, meta.at);
        if (hdr.message.epoch > count && hdr.message.epoch <= most) {
            sync_kept.write(meta.at, hdr.message.epoch);
        }
        sync_lost.read(count, meta.at);
        if (hdr.message.lost > count) {
            sync_events.count(SYNC_EVENT_SLOWED);
            sync_lost.write(meta.at, hdr.message.lost);
            sync_byte_time.read(present, meta.at);
            present = present + present;
            if (present > meta.slowest_byte_time) {
                present = meta.slowest_byte_time;
            }
            sync_byte_time.write(meta.at, present);
        }
    }
}

// Queues the location of a position again, and names it.
control SyncRequeue(
    in sync_metadata_t meta,
    in bit<64> position,
    in bit<64> end,
    inout bit<8> count,
    inout sync_value_t named
) {
    SyncAccess() access;
    SyncEnqueue() enqueue;
    SyncSettle() settle;
    bit<64> value;
    bit<64> sent;

    apply {
        named.setInvalid();
        if (position < end) {
            named.setValid();
            named.value = 0;
            sync_ring.read(
                named.index,
                meta.shape.ring_base + (position[31:0] & meta.shape.ring_mask)
            );
            settle.apply(meta.group, named.index, meta.shape);
            value = 0;
            access.apply(meta.group, named.index, false, value);
            sync_sent.read(sent, meta.shape.base + named.index);
            if (SYNC_RULE_REQUEUED) {
                enqueue.apply(
                    meta.group,
                    named.index,
                    sync_distance(meta.shape, value, sent),
                    false,
                    meta.shape
                );
            }
            count = count + 1;
        }
    }
}

// Names what lost positions held, and sends it anew (rule 8).
control SyncHandleRepair(inout sync_headers_t hdr, inout sync_metadata_t meta) {
#define SYNC_REQUEUER(i) SyncRequeue() requeue_##i;
    SYNC_EACH(SYNC_REQUEUER)
    SyncDropValues() drop_values;
    SyncDescribe() describe;
    SyncAnswer() answer;
    SyncRefuse() refuse;
    bit<64> head;
    bit<64> tail;
    bit<64> end;
    bit<8> count;

    apply {
        sync_head.read(head, meta.at);
        sync_tail.read(tail, meta.at);
        end = hdr.message.position + (bit<64>)hdr.message.queued;
        if (end > head) {
            end = head;
        }
        if (hdr.message.queued > SYNC_BATCH
            || hdr.message.position >= end
            || tail - hdr.message.position + SYNC_BATCH > (bit<64>)meta.shape.ring_mask + 1) {
            refuse.apply(SYNC_OUTCOME_NOT_HELD, hdr, meta);
        } else {
            sync_events.count(SYNC_EVENT_REPAIRED);
            drop_values.apply(hdr);
            count = 0;
#define SYNC_REQUEUE(i) \
            requeue_##i.apply(meta, hdr.message.position + i, end, count, hdr.values[i]);
            SYNC_EACH(SYNC_REQUEUE)
            describe.apply(hdr, meta);
            hdr.message.count = count;
            hdr.message.type = SYNC_TYPE_REPAIRED;
            hdr.message.outcome = SYNC_OUTCOME_DONE;
            answer.apply(hdr, meta);
        }
    }
}

// Writes one location, and queues it (rules 19, 22, 23).
control SyncWriteOne(
    in sync_metadata_t meta,
    in sync_t message,
    inout bit<8> outcome,
    inout sync_value_t written
) {
    SyncSettle() settle;
    SyncAccess() read_value;
    SyncAccess() write_value;
    SyncEnqueue() enqueue;
    bit<64> value;
    bit<64> sent;
    bool breaks;

    apply {
        if (written.isValid()) {
            settle.apply(meta.group, written.index, meta.shape);
            value = 0;
            breaks = false;
            read_value.apply(meta.group, written.index, false, value);
            if (message.operation == SYNC_OPERATION_SET_IF_EQUAL && value != message.operand) {
                outcome = SYNC_OUTCOME_MISMATCH;
            } else {
                breaks = meta.shape.kind == SYNC_COUNTER && SYNC_RULE_WRITTEN_BREAKS;
                if (message.operation == SYNC_OPERATION_ADD) {
                    value = value + written.value;
                } else {
                    value = written.value;
                }
                value = value & meta.shape.mask;
                write_value.apply(meta.group, written.index, true, value);
            }
            sync_sent.read(sent, meta.shape.base + written.index);
            if (SYNC_RULE_WRITTEN_QUEUED) {
                enqueue.apply(
                    meta.group,
                    written.index,
                    sync_distance(meta.shape, value, sent),
                    breaks,
                    meta.shape
                );
            }
            written.value = value;
        }
    }
}

// A write of at most SYNC_BATCH values, whole and once (rules 19 to 23).
control SyncHandleWrite(inout sync_headers_t hdr, inout sync_metadata_t meta) {
#define SYNC_WRITER(i) SyncWriteOne() write_##i;
    SYNC_EACH(SYNC_WRITER)
    SyncDescribe() describe;
    SyncAnswer() answer;
    SyncRefuse() refuse;
    bit<64> number;
    bit<64> stamp;
    bit<8> outcome;
    bool good;

    apply {
        good = hdr.message.count != 0
            && hdr.message.operation >= SYNC_OPERATION_SET
            && hdr.message.operation <= SYNC_OPERATION_SET_IF_EQUAL
            && (hdr.message.operation != SYNC_OPERATION_SET_IF_EQUAL || hdr.message.count == 1);
#define SYNC_CHECK_INDEX(i) \
        good = good && (!hdr.values[i].isValid() || hdr.values[i].index < meta.shape.size);
        SYNC_EACH(SYNC_CHECK_INDEX)
        sync_write_number.read(number, meta.at);
        if (!good) {
            refuse.apply(SYNC_OUTCOME_MALFORMED, hdr, meta);
        } else if (hdr.message.number == number && number != 0 && SYNC_RULE_ONCE) {
            // The request names the locations; their values go their way.
            sync_events.count(SYNC_EVENT_REPEATED);
            number = hdr.message.number;
            describe.apply(hdr, meta);
            hdr.message.type = SYNC_TYPE_WRITTEN;
            sync_write_outcome.read(hdr.message.outcome, meta.at);
            sync_write_stamp.read(hdr.message.stamp, meta.at);
            answer.apply(hdr, meta);
        } else if (hdr.message.number != number + 1 && SYNC_RULE_ONCE) {
            refuse.apply(SYNC_OUTCOME_OUT_OF_ORDER, hdr, meta);
        } else {
            sync_events.count(SYNC_EVENT_WRITTEN);
            outcome = SYNC_OUTCOME_DONE;
#define SYNC_WRITE(i) write_##i.apply(meta, hdr.message, outcome, hdr.values[i]);
            SYNC_EACH(SYNC_WRITE)
            sync_stamp.read(stamp, meta.at);
            sync_write_number.write(meta.at, hdr.message.number);
            sync_write_outcome.write(meta.at, outcome);
            sync_write_stamp.write(meta.at, stamp);
            describe.apply(hdr, meta);
            hdr.message.type = SYNC_TYPE_WRITTEN;
            hdr.message.outcome = outcome;
            answer.apply(hdr, meta);
        }
    }
}

// Keeps a value for a location until the cut that gives it to it (rule 19).
control SyncStageOne(
    in sync_metadata_t meta,
    in bit<64> staging_tag,
    inout bit<32> count,
    in sync_value_t staged
) {
    SyncSettle() settle;
    bit<64> tag;

    apply {
        if (staged.isValid()) {
            if (SYNC_RULE_STAGED_SETTLED) {
                settle.apply(meta.group, staged.index, meta.shape);
            }
            sync_staged_tag.read(tag, meta.shape.base + staged.index);
            if (tag != staging_tag) {
                count = count + 1;
            }
            sync_staged_tag.write(meta.shape.base + staged.index, staging_tag);
            sync_staged.write(meta.shape.base + staged.index, staged.value & meta.shape.mask);
        }
    }
}

// Values of a write that takes effect with a cut (rule 19). A staging with a higher number begins
// anew.
control SyncHandleStage(inout sync_headers_t hdr, inout sync_metadata_t meta) {
#define SYNC_STAGER(i) SyncStageOne() stage_##i;
    SYNC_EACH(SYNC_STAGER)
    SyncDescribe() describe;
    SyncAnswer() answer;
    SyncRefuse() refuse;
    bit<64> staging;
    bit<64> tag;
    bit<32> count;
    bool good;

    apply {
        good = hdr.message.count != 0 && hdr.message.number != 0;
        SYNC_EACH(SYNC_CHECK_INDEX)
        sync_staging.read(staging, meta.at);
        if (!good) {
            refuse.apply(SYNC_OUTCOME_MALFORMED, hdr, meta);
        } else if (hdr.message.number < staging) {
            refuse.apply(SYNC_OUTCOME_OUT_OF_ORDER, hdr, meta);
        } else {
            sync_events.count(SYNC_EVENT_STAGED);
            sync_staging_tag.read(tag, meta.at);
            sync_staging_count.read(count, meta.at);
            if (hdr.message.number != staging) {
                tag = tag + 1;
                count = 0;
                sync_staging.write(meta.at, hdr.message.number);
                sync_staging_tag.write(meta.at, tag);
            }
#define SYNC_STAGE(i) stage_##i.apply(meta, tag, count, hdr.values[i]);
            SYNC_EACH(SYNC_STAGE)
            sync_staging_count.write(meta.at, count);
            describe.apply(hdr, meta);
            hdr.message.type = SYNC_TYPE_STAGED;
            hdr.message.outcome = SYNC_OUTCOME_DONE;
            answer.apply(hdr, meta);
        }
    }
}

// All locations at once, each when it is next met (rules 15, 18).
control SyncHandleCut(inout sync_headers_t hdr, inout sync_metadata_t meta) {
    SyncDropValues() drop_values;
    SyncDescribe() describe;
    SyncAnswer() answer;
    SyncRefuse() refuse;
    bit<32> epoch;
    bit<32> unsettled;
    bit<32> kept;
    bit<32> staged;
    bit<64> staging;
    bit<64> value;
    bool made;

    apply {
        sync_epoch.read(epoch, meta.at);
        sync_unsettled.read(unsettled, meta.at);
        sync_kept.read(kept, meta.at);
        sync_staging.read(staging, meta.at);
        sync_staging_count.read(staged, meta.at);
        if (hdr.message.kind < SYNC_CUT_CARRIED || hdr.message.kind > SYNC_CUT_STAGED) {
            refuse.apply(SYNC_OUTCOME_MALFORMED, hdr, meta);
        } else if (hdr.message.epoch != epoch
            && hdr.message.epoch != epoch + 1
            && SYNC_RULE_CUT_NUMBER) {
            refuse.apply(SYNC_OUTCOME_OTHER_EPOCH, hdr, meta);
        } else if ((hdr.message.epoch != epoch || !SYNC_RULE_CUT_NUMBER)
            && unsettled != 0
            && SYNC_RULE_SETTLED) {
            refuse.apply(SYNC_OUTCOME_NOT_SETTLED, hdr, meta);
        } else if ((hdr.message.epoch != epoch || !SYNC_RULE_CUT_NUMBER)
            && kept != epoch
            && SYNC_RULE_KEPT) {
            refuse.apply(SYNC_OUTCOME_NOT_KEPT, hdr, meta);
        } else if (hdr.message.kind == SYNC_CUT_STAGED
            && (hdr.message.epoch != epoch || !SYNC_RULE_CUT_NUMBER)
            && (hdr.message.number == 0
                || hdr.message.number != staging
                || hdr.message.operand != (bit<64>)staged)) {
            refuse.apply(SYNC_OUTCOME_NOT_STAGED, hdr, meta);
        } else {
            made = hdr.message.epoch != epoch || !SYNC_RULE_CUT_NUMBER;
            if (made) {
                sync_events.count(SYNC_EVENT_CUT);
                sync_epoch.write(meta.at, epoch + 1);
                sync_kind.write(meta.at, hdr.message.kind);
                sync_fill.write(meta.at, hdr.message.operand & meta.shape.mask);
                sync_cut_term.write(meta.at, hdr.message.term);
                if (hdr.message.kind == SYNC_CUT_STAGED) {
                    sync_staging_tag.read(value, meta.at);
                    sync_cut_tag.write(meta.at, value);
                }
                sync_unsettled.write(meta.at, meta.shape.size);
                sync_fetched.write(meta.at, 0);
            } else {
                sync_events.count(SYNC_EVENT_REPEATED);
            }
            drop_values.apply(hdr);
            describe.apply(hdr, meta);
            if (made) {
                sync_cut_bound.write(meta.at, hdr.message.bound);
            }
            hdr.message.type = SYNC_TYPE_CUT_MADE;
            hdr.message.outcome = SYNC_OUTCOME_DONE;
            sync_cut_term.read(value, meta.at);
            hdr.message.number = value;
            answer.apply(hdr, meta);
        }
    }
}

// Reads what a location held at the last cut. One that has not crossed it holds that still, and
// crosses it if `settles`: what it held is frozen, and a cut that fills gives it `fill`.
control SyncFetchOne(
    in sync_metadata_t meta,
    in bit<32> first,
    in bit<32> offset,
    in bit<1> parity,
    in bool settles,
    in bool fills,
    in bit<64> fill,
    out bit<64> frozen
) {
    SyncAccess() access;
    SyncAccess() fill_location;
    bit<32> index;
    bit<1> crossed;
    bit<64> value;

    apply {
        frozen = 0;
        index = first + offset;
        if (index < meta.shape.size) {
            sync_frozen.read(frozen, meta.shape.base + index);
            sync_crossed.read(crossed, meta.shape.base + index);
            if (crossed != parity && SYNC_RULE_FROZEN) {
                frozen = 0;
                access.apply(meta.group, index, false, frozen);
                if (settles && SYNC_RULE_FETCH_SETTLES) {
                    sync_frozen.write(meta.shape.base + index, frozen);
                    sync_crossed.write(meta.shape.base + index, parity);
                    if (fills) {
                        value = fill;
                        fill_location.apply(meta.group, index, true, value);
                        sync_sent.write(meta.shape.base + index, fill);
                    }
                }
            }
        }
    }
}

// Counts the locations that have crossed because they were fetched in their order. When these are all,
// the cut has settled, and the next one need not wait for the sweep (rules 15, 16).
control SyncFetched(in bit<64> first, in bit<64> end, in sync_metadata_t meta) {
    bit<32> fetched;

    apply {
        sync_fetched.read(fetched, meta.at);
        if (first <= (bit<64>)fetched && end > (bit<64>)fetched) {
            sync_fetched.write(meta.at, end[31:0]);
            if (end[31:0] == meta.shape.size) {
                sync_unsettled.write(meta.at, 0);
            }
        }
    }
}

// The values of the window that the last cut ended (rule 16).
control SyncHandleFetch(inout sync_headers_t hdr, inout sync_metadata_t meta) {
#define SYNC_FETCHER(i) SyncFetchOne() fetch_##i;
    SYNC_EACH_FROZEN(SYNC_FETCHER)
    SyncFetched() fetched;
    SyncDropValues() drop_values;
    SyncDescribe() describe;
    SyncAnswer() answer;
    SyncRefuse() refuse;
    bit<32> epoch;
    bit<32> first;
    bit<64> end;
    bit<64> fill;
    bit<8> kind;
    bool settles;
    bool fills;

    apply {
        sync_epoch.read(epoch, meta.at);
        end = hdr.message.position + (bit<64>)hdr.message.queued;
        if (end > (bit<64>)meta.shape.size) {
            end = (bit<64>)meta.shape.size;
        }
        if (hdr.message.epoch != epoch || epoch == 0) {
            refuse.apply(SYNC_OUTCOME_OTHER_EPOCH, hdr, meta);
        } else if (hdr.message.queued > SYNC_FETCH || hdr.message.position >= end) {
            refuse.apply(SYNC_OUTCOME_MALFORMED, hdr, meta);
        } else {
            sync_events.count(SYNC_EVENT_FETCHED);
            drop_values.apply(hdr);
            sync_kind.read(kind, meta.at);
            sync_fill.read(fill, meta.at);
            // Nobody fetches the window of a staged write.
            settles = kind != SYNC_CUT_STAGED;
            fills = kind == SYNC_CUT_FILLED;
            if (settles) {
                fetched.apply(hdr.message.position, end, meta);
            }
            first = hdr.message.position[31:0];
            end = end - hdr.message.position;
            hdr.frozen.setValid();
#define SYNC_FETCH_VALUE(i) \
            fetch_##i.apply( \
                meta, first, i, epoch[0:0], settles, fills, fill, hdr.frozen.value_##i);
            SYNC_EACH_FROZEN(SYNC_FETCH_VALUE)
            describe.apply(hdr, meta);
            hdr.message.count = end[7:0];
            hdr.message.type = SYNC_TYPE_FETCHED;
            hdr.message.outcome = SYNC_OUTCOME_DONE;
            answer.apply(hdr, meta);
        }
    }
}

// A message of the engine that started, or one that starts (rules 11, 20, 32).
control SyncHandleRequest(inout sync_headers_t hdr, inout sync_metadata_t meta) {
    SyncHandleStart() handle_start;
    SyncHandlePoll() handle_poll;
    SyncHandleRepair() handle_repair;
    SyncHandleWrite() handle_write;
    SyncHandleCut() handle_cut;
    SyncHandleFetch() handle_fetch;
    SyncHandleStage() handle_stage;
    SyncRefuse() refuse;
    bit<32> incarnation;
    bit<64> term;
    bit<64> starter;
    bit<1> read_only;

    apply {
        sync_incarnation.read(incarnation, 0);
        sync_read_only.read(read_only, 0);
        sync_term.read(term, meta.at);
        sync_starter.read(starter, meta.at);
        if (hdr.message.type == SYNC_TYPE_START) {
            handle_start.apply(hdr, meta);
        } else if (hdr.message.incarnation != incarnation && SYNC_RULE_INCARNATION) {
            refuse.apply(SYNC_OUTCOME_OTHER_INCARNATION, hdr, meta);
        } else if (hdr.message.term < term && SYNC_RULE_FENCE) {
            refuse.apply(SYNC_OUTCOME_FENCED, hdr, meta);
        } else if ((hdr.message.term != term || hdr.message.starter != starter)
            && SYNC_RULE_FENCE
            && SYNC_RULE_INCARNATION) {
            refuse.apply(SYNC_OUTCOME_NOT_STARTED, hdr, meta);
        } else if (read_only == 1
            && (hdr.message.type == SYNC_TYPE_WRITE
                || hdr.message.type == SYNC_TYPE_CUT
                || hdr.message.type == SYNC_TYPE_STAGE)) {
            refuse.apply(SYNC_OUTCOME_NOT_ALLOWED, hdr, meta);
        } else if (hdr.message.type == SYNC_TYPE_POLL) {
            handle_poll.apply(hdr, meta);
        } else if (hdr.message.type == SYNC_TYPE_REPAIR) {
            handle_repair.apply(hdr, meta);
        } else if (hdr.message.type == SYNC_TYPE_WRITE) {
            handle_write.apply(hdr, meta);
        } else if (hdr.message.type == SYNC_TYPE_CUT) {
            handle_cut.apply(hdr, meta);
        } else if (hdr.message.type == SYNC_TYPE_FETCH) {
            handle_fetch.apply(hdr, meta);
        } else if (hdr.message.type == SYNC_TYPE_STAGE) {
            handle_stage.apply(hdr, meta);
        } else {
            sync_events.count(SYNC_EVENT_UNKNOWN_TYPE);
        }
    }
}

#endif
