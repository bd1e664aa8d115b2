// The slots of a group: where a key lies, and what lies there.

#ifndef STATEPLANE_COORDINATION_SLOTS_P4
#define STATEPLANE_COORDINATION_SLOTS_P4

#include "coordination_message.p4"
#include "group.p4"
#include "metadata.p4"
#include "rules.p4"

// Slots of a group, in buckets of COORDINATION_WAYS, for which the controls below are unrolled.
#ifndef COORDINATION_SLOTS
#define COORDINATION_SLOTS 1024
#endif
#define COORDINATION_WAYS 4
#define COORDINATION_BUCKETS (COORDINATION_SLOTS / COORDINATION_WAYS)
#define COORDINATION_ALL_SLOTS (COORDINATION_GROUPS * COORDINATION_SLOTS)

register<bit<32>>(COORDINATION_ALL_SLOTS) slot_era;
register<bit<8>>(COORDINATION_ALL_SLOTS) slot_kind;
register<bit<128>>(COORDINATION_ALL_SLOTS) slot_key;
// Number of the entry that last changed the slot, also of one that emptied it.
register<bit<64>>(COORDINATION_ALL_SLOTS) slot_number;
// Highest token that the record has seen; of a lock, its owner's.
register<bit<64>>(COORDINATION_ALL_SLOTS) slot_token;
register<bit<32>>(COORDINATION_ALL_SLOTS) slot_session;
register<bit<16>>(COORDINATION_ALL_SLOTS) slot_length;
// The value in chunks, of which those beyond its length are not touched (NetChain §7).
register<bit<128>>(COORDINATION_ALL_SLOTS) slot_value_0;
register<bit<128>>(COORDINATION_ALL_SLOTS) slot_value_1;
register<bit<128>>(COORDINATION_ALL_SLOTS) slot_value_2;
register<bit<128>>(COORDINATION_ALL_SLOTS) slot_value_3;
register<bit<128>>(COORDINATION_ALL_SLOTS) slot_value_4;
register<bit<128>>(COORDINATION_ALL_SLOTS) slot_value_5;
register<bit<128>>(COORDINATION_ALL_SLOTS) slot_value_6;
register<bit<128>>(COORDINATION_ALL_SLOTS) slot_value_7;

// The bytes of a value behind its chunks: COORDINATION_PARTS places for each slot, and their
// checksum. An array of a length of its own lies apart from the slots, which short values touch.
#define COORDINATION_PARTS 7
register<bit<1024>>(COORDINATION_ALL_SLOTS * COORDINATION_PARTS) slot_rest;
register<bit<16>>(COORDINATION_ALL_SLOTS) slot_rest_checksum;

// Multipliers of the hash, digits of pi, with which the group's key is combined.
const bit<64> BUCKET_HASH_0 = 0x243f6a8885a308d3;
const bit<64> BUCKET_HASH_1 = 0x13198a2e03707344;
const bit<64> BUCKET_HASH_2 = 0xa4093822299f31d0;
const bit<64> BUCKET_HASH_3 = 0x082efa98ec4e6c89;
const bit<64> BUCKET_HASH_4 = 0x452821e638d01377;
const bit<64> BUCKET_HASH_5 = 0xbe5466cf34e90c6c;

// A number below COORDINATION_BUCKETS by the upper half of a product with an odd factor.
bit<32> bucket_place(in bit<64> mixed, in bit<64> factor) {
    bit<64> product = mixed * (factor | 1);
    return (bit<32>)(((product >> 32) * COORDINATION_BUCKETS) >> 32);
}

// The first slots of the key's two buckets: a hash as flow_hash.p4 has it, but with the
// group's key, which CONFIGURE brought to all members, so that a new head finds what the old
// one placed.
control FindBuckets(in bit<128> key, inout coordination_metadata_t meta) {
    bit<128> drawn;
    bit<64> mixed;

    apply {
        group_hash_key.read(drawn, meta.group.index);
        mixed = ((drawn[127:64] ^ BUCKET_HASH_0) + (bit<64>)key[127:96])
            * ((drawn[63:0] ^ BUCKET_HASH_1) + (bit<64>)key[95:64])
            + ((drawn[95:32] ^ BUCKET_HASH_2) + (bit<64>)key[63:32])
                * (((drawn[31:0] ++ drawn[127:96]) ^ BUCKET_HASH_3) + (bit<64>)key[31:0]);
        mixed = mixed ^ (mixed >> 32);
        meta.slot.first = meta.group.index * COORDINATION_SLOTS
            + bucket_place(mixed, drawn[127:64] ^ BUCKET_HASH_4) * COORDINATION_WAYS;
        meta.slot.second = meta.group.index * COORDINATION_SLOTS
            + bucket_place(mixed, drawn[63:0] ^ BUCKET_HASH_5) * COORDINATION_WAYS;
    }
}

