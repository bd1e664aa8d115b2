// The ring of a group: its newest entries, for whoever asks for them (rule 2).

#ifndef STATEPLANE_COORDINATION_RING_P4
#define STATEPLANE_COORDINATION_RING_P4

#include "coordination_message.p4"
#include "group.p4"
#include "metadata.p4"
#include "rules.p4"
#include "slots.p4"

// Entries of a group that are kept, a power of two.
#ifndef COORDINATION_RING
#define COORDINATION_RING 64
#endif
#define COORDINATION_ALL_ENTRIES (COORDINATION_GROUPS * COORDINATION_RING)

// All that an entry carries, in place `number` modulo COORDINATION_RING of its group.
register<bit<32>>(COORDINATION_ALL_ENTRIES) ring_era;
register<bit<64>>(COORDINATION_ALL_ENTRIES) ring_number;
register<bit<8>>(COORDINATION_ALL_ENTRIES) ring_operation;
register<bit<8>>(COORDINATION_ALL_ENTRIES) ring_outcome;
register<bit<8>>(COORDINATION_ALL_ENTRIES) ring_kind;
register<bit<16>>(COORDINATION_ALL_ENTRIES) ring_length;
register<bit<16>>(COORDINATION_ALL_ENTRIES) ring_slot;
register<bit<16>>(COORDINATION_ALL_ENTRIES) ring_lane;
register<bit<16>>(COORDINATION_ALL_ENTRIES) ring_lane_incarnation;
register<bit<32>>(COORDINATION_ALL_ENTRIES) ring_request;
register<bit<32>>(COORDINATION_ALL_ENTRIES) ring_client_address;
register<bit<16>>(COORDINATION_ALL_ENTRIES) ring_client_port;
register<bit<32>>(COORDINATION_ALL_ENTRIES) ring_session;
register<bit<32>>(COORDINATION_ALL_ENTRIES) ring_handle;
register<bit<64>>(COORDINATION_ALL_ENTRIES) ring_record;
register<bit<64>>(COORDINATION_ALL_ENTRIES) ring_token;
register<bit<48>>(COORDINATION_ALL_ENTRIES) ring_send_time;
register<bit<128>>(COORDINATION_ALL_ENTRIES) ring_key;
register<bit<128>>(COORDINATION_ALL_ENTRIES) ring_value_0;
register<bit<128>>(COORDINATION_ALL_ENTRIES) ring_value_1;
register<bit<128>>(COORDINATION_ALL_ENTRIES) ring_value_2;
register<bit<128>>(COORDINATION_ALL_ENTRIES) ring_value_3;
register<bit<128>>(COORDINATION_ALL_ENTRIES) ring_value_4;
register<bit<128>>(COORDINATION_ALL_ENTRIES) ring_value_5;
register<bit<128>>(COORDINATION_ALL_ENTRIES) ring_value_6;
register<bit<128>>(COORDINATION_ALL_ENTRIES) ring_value_7;

// The bytes of long values behind their chunks, as slot_rest has them.
register<bit<1024>>(COORDINATION_ALL_ENTRIES * COORDINATION_PARTS) ring_rest;
register<bit<16>>(COORDINATION_ALL_ENTRIES) ring_rest_checksum;

// Place of the entry of a number.
bit<32> ring_place(in bit<32> group, in bit<64> number) {
    return group * COORDINATION_RING + ((bit<32>)number & (COORDINATION_RING - 1));
}

