// Data that the blocks of the library and the program exchange about a packet.

#ifndef STATEPLANE_COORDINATION_METADATA_P4
#define STATEPLANE_COORDINATION_METADATA_P4

#include "coordination_message.p4"

// Metadata kept by a copy that becomes further messages.
#define FIELD_LIST_EXTRA 1

// Bits of `extra`: ask the predecessor for the entries from `extra_from` to `extra_until`;
// send these to the successor; ask how far the chain is; tell the head how far it is; go on
// with the copy for the joiner; send the entry `event_from` to all subscribers; send the entries
// from `event_from` to `event_until` to one client.
const bit<8> EXTRA_ASK = 1;
const bit<8> EXTRA_ENTRIES = 2;
const bit<8> EXTRA_PROBE = 4;
const bit<8> EXTRA_ACK = 8;
const bit<8> EXTRA_COPY = 16;
const bit<8> EXTRA_PUSHED = 32;
const bit<8> EXTRA_WATCHED = 64;

// Knowledge of one switch of a group while a packet is in the pipeline.
struct coordination_group_t {
    // Its place in the group's registers.
    bit<32> index;
    bit<32> epoch;
    bit<16> generation;
    bit<8> members;
    bit<8> joins;
    bit<8> place;
    bit<32> predecessor;
    bit<32> successor;
    bit<64> applied;
    bit<32> era;
    bit<8> progress;
    // Rule 13.
    bool answers;
}

// A slot that FindSlot looked for.
struct coordination_slot_t {
    // Its place in the slots' registers, if it was found.
    bit<32> index;
    bool found;
    // Begin of the key's buckets.
    bit<32> first;
    bit<32> second;
}

// A lane while a packet is in the pipeline.
struct coordination_lane_t {
    // Its place in the lanes' registers.
    bit<32> index;
    bit<16> incarnation;
    bit<32> request;
    bit<64> number;
}

struct coordination_metadata_t {
    // For the program: forward the packet by its IPv4 destination.
    bool forward;

    // The rest is the library's own. Messages besides the one that the packet becomes
    // (EXTRA_...), of which group, and which entries.
    @field_list(FIELD_LIST_EXTRA)
    bit<8> extra;
    @field_list(FIELD_LIST_EXTRA)
    bit<16> extra_group;
    @field_list(FIELD_LIST_EXTRA)
    bit<64> extra_from;
    @field_list(FIELD_LIST_EXTRA)
    bit<64> extra_until;
    // Entries for watches (rule 23): the first and last number; whom the last went to; and the
    // client, address and port, with the handle of its subscription.
    @field_list(FIELD_LIST_EXTRA)
    bit<64> event_from;
    @field_list(FIELD_LIST_EXTRA)
    bit<64> event_until;
    @field_list(FIELD_LIST_EXTRA)
    bit<8> event_subscriber;
    @field_list(FIELD_LIST_EXTRA)
    bit<48> event_client;
    @field_list(FIELD_LIST_EXTRA)
    bit<32> event_handle;
    // This switch made or changed the message, which goes to:
    bool sends;
    bit<32> destination;
    bit<16> destination_port;
    bit<48> now;
    bit<32> switch_id;
    bit<32> own_address;
    coordination_group_t group;
    coordination_slot_t slot;
    coordination_lane_t lane;
}

#endif