// True if a slot holds the key.
control HoldsKey(in bit<32> index, in bit<128> key, in bit<32> era, out bool holds) {
    bit<128> stored;
    bit<32> stored_era;
    bit<8> kind;

    apply {
        slot_key.read(stored, index);
        holds = false;
        if (stored == key) {
            slot_era.read(stored_era, index);
            slot_kind.read(kind, index);
            holds = kind != KIND_NONE && (stored_era == era || !RULE_ERA);
        }
    }
}

// Looks the key up in the bucket that begins with the slot `first`.
control FindInBucket(in bit<128> key, in bit<32> first, inout coordination_metadata_t meta) {
    HoldsKey() holds_key;

    apply {
        meta.slot.index = first;
        holds_key.apply(meta.slot.index, key, meta.group.era, meta.slot.found);
        if (!meta.slot.found) {
            meta.slot.index = first + 1;
            holds_key.apply(meta.slot.index, key, meta.group.era, meta.slot.found);
        }
        if (!meta.slot.found) {
            meta.slot.index = first + 2;
            holds_key.apply(meta.slot.index, key, meta.group.era, meta.slot.found);
        }
        if (!meta.slot.found) {
            meta.slot.index = first + 3;
            holds_key.apply(meta.slot.index, key, meta.group.era, meta.slot.found);
        }
    }
}

// Looks the key up in its two buckets.
control FindSlot(in bit<128> key, inout coordination_metadata_t meta) {
    FindBuckets() find_buckets;
    FindInBucket() find_in_first;
    FindInBucket() find_in_second;

    apply {
        find_buckets.apply(key, meta);
        find_in_first.apply(key, meta.slot.first, meta);
        if (!meta.slot.found) {
            find_in_second.apply(key, meta.slot.second, meta);
        }
    }
}

// True if a slot is free.
control IsFree(in bit<32> index, in bit<32> era, out bool free) {
    bit<32> stored_era;
    bit<8> kind;

    apply {
        slot_era.read(stored_era, index);
        slot_kind.read(kind, index);
        free = kind == KIND_NONE || (stored_era != era && RULE_ERA);
    }
}

// The first free slot of the bucket that begins with the slot `first`, and the number of its free
// slots.
control FindFreeInBucket(in bit<32> first, in bit<32> era, out bit<32> index, out bit<8> count) {
    IsFree() is_free;
    bool free;

    apply {
        index = first;
        count = 0;
        is_free.apply(first + 3, era, free);
        if (free) {
            index = first + 3;
            count = 1;
        }
        is_free.apply(first + 2, era, free);
        if (free) {
            index = first + 2;
            count = count + 1;
        }
        is_free.apply(first + 1, era, free);
        if (free) {
            index = first + 1;
            count = count + 1;
        }
        is_free.apply(first, era, free);
        if (free) {
            index = first;
            count = count + 1;
        }
    }
}

// A free slot of the emptier one of the buckets that FindSlot looked through: so groups fill up
// evenly, and few keys are refused before nearly all slots are taken (rule 8).
control FindFree(inout coordination_metadata_t meta, out bool free) {
    FindFreeInBucket() find_in_first;
    FindFreeInBucket() find_in_second;
    bit<32> first;
    bit<32> second;
    bit<8> of_first;
    bit<8> of_second;

    apply {
        find_in_first.apply(meta.slot.first, meta.group.era, first, of_first);
        find_in_second.apply(meta.slot.second, meta.group.era, second, of_second);
        if (of_second > of_first) {
            meta.slot.index = second;
        } else {
            meta.slot.index = first;
        }
        free = of_first != 0 || of_second != 0;
    }
}

