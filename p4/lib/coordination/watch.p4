// Watches: the answerer sends each entry that it applies to the clients that subscribed to the
// group (rule 23).

#ifndef STATEPLANE_COORDINATION_WATCH_P4
#define STATEPLANE_COORDINATION_WATCH_P4

#include "coordination_message.p4"
#include "events.p4"
#include "group.p4"
#include "metadata.p4"
#include "ring.p4"
#include "rules.p4"
#include "send.p4"
#include "slots.p4"

// Subscribers of a group, for which the controls below are unrolled.
#define COORDINATION_SUBSCRIBERS 16
#define COORDINATION_ALL_SUBSCRIBERS (COORDINATION_GROUPS * COORDINATION_SUBSCRIBERS)

// µs from the last WATCH of a subscriber to the end of its subscription.
#ifndef COORDINATION_SUBSCRIPTION_MICROSECONDS
#define COORDINATION_SUBSCRIPTION_MICROSECONDS 3000000
#endif

// No place of a subscriber.
const bit<8> SUBSCRIBER_NONE = 255;
// Most entries that one WATCH asks for.
const bit<64> WATCHED_ENTRIES = 16;

// A subscriber: its address (32 bits), its port (16), the handle of its subscription (32), and the
// end of the subscription (48).
register<bit<128>>(COORDINATION_ALL_SUBSCRIBERS) group_subscriber;
// No subscription of the group lasts longer.
register<bit<48>>(COORDINATION_GROUPS) group_subscribed_until;

// True if `place` is the subscriber's own, or the first that is free.
control SeekSubscriber(
    in bit<8> place,
    in bit<48> client,
    in coordination_metadata_t meta,
    inout bit<8> chosen,
    inout bool known
) {
    bit<128> stored;

    apply {
        if (!known) {
            group_subscriber.read(
                stored,
                meta.group.index * COORDINATION_SUBSCRIBERS + (bit<32>)place
            );
            if (stored[127:80] == client) {
                chosen = place;
                known = true;
            } else if (chosen == SUBSCRIBER_NONE && stored[47:0] <= meta.now) {
                chosen = place;
            }
        }
    }
}

// Notes that the client of the message gets entries from here on. `noted` tells whether the table
// has a place for it.
control Subscribe(in coordination_t message, in coordination_metadata_t meta, out bool noted) {
    SeekSubscriber() seek_0;
    SeekSubscriber() seek_1;
    SeekSubscriber() seek_2;
    SeekSubscriber() seek_3;
    SeekSubscriber() seek_4;
    SeekSubscriber() seek_5;
    SeekSubscriber() seek_6;
    SeekSubscriber() seek_7;
    SeekSubscriber() seek_8;
    SeekSubscriber() seek_9;
    SeekSubscriber() seek_10;
    SeekSubscriber() seek_11;
    SeekSubscriber() seek_12;
    SeekSubscriber() seek_13;
    SeekSubscriber() seek_14;
    SeekSubscriber() seek_15;
    bit<48> client;
    bit<48> until;
    bit<8> chosen;
    bool known;

    apply {
        client = message.client_address ++ message.client_port;
        chosen = SUBSCRIBER_NONE;
        known = false;
        seek_0.apply(0, client, meta, chosen, known);
        seek_1.apply(1, client, meta, chosen, known);
        seek_2.apply(2, client, meta, chosen, known);
        seek_3.apply(3, client, meta, chosen, known);
        seek_4.apply(4, client, meta, chosen, known);
        seek_5.apply(5, client, meta, chosen, known);
        seek_6.apply(6, client, meta, chosen, known);
        seek_7.apply(7, client, meta, chosen, known);
        seek_8.apply(8, client, meta, chosen, known);
        seek_9.apply(9, client, meta, chosen, known);
        seek_10.apply(10, client, meta, chosen, known);
        seek_11.apply(11, client, meta, chosen, known);
        seek_12.apply(12, client, meta, chosen, known);
        seek_13.apply(13, client, meta, chosen, known);
        seek_14.apply(14, client, meta, chosen, known);
        seek_15.apply(15, client, meta, chosen, known);
        noted = chosen != SUBSCRIBER_NONE;
        if (noted) {
            until = 0;
            // Handle 0 ends a subscription.
            if (message.handle != 0) {
                until = meta.now + COORDINATION_SUBSCRIPTION_MICROSECONDS;
                group_subscribed_until.write(meta.group.index, until);
            }
            group_subscriber.write(
                meta.group.index * COORDINATION_SUBSCRIBERS + (bit<32>)chosen,
                client ++ message.handle ++ until
            );
        }
    }
}

