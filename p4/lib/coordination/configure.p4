// Messages of the controller: the switch's place in a chain, and its life (rules 9, 11, 14 to 17).

#ifndef STATEPLANE_COORDINATION_CONFIGURE_P4
#define STATEPLANE_COORDINATION_CONFIGURE_P4

#include "coordination_message.p4"
#include "events.p4"
#include "extra.p4"
#include "group.p4"
#include "join.p4"
#include "metadata.p4"
#include "ring.p4"
#include "rules.p4"
#include "send.p4"

// Which start of the switch this is: set by the host before the first packet (rule 16).
register<bit<32>>(1) coordination_incarnation;

// Takes the configuration of the message.
control TakeConfiguration(in coordination_t message, inout coordination_metadata_t meta) {
    bit<8> place;
    bit<8> progress;
    bit<8> behind;
    bit<32> predecessor;
    bit<32> successor;
    bit<32> promised_to;
    bit<48> promised_until;
    bool holds;
    bool member;
    bool begins_empty;

    apply {
        // The place that the list gives this switch, and the neighbours there.
        place = PLACE_NONE;
        predecessor = 0;
        successor = 0;
        behind = message.hops;
        if ((message.flags & FLAG_JOINS) != 0) {
            behind = behind + 1;
        }
        if (message.chain_1 == meta.own_address && behind > 0) {
            place = 0;
            successor = message.chain_2;
        } else if (message.chain_2 == meta.own_address && behind > 1) {
            place = 1;
            predecessor = message.chain_1;
            successor = message.chain_3;
        } else if (message.chain_3 == meta.own_address && behind > 2) {
            place = 2;
            predecessor = message.chain_2;
            successor = message.chain_4;
        } else if (message.chain_4 == meta.own_address && behind > 3) {
            place = 3;
            predecessor = message.chain_3;
        }
        if (place != PLACE_NONE && place + 1 == behind) {
            successor = 0;
        }
        member = place < message.hops;
        holds = meta.group.place != PLACE_NONE && message.generation == meta.group.generation;
        begins_empty = (message.flags & FLAG_FOUNDS) != 0;
        if (place == message.hops && !begins_empty) {
            // The joiner forgets, unless it has been joining (rule 15).
            begins_empty = !holds || meta.group.place != meta.group.members;
            begins_empty = begins_empty && RULE_JOINER_FORGETS;
        }

        if (message.hops == 0 || behind > MAX_CHAIN) {
            coordination_events.count(EVENT_BAD_MESSAGE);
        } else if (member && !holds && !begins_empty && RULE_EMPTY_MEMBER) {
            coordination_events.count(EVENT_EMPTY_MEMBER);
        } else {
            coordination_events.count(EVENT_CONFIGURED);
            // Who promised to a switch that is no member any more does nothing until then.
            group_promised_to.read(promised_to, meta.group.index);
            group_promised_until.read(promised_until, meta.group.index);
            if (promised_to == message.chain_1
                || (promised_to == message.chain_2 && message.hops > 1)
                || (promised_to == message.chain_3 && message.hops > 2)
                || (promised_to == message.chain_4 && message.hops > 3)) {
                promised_until = 0;
            }
            group_blocked_until.write(meta.group.index, promised_until);
            if (begins_empty) {
                meta.group.era = message.epoch;
                meta.group.applied = message.generation ++ (bit<COUNT_BITS>)0;
                group_era.write(meta.group.index, meta.group.era);
                group_applied.write(meta.group.index, meta.group.applied);
                group_first.write(meta.group.index, meta.group.applied + 1);
                group_acked.write(meta.group.index, meta.group.applied);
            } else if (place == PLACE_HEAD
                && meta.group.place != PLACE_HEAD
                && RULE_NEW_HEAD_BEHIND) {
                group_acked.write(meta.group.index, meta.group.applied - COORDINATION_RING);
            }
            progress = PROGRESS_NONE;
            if ((message.flags & FLAG_JOINS) != 0 && place + 1 >= message.hops) {
                progress = PROGRESS_BEGINS;
            }
            meta.group.epoch = message.epoch;
            meta.group.generation = message.generation;
            meta.group.members = message.hops;
            meta.group.joins = (bit<8>)(message.flags >> 2) & 1;
            meta.group.place = place;
            meta.group.progress = progress;
            meta.group.answers = false;
            group_epoch.write(meta.group.index, message.epoch);
            group_generation.write(meta.group.index, message.generation);
            group_members.write(meta.group.index, message.hops);
            group_joins.write(meta.group.index, meta.group.joins);
            group_place.write(meta.group.index, place);
            group_predecessor.write(meta.group.index, predecessor);
            group_successor.write(meta.group.index, successor);
            group_chain_1.write(meta.group.index, message.chain_1);
            group_chain_2.write(meta.group.index, message.chain_2);
            group_chain_3.write(meta.group.index, message.chain_3);
            group_chain_4.write(meta.group.index, message.chain_4);
            group_hash_key.write(meta.group.index, message.operand);
            group_progress.write(meta.group.index, progress);
            group_cursor.write(meta.group.index, 0);
            group_leased_until.write(meta.group.index, 0);
            group_asked_until.write(meta.group.index, 0);
            group_round.write(meta.group.index, 0);
            group_holds.write(meta.group.index, 0);
            group_joiner_newest.write(meta.group.index, 0);
            if (progress == PROGRESS_BEGINS && member) {
                coordination_fed.write(0, meta.group.index);
                meta.extra = meta.extra | EXTRA_COPY;
            }
        }
    }
}

// CONFIGURE.
control HandleConfigure(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    TakeConfiguration() take_configuration;
    PutConfiguration() put_configuration;
    DropValue() drop_value;
    SendToClient() send_to_client;
    bit<32> incarnation;
    bit<48> lasts;

    apply {
        coordination_incarnation.read(incarnation, 0);
        if (hdr.message.handle != incarnation && RULE_INCARNATION) {
            coordination_events.count(EVENT_OTHER_INCARNATION);
        } else if (hdr.message.epoch > meta.group.epoch || !RULE_HIGHER_EPOCH) {
            take_configuration.apply(hdr.message, meta);
        }
        hdr.message.type = TYPE_CONFIGURED;
        hdr.message.handle = incarnation;
        hdr.message.flags = 0;
        if (meta.group.answers && meta.group.place == meta.group.members) {
            hdr.message.flags = FLAG_JOINED;
        }
        group_promised_until.read(lasts, meta.group.index);
        if (meta.group.answers) {
            group_leased_until.read(lasts, meta.group.index);
        }
        if (meta.now < lasts) {
            hdr.message.flags = hdr.message.flags | FLAG_LEASED;
        }
        hdr.message.operand = 0;
        put_configuration.apply(hdr.message, meta);
        drop_value.apply(hdr);
        send_to_client.apply(hdr, meta);
    }
}

// PING.
control HandlePing(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    DropValue() drop_value;
    SendToClient() send_to_client;

    apply {
        hdr.message.type = TYPE_PONG;
        coordination_incarnation.read(hdr.message.handle, 0);
        meta.group.applied = 0;
        drop_value.apply(hdr);
        send_to_client.apply(hdr, meta);
    }
}

#endif