// Takes the bytes of a long value behind SHORT_VALUE off the message.
control DropRest(inout coordination_headers_t hdr) {
    apply {
        hdr.message.rest_checksum = 0;
        if (hdr.rest[0].isValid()) @unlikely {
            hdr.rest[0].setInvalid();
            hdr.rest[1].setInvalid();
            hdr.rest[2].setInvalid();
            hdr.rest[3].setInvalid();
            hdr.rest[4].setInvalid();
            hdr.rest[5].setInvalid();
            hdr.rest[6].setInvalid();
        }
    }
}

// Reads the bytes of a slot's long value behind SHORT_VALUE into the message.
control LoadRest(in bit<32> index, inout coordination_headers_t hdr) {
    bit<32> place;

    apply {
        place = index * COORDINATION_PARTS;
        slot_rest_checksum.read(hdr.message.rest_checksum, index);
        hdr.rest[0].setValid();
        slot_rest.read(hdr.rest[0].bytes, place);
        hdr.rest[1].setInvalid();
        if (hdr.message.value_length > 256) {
            hdr.rest[1].setValid();
            slot_rest.read(hdr.rest[1].bytes, place + 1);
        }
        hdr.rest[2].setInvalid();
        if (hdr.message.value_length > 384) {
            hdr.rest[2].setValid();
            slot_rest.read(hdr.rest[2].bytes, place + 2);
        }
        hdr.rest[3].setInvalid();
        if (hdr.message.value_length > 512) {
            hdr.rest[3].setValid();
            slot_rest.read(hdr.rest[3].bytes, place + 3);
        }
        hdr.rest[4].setInvalid();
        if (hdr.message.value_length > 640) {
            hdr.rest[4].setValid();
            slot_rest.read(hdr.rest[4].bytes, place + 4);
        }
        hdr.rest[5].setInvalid();
        if (hdr.message.value_length > 768) {
            hdr.rest[5].setValid();
            slot_rest.read(hdr.rest[5].bytes, place + 5);
        }
        hdr.rest[6].setInvalid();
        if (hdr.message.value_length > 896) {
            hdr.rest[6].setValid();
            slot_rest.read(hdr.rest[6].bytes, place + 6);
        }
    }
}

// Writes the bytes of the message's long value behind SHORT_VALUE into a slot.
control StoreRest(in bit<32> index, in coordination_headers_t hdr) {
    bit<32> place;

    apply {
        place = index * COORDINATION_PARTS;
        slot_rest_checksum.write(index, hdr.message.rest_checksum);
        slot_rest.write(place, hdr.rest[0].bytes);
        if (hdr.message.value_length > 256) {
            slot_rest.write(place + 1, hdr.rest[1].bytes);
        }
        if (hdr.message.value_length > 384) {
            slot_rest.write(place + 2, hdr.rest[2].bytes);
        }
        if (hdr.message.value_length > 512) {
            slot_rest.write(place + 3, hdr.rest[3].bytes);
        }
        if (hdr.message.value_length > 640) {
            slot_rest.write(place + 4, hdr.rest[4].bytes);
        }
        if (hdr.message.value_length > 768) {
            slot_rest.write(place + 5, hdr.rest[5].bytes);
        }
        if (hdr.message.value_length > 896) {
            slot_rest.write(place + 6, hdr.rest[6].bytes);
        }
    }
}

// Takes the value off the message.
control DropValue(inout coordination_headers_t hdr) {
    DropRest() drop_rest;

    apply {
        drop_rest.apply(hdr);
        hdr.message.value_length = 0;
        hdr.value[0].setInvalid();
        hdr.value[1].setInvalid();
        hdr.value[2].setInvalid();
        hdr.value[3].setInvalid();
        hdr.value[4].setInvalid();
        hdr.value[5].setInvalid();
        hdr.value[6].setInvalid();
        hdr.value[7].setInvalid();
    }
}