// The reply to WATCH: the client gets the entries that come, and those that it asks for, if the
// ring has the first of them.
control AnswerWatch(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    PutConfiguration() put_configuration;
    Subscribe() subscribe;
    DropValue() drop_value;
    SendToClient() send_to_client;
    bit<64> oldest;
    bit<64> ringed;
    bit<64> asked;
    bool noted;

    apply {
        put_configuration.apply(hdr.message, meta);
        subscribe.apply(hdr.message, meta, noted);
        hdr.message.type = TYPE_REPLY;
        hdr.message.outcome = OUTCOME_DONE;
        if (!noted) {
            hdr.message.outcome = OUTCOME_FULL;
            coordination_events.count(EVENT_NO_SUBSCRIBER);
        }
        group_first.read(oldest, meta.group.index);
        ringed = meta.group.applied - (COORDINATION_RING - 1);
        // Numbers of the first entries of a founding wrap below 0 in generation 0 alone, which no
        // group has (rule 17).
        if (ringed > oldest) {
            oldest = ringed;
        }
        asked = hdr.message.number;
        if (asked != 0 && asked < oldest && RULE_COMPACTED) {
            hdr.message.outcome = OUTCOME_COMPACTED;
        } else if (asked != 0 && asked <= meta.group.applied) {
            meta.extra = meta.extra | EXTRA_WATCHED;
            meta.event_from = asked;
            meta.event_until = asked + (WATCHED_ENTRIES - 1);
            if (meta.group.applied < meta.event_until) {
                meta.event_until = meta.group.applied;
            }
            meta.event_client = hdr.message.client_address ++ hdr.message.client_port;
            meta.event_handle = hdr.message.handle;
        }
        hdr.message.kind = KIND_NONE;
        hdr.message.number = 0;
        hdr.message.record = oldest;
        hdr.message.token = 0;
        drop_value.apply(hdr);
        coordination_events.count(EVENT_ANSWERED);
        send_to_client.apply(hdr, meta);
    }
}

// The entry that was applied here goes to all subscribers.
control PushEntry(in bit<64> number, inout coordination_metadata_t meta) {
    bit<48> until;

    apply {
        group_subscribed_until.read(until, meta.group.index);
        if (until > meta.now) @unlikely {
            meta.extra = meta.extra | EXTRA_PUSHED;
            meta.event_from = number;
            meta.event_subscriber = 0;
        }
    }
}

// True if place `subscriber` has a subscriber; if not, goes on to the next.
control SkipSubscriber(inout coordination_metadata_t meta, inout bool found) {
    bit<128> stored;

    apply {
        if (!found && meta.event_subscriber < COORDINATION_SUBSCRIBERS) {
            group_subscriber.read(
                stored,
                meta.group.index * COORDINATION_SUBSCRIBERS + (bit<32>)meta.event_subscriber
            );
            meta.event_subscriber = meta.event_subscriber + 1;
            if (stored[47:0] > meta.now || !RULE_SUBSCRIPTION_ENDS) {
                found = stored[127:80] != 0;
                meta.event_client = stored[127:80];
                meta.event_handle = stored[79:48];
            }
        }
    }
}

// Finds the next subscriber, or that there is none left.
control NextSubscriber(inout coordination_metadata_t meta, out bool found) {
    SkipSubscriber() skip_0;
    SkipSubscriber() skip_1;
    SkipSubscriber() skip_2;
    SkipSubscriber() skip_3;
    SkipSubscriber() skip_4;
    SkipSubscriber() skip_5;
    SkipSubscriber() skip_6;
    SkipSubscriber() skip_7;
    SkipSubscriber() skip_8;
    SkipSubscriber() skip_9;
    SkipSubscriber() skip_10;
    SkipSubscriber() skip_11;
    SkipSubscriber() skip_12;
    SkipSubscriber() skip_13;
    SkipSubscriber() skip_14;
    SkipSubscriber() skip_15;

    apply {
        found = false;
        skip_0.apply(meta, found);
        skip_1.apply(meta, found);
        skip_2.apply(meta, found);
        skip_3.apply(meta, found);
        skip_4.apply(meta, found);
        skip_5.apply(meta, found);
        skip_6.apply(meta, found);
        skip_7.apply(meta, found);
        skip_8.apply(meta, found);
        skip_9.apply(meta, found);
        skip_10.apply(meta, found);
        skip_11.apply(meta, found);
        skip_12.apply(meta, found);
        skip_13.apply(meta, found);
        skip_14.apply(meta, found);
        skip_15.apply(meta, found);
    }
}

// Sends the message, the entry `event_from`, to the next who gets it. `kept` tells whether the ring
// has the entry; a client that misses one asks for it.
control SendEvent(
    in bool kept,
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta
) {
    NextSubscriber() next_subscriber;
    SendToClient() send_to_client;
    bool found;
    bool more;

    apply {
        found = true;
        if ((meta.extra & EXTRA_PUSHED) != 0) {
            next_subscriber.apply(meta, found);
            more = meta.event_subscriber < COORDINATION_SUBSCRIBERS;
        } else {
            more = meta.event_from < meta.event_until;
            meta.event_from = meta.event_from + 1;
        }
        if (!kept || !found || !more) {
            meta.extra = meta.extra & ~(EXTRA_PUSHED | EXTRA_WATCHED);
        }
        if (kept && found) {
            coordination_events.count(EVENT_PUSHED);
            hdr.message.type = TYPE_EVENT;
            hdr.message.client_address = meta.event_client[47:16];
            hdr.message.client_port = meta.event_client[15:0];
            hdr.message.handle = meta.event_handle;
            send_to_client.apply(hdr, meta);
        }
    }
}

#endif