// Keeps the bytes of the message's long value behind SHORT_VALUE.
control KeepRest(in bit<32> index, in coordination_headers_t hdr) {
    bit<32> place;

    apply {
        place = index * COORDINATION_PARTS;
        ring_rest_checksum.write(index, hdr.message.rest_checksum);
        ring_rest.write(place, hdr.rest[0].bytes);
        if (hdr.message.value_length > 256) {
            ring_rest.write(place + 1, hdr.rest[1].bytes);
        }
        if (hdr.message.value_length > 384) {
            ring_rest.write(place + 2, hdr.rest[2].bytes);
        }
        if (hdr.message.value_length > 512) {
            ring_rest.write(place + 3, hdr.rest[3].bytes);
        }
        if (hdr.message.value_length > 640) {
            ring_rest.write(place + 4, hdr.rest[4].bytes);
        }
        if (hdr.message.value_length > 768) {
            ring_rest.write(place + 5, hdr.rest[5].bytes);
        }
        if (hdr.message.value_length > 896) {
            ring_rest.write(place + 6, hdr.rest[6].bytes);
        }
    }
}

// Keeps the message, an entry.
control KeepEntry(in coordination_headers_t hdr, in coordination_metadata_t meta) {
    KeepRest() keep_rest;
    bit<32> index;

    apply {
        index = ring_place(meta.group.index, hdr.message.number);
        ring_era.write(index, meta.group.era);
        ring_number.write(index, hdr.message.number);
        ring_operation.write(index, hdr.message.operation);
        ring_outcome.write(index, hdr.message.outcome);
        ring_kind.write(index, hdr.message.kind);
        ring_length.write(index, hdr.message.value_length);
        ring_slot.write(index, hdr.message.slot);
        ring_lane.write(index, hdr.message.lane);
        ring_lane_incarnation.write(index, hdr.message.lane_incarnation);
        ring_request.write(index, hdr.message.request);
        ring_client_address.write(index, hdr.message.client_address);
        ring_client_port.write(index, hdr.message.client_port);
        ring_session.write(index, hdr.message.session);
        ring_handle.write(index, hdr.message.handle);
        ring_record.write(index, hdr.message.record);
        ring_token.write(index, hdr.message.token);
        ring_send_time.write(index, hdr.message.send_time);
        ring_key.write(index, hdr.message.key);
        if (hdr.message.value_length > SHORT_VALUE) @unlikely {
            keep_rest.apply(index, hdr);
        }
        if (hdr.message.value_length > 0) {
            ring_value_0.write(index, hdr.value[0].bytes);
        }
        if (hdr.message.value_length > 16) {
            ring_value_1.write(index, hdr.value[1].bytes);
        }
        if (hdr.message.value_length > 32) {
            ring_value_2.write(index, hdr.value[2].bytes);
        }
        if (hdr.message.value_length > 48) {
            ring_value_3.write(index, hdr.value[3].bytes);
        }
        if (hdr.message.value_length > 64) {
            ring_value_4.write(index, hdr.value[4].bytes);
        }
        if (hdr.message.value_length > 80) {
            ring_value_5.write(index, hdr.value[5].bytes);
        }
        if (hdr.message.value_length > 96) {
            ring_value_6.write(index, hdr.value[6].bytes);
        }
        if (hdr.message.value_length > 112) {
            ring_value_7.write(index, hdr.value[7].bytes);
        }
    }
}

// Reads the bytes of an entry's long value behind SHORT_VALUE into the message.
control LoadKeptRest(in bit<32> index, inout coordination_headers_t hdr) {
    bit<32> place;

    apply {
        place = index * COORDINATION_PARTS;
        ring_rest_checksum.read(hdr.message.rest_checksum, index);
        hdr.rest[0].setValid();
        ring_rest.read(hdr.rest[0].bytes, place);
        hdr.rest[1].setInvalid();
        if (hdr.message.value_length > 256) {
            hdr.rest[1].setValid();
            ring_rest.read(hdr.rest[1].bytes, place + 1);
        }
        hdr.rest[2].setInvalid();
        if (hdr.message.value_length > 384) {
            hdr.rest[2].setValid();
            ring_rest.read(hdr.rest[2].bytes, place + 2);
        }
        hdr.rest[3].setInvalid();
        if (hdr.message.value_length > 512) {
            hdr.rest[3].setValid();
            ring_rest.read(hdr.rest[3].bytes, place + 3);
        }
        hdr.rest[4].setInvalid();
        if (hdr.message.value_length > 640) {
            hdr.rest[4].setValid();
            ring_rest.read(hdr.rest[4].bytes, place + 4);
        }
        hdr.rest[5].setInvalid();
        if (hdr.message.value_length > 768) {
            hdr.rest[5].setValid();
            ring_rest.read(hdr.rest[5].bytes, place + 5);
        }
        hdr.rest[6].setInvalid();
        if (hdr.message.value_length > 896) {
            hdr.rest[6].setValid();
            ring_rest.read(hdr.rest[6].bytes, place + 6);
        }
    }
}

