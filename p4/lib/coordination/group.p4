// State of a switch for each group: its place in the chain, and how far it is.

#ifndef STATEPLANE_COORDINATION_GROUP_P4
#define STATEPLANE_COORDINATION_GROUP_P4

#include "coordination_message.p4"
#include "metadata.p4"
#include "rules.p4"

#ifndef COORDINATION_GROUPS
#define COORDINATION_GROUPS 64
#endif

// Bits of a number below its generation.
#define COUNT_BITS 48

// Place in a chain: the head's; and that of a switch that has none. The joiner's is the number
// of members.
const bit<8> PLACE_HEAD = 0;
const bit<8> PLACE_NONE = 255;

// How far a joiner is, for the tail and for the joiner itself (rule 15).
const bit<8> PROGRESS_NONE = 0;
// The tail sends BEGIN; the joiner waits for it.
const bit<8> PROGRESS_BEGINS = 1;
// The tail copies; the joiner applies entries.
const bit<8> PROGRESS_COPIES = 2;
// The tail has copied all, and acknowledges no more until the joiner has caught up.
const bit<8> PROGRESS_CLOSES = 3;
// The tail has handed over; the joiner holds the hand-over.
const bit<8> PROGRESS_HANDS_OVER = 4;
// The tail knows that the joiner holds it.
const bit<8> PROGRESS_HANDED = 5;

// The configuration (rule 9). Epoch 0: there never was one.
register<bit<32>>(COORDINATION_GROUPS) group_epoch;
register<bit<16>>(COORDINATION_GROUPS) group_generation;
register<bit<8>>(COORDINATION_GROUPS) group_members;
// 1: the switch behind the members joins.
register<bit<8>>(COORDINATION_GROUPS) group_joins;
register<bit<8>>(COORDINATION_GROUPS) group_place;
register<bit<32>>(COORDINATION_GROUPS) group_predecessor;
register<bit<32>>(COORDINATION_GROUPS) group_successor;
register<bit<32>>(COORDINATION_GROUPS) group_chain_1;
register<bit<32>>(COORDINATION_GROUPS) group_chain_2;
register<bit<32>>(COORDINATION_GROUPS) group_chain_3;
register<bit<32>>(COORDINATION_GROUPS) group_chain_4;
register<bit<128>>(COORDINATION_GROUPS) group_hash_key;
// Epoch in which this switch began empty: what lies in registers with another is not there.
register<bit<32>>(COORDINATION_GROUPS) group_era;

// Number of the newest entry.
register<bit<64>>(COORDINATION_GROUPS) group_applied;
// Number of the first entry that this switch applied since it began empty, or since its copy
// began: its ring has none before.
register<bit<64>>(COORDINATION_GROUPS) group_first;
// As head: number up to which all members are known to have the entries; as a tail that closes
// the copy, its own number when it began to.
register<bit<64>>(COORDINATION_GROUPS) group_acked;
// The first and last number that were asked for last, and when.
register<bit<64>>(COORDINATION_GROUPS) group_asked_from;
register<bit<64>>(COORDINATION_GROUPS) group_asked_until;
register<bit<48>>(COORDINATION_GROUPS) group_asked_at;

// Rule 14: until when this switch may answer alone; to whom it promised, and until when; and
// until when it does nothing.
register<bit<48>>(COORDINATION_GROUPS) group_leased_until;
register<bit<32>>(COORDINATION_GROUPS) group_promised_to;
register<bit<48>>(COORDINATION_GROUPS) group_promised_until;
register<bit<48>>(COORDINATION_GROUPS) group_blocked_until;

// Rule 15: PROGRESS_...; the number of BEGIN, which names the round; the place that is copied;
// and the number of the hand-over.
register<bit<8>>(COORDINATION_GROUPS) group_progress;
register<bit<64>>(COORDINATION_GROUPS) group_round;
register<bit<16>>(COORDINATION_GROUPS) group_cursor;
register<bit<64>>(COORDINATION_GROUPS) group_floor;
// 1: as a tail whose copy began again, this switch acknowledges what the joiner has, whose newest
// number is in the second register.
register<bit<8>>(COORDINATION_GROUPS) group_holds;
register<bit<64>>(COORDINATION_GROUPS) group_joiner_newest;

// Reads what most messages need of a group.
control LoadGroup(in bit<16> group, inout coordination_metadata_t meta) {
    bit<64> floor;

    apply {
        meta.group.index = (bit<32>)group;
        group_epoch.read(meta.group.epoch, meta.group.index);
        group_generation.read(meta.group.generation, meta.group.index);
        group_members.read(meta.group.members, meta.group.index);
        group_joins.read(meta.group.joins, meta.group.index);
        group_place.read(meta.group.place, meta.group.index);
        group_predecessor.read(meta.group.predecessor, meta.group.index);
        group_successor.read(meta.group.successor, meta.group.index);
        group_applied.read(meta.group.applied, meta.group.index);
        group_era.read(meta.group.era, meta.group.index);
        group_progress.read(meta.group.progress, meta.group.index);
        if (meta.group.epoch == 0) {
            meta.group.place = PLACE_NONE;
        }
        meta.group.answers = false;
        if (meta.group.place == meta.group.members) @unlikely {
            group_floor.read(floor, meta.group.index);
            meta.group.answers = meta.group.progress == PROGRESS_HANDS_OVER
                && (meta.group.applied >= floor || !RULE_FLOOR);
        } else if (meta.group.place < meta.group.members
            && meta.group.place + 1 == meta.group.members) {
            meta.group.answers = meta.group.progress < PROGRESS_HANDS_OVER || !RULE_HANDED_SILENT;
        }
    }
}

// Puts the configuration that this switch follows into a message.
control PutConfiguration(inout coordination_t message, in coordination_metadata_t meta) {
    apply {
        message.epoch = meta.group.epoch;
        message.generation = meta.group.generation;
        message.hops = meta.group.members;
        group_chain_1.read(message.chain_1, meta.group.index);
        group_chain_2.read(message.chain_2, meta.group.index);
        group_chain_3.read(message.chain_3, meta.group.index);
        group_chain_4.read(message.chain_4, meta.group.index);
        message.flags = message.flags & ~FLAG_JOINS;
        if (meta.group.joins == 1) {
            message.flags = message.flags | FLAG_JOINS;
        }
    }
}

#endif