// Reads the value of a slot into the message, as long as `value_length` of the message says.
control LoadValue(in bit<32> index, inout coordination_headers_t hdr) {
    DropRest() drop_rest;
    LoadRest() load_rest;

    apply {
        if (hdr.message.value_length > SHORT_VALUE) @unlikely {
            load_rest.apply(index, hdr);
        } else {
            drop_rest.apply(hdr);
        }
        hdr.value[0].setInvalid();
        if (hdr.message.value_length > 0) {
            hdr.value[0].setValid();
            slot_value_0.read(hdr.value[0].bytes, index);
        }
        hdr.value[1].setInvalid();
        if (hdr.message.value_length > 16) {
            hdr.value[1].setValid();
            slot_value_1.read(hdr.value[1].bytes, index);
        }
        hdr.value[2].setInvalid();
        if (hdr.message.value_length > 32) {
            hdr.value[2].setValid();
            slot_value_2.read(hdr.value[2].bytes, index);
        }
        hdr.value[3].setInvalid();
        if (hdr.message.value_length > 48) {
            hdr.value[3].setValid();
            slot_value_3.read(hdr.value[3].bytes, index);
        }
        hdr.value[4].setInvalid();
        if (hdr.message.value_length > 64) {
            hdr.value[4].setValid();
            slot_value_4.read(hdr.value[4].bytes, index);
        }
        hdr.value[5].setInvalid();
        if (hdr.message.value_length > 80) {
            hdr.value[5].setValid();
            slot_value_5.read(hdr.value[5].bytes, index);
        }
        hdr.value[6].setInvalid();
        if (hdr.message.value_length > 96) {
            hdr.value[6].setValid();
            slot_value_6.read(hdr.value[6].bytes, index);
        }
        hdr.value[7].setInvalid();
        if (hdr.message.value_length > 112) {
            hdr.value[7].setValid();
            slot_value_7.read(hdr.value[7].bytes, index);
        }
    }
}

// Writes the message's value into a slot.
control StoreValue(in bit<32> index, in coordination_headers_t hdr) {
    StoreRest() store_rest;

    apply {
        if (hdr.message.value_length > SHORT_VALUE) @unlikely {
            store_rest.apply(index, hdr);
        }
        if (hdr.message.value_length > 0) {
            slot_value_0.write(index, hdr.value[0].bytes);
        }
        if (hdr.message.value_length > 16) {
            slot_value_1.write(index, hdr.value[1].bytes);
        }
        if (hdr.message.value_length > 32) {
            slot_value_2.write(index, hdr.value[2].bytes);
        }
        if (hdr.message.value_length > 48) {
            slot_value_3.write(index, hdr.value[3].bytes);
        }
        if (hdr.message.value_length > 64) {
            slot_value_4.write(index, hdr.value[4].bytes);
        }
        if (hdr.message.value_length > 80) {
            slot_value_5.write(index, hdr.value[5].bytes);
        }
        if (hdr.message.value_length > 96) {
            slot_value_6.write(index, hdr.value[6].bytes);
        }
        if (hdr.message.value_length > 112) {
            slot_value_7.write(index, hdr.value[7].bytes);
        }
    }
}

// Reads the record of the slot that was found into the message, or that there is none.
control LoadRecord(inout coordination_headers_t hdr, in coordination_metadata_t meta) {
    LoadValue() load_value;
    DropValue() drop_value;

    apply {
        if (meta.slot.found) {
            slot_kind.read(hdr.message.kind, meta.slot.index);
            slot_number.read(hdr.message.record, meta.slot.index);
            slot_token.read(hdr.message.token, meta.slot.index);
            slot_session.read(hdr.message.session, meta.slot.index);
            slot_length.read(hdr.message.value_length, meta.slot.index);
            hdr.message.slot = (bit<16>)(meta.slot.index - meta.group.index * COORDINATION_SLOTS);
            load_value.apply(meta.slot.index, hdr);
        } else {
            hdr.message.kind = KIND_NONE;
            hdr.message.record = 0;
            hdr.message.token = 0;
            hdr.message.session = 0;
            hdr.message.slot = 0;
            drop_value.apply(hdr);
        }
    }
}

// Writes the message's record into a slot.
control StoreRecord(in bit<32> index, in bit<32> era, in coordination_headers_t hdr) {
    StoreValue() store_value;

    apply {
        slot_era.write(index, era);
        slot_kind.write(index, hdr.message.kind);
        slot_key.write(index, hdr.message.key);
        slot_number.write(index, hdr.message.record);
        slot_token.write(index, hdr.message.token);
        slot_session.write(index, hdr.message.session);
        slot_length.write(index, hdr.message.value_length);
        store_value.apply(index, hdr);
    }
}

#endif