// Makes the message the entry of a number. `kept` tells whether the ring has it.
control LoadEntry(
    in bit<64> number,
    inout coordination_headers_t hdr,
    in coordination_metadata_t meta,
    out bool kept
) {
    LoadKeptRest() load_kept_rest;
    DropRest() drop_rest;
    bit<32> index;
    bit<32> era;
    bit<64> stored;

    apply {
        index = ring_place(meta.group.index, number);
        ring_era.read(era, index);
        ring_number.read(stored, index);
        kept = stored == number && (era == meta.group.era || !RULE_ERA);
        if (kept) {
            hdr.message.number = number;
            ring_operation.read(hdr.message.operation, index);
            ring_outcome.read(hdr.message.outcome, index);
            ring_kind.read(hdr.message.kind, index);
            ring_length.read(hdr.message.value_length, index);
            ring_slot.read(hdr.message.slot, index);
            ring_lane.read(hdr.message.lane, index);
            ring_lane_incarnation.read(hdr.message.lane_incarnation, index);
            ring_request.read(hdr.message.request, index);
            ring_client_address.read(hdr.message.client_address, index);
            ring_client_port.read(hdr.message.client_port, index);
            ring_session.read(hdr.message.session, index);
            ring_handle.read(hdr.message.handle, index);
            ring_record.read(hdr.message.record, index);
            ring_token.read(hdr.message.token, index);
            ring_send_time.read(hdr.message.send_time, index);
            ring_key.read(hdr.message.key, index);
            if (hdr.message.value_length > SHORT_VALUE) @unlikely {
                load_kept_rest.apply(index, hdr);
            } else {
                drop_rest.apply(hdr);
            }
            hdr.value[0].setInvalid();
            if (hdr.message.value_length > 0) {
                hdr.value[0].setValid();
                ring_value_0.read(hdr.value[0].bytes, index);
            }
            hdr.value[1].setInvalid();
            if (hdr.message.value_length > 16) {
                hdr.value[1].setValid();
                ring_value_1.read(hdr.value[1].bytes, index);
            }
            hdr.value[2].setInvalid();
            if (hdr.message.value_length > 32) {
                hdr.value[2].setValid();
                ring_value_2.read(hdr.value[2].bytes, index);
            }
            hdr.value[3].setInvalid();
            if (hdr.message.value_length > 48) {
                hdr.value[3].setValid();
                ring_value_3.read(hdr.value[3].bytes, index);
            }
            hdr.value[4].setInvalid();
            if (hdr.message.value_length > 64) {
                hdr.value[4].setValid();
                ring_value_4.read(hdr.value[4].bytes, index);
            }
            hdr.value[5].setInvalid();
            if (hdr.message.value_length > 80) {
                hdr.value[5].setValid();
                ring_value_5.read(hdr.value[5].bytes, index);
            }
            hdr.value[6].setInvalid();
            if (hdr.message.value_length > 96) {
                hdr.value[6].setValid();
                ring_value_6.read(hdr.value[6].bytes, index);
            }
            hdr.value[7].setInvalid();
            if (hdr.message.value_length > 112) {
                hdr.value[7].setValid();
                ring_value_7.read(hdr.value[7].bytes, index);
            }
        }
    }
}

#endif
