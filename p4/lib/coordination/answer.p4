// Answers to clients: of the answerer (rule 13), about entries, questions and reads.

#ifndef STATEPLANE_COORDINATION_ANSWER_P4
#define STATEPLANE_COORDINATION_ANSWER_P4

#include "coordination_message.p4"
#include "events.p4"
#include "extra.p4"
#include "group.p4"
#include "lanes.p4"
#include "metadata.p4"
#include "ring.p4"
#include "rules.p4"
#include "send.p4"
#include "slots.p4"

// Places that one SCAN looks at, for which ScanSlots is unrolled.
#define SCANNED_SLOTS 8

// The reply about an entry that was applied, with the lane's kept request (rule 6); and to the
// head, at each quarter of the ring, that all have the entries so far (rule 2).
control AnswerEntry(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    PutKept() put_kept;
    DropValue() drop_value;
    SendToClient() send_to_client;

    apply {
        if ((hdr.message.number & (COORDINATION_RING / 4 - 1)) == 0
            && meta.group.place != PLACE_HEAD) {
            meta.extra = meta.extra | EXTRA_ACK;
        }
        hdr.message.type = TYPE_REPLY;
        if (hdr.message.operation == OPERATION_RESOLVE) {
            put_kept.apply(meta.lane.index, hdr.message);
        } else {
            hdr.message.handle = hdr.message.request;
        }
        if (hdr.message.operation == OPERATION_WRITE && hdr.message.outcome == OUTCOME_DONE) {
            // The client has it.
            drop_value.apply(hdr);
        }
        coordination_events.count(EVENT_ANSWERED);
        send_to_client.apply(hdr, meta);
    }
}

// The reply to a request that was decided before, if it is the lane's last here (rule 5).
control AnswerQuestion(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    LoadLane() load_lane;
    PutKept() put_kept;
    DropValue() drop_value;
    SendToClient() send_to_client;

    apply {
        load_lane.apply(hdr.message.lane, meta);
        if ((meta.lane.request == hdr.message.request
            && meta.lane.incarnation == hdr.message.lane_incarnation
            && meta.lane.number == hdr.message.number)
            || !RULE_HELD_NUMBER) {
            hdr.message.type = TYPE_REPLY;
            put_kept.apply(meta.lane.index, hdr.message);
            hdr.message.kind = KIND_NONE;
            hdr.message.record = 0;
            drop_value.apply(hdr);
            coordination_events.count(EVENT_ANSWERED);
            send_to_client.apply(hdr, meta);
        } else {
            coordination_events.count(EVENT_NOT_HELD);
        }
    }
}

// True if place `first` + `ahead` has a record, unless one was found before; `empty_too`: also
// one that is kept empty for its token.
control ScannedSlot(
    in bit<16> ahead,
    in bit<16> first,
    in bool empty_too,
    inout coordination_metadata_t meta
) {
    bit<32> place;
    bit<32> era;
    bit<8> kind;

    apply {
        place = (bit<32>)first + (bit<32>)ahead;
        if (!meta.slot.found && place < COORDINATION_SLOTS) {
            meta.slot.index = meta.group.index * COORDINATION_SLOTS + place;
            slot_era.read(era, meta.slot.index);
            slot_kind.read(kind, meta.slot.index);
            meta.slot.found = (kind == KIND_VALUE
                || kind == KIND_LOCK
                || (kind == KIND_EMPTY && empty_too))
                && (era == meta.group.era || !RULE_ERA);
        }
    }
}

// Looks at the 8 places from `slot` of the message on for the first that has a record.
control ScanSlots(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    ScannedSlot() scanned_0;
    ScannedSlot() scanned_1;
    ScannedSlot() scanned_2;
    ScannedSlot() scanned_3;
    ScannedSlot() scanned_4;
    ScannedSlot() scanned_5;
    ScannedSlot() scanned_6;
    ScannedSlot() scanned_7;
    bool empty_too;

    apply {
        empty_too = (hdr.message.flags & FLAG_STALE) != 0;
        meta.slot.found = false;
        scanned_0.apply(0, hdr.message.slot, empty_too, meta);
        scanned_1.apply(1, hdr.message.slot, empty_too, meta);
        scanned_2.apply(2, hdr.message.slot, empty_too, meta);
        scanned_3.apply(3, hdr.message.slot, empty_too, meta);
        scanned_4.apply(4, hdr.message.slot, empty_too, meta);
        scanned_5.apply(5, hdr.message.slot, empty_too, meta);
        scanned_6.apply(6, hdr.message.slot, empty_too, meta);
        scanned_7.apply(7, hdr.message.slot, empty_too, meta);
    }
}

// The reply to READ and SCAN: the record as it is here.
control AnswerRead(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    PutConfiguration() put_configuration;
    FindSlot() find_slot;
    ScanSlots() scan_slots;
    LoadRecord() load_record;
    SendToClient() send_to_client;
    bit<16> place;

    apply {
        put_configuration.apply(hdr.message, meta);
        hdr.message.flags = hdr.message.flags & ~FLAG_MORE;
        place = hdr.message.slot;
        if (hdr.message.operation == OPERATION_READ) {
            find_slot.apply(hdr.message.key, meta);
        } else {
            scan_slots.apply(hdr, meta);
        }
        load_record.apply(hdr, meta);
        hdr.message.type = TYPE_REPLY;
        hdr.message.outcome = OUTCOME_ABSENT;
        hdr.message.number = 0;
        if (meta.slot.found
            && (hdr.message.kind != KIND_EMPTY || hdr.message.operation == OPERATION_SCAN)) {
            hdr.message.outcome = OUTCOME_DONE;
        }
        if (hdr.message.operation == OPERATION_SCAN) {
            if (meta.slot.found) {
                slot_key.read(hdr.message.key, meta.slot.index);
            } else if ((bit<32>)place + SCANNED_SLOTS < COORDINATION_SLOTS) {
                hdr.message.flags = hdr.message.flags | FLAG_MORE;
                hdr.message.slot = place + SCANNED_SLOTS;
            }
        }
        coordination_events.count(EVENT_ANSWERED);
        send_to_client.apply(hdr, meta);
    }
}

#endif
