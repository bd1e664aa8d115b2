// Leases of reads: rounds of promises, by which the answerer may answer alone (rule 14).

#ifndef STATEPLANE_COORDINATION_LEASE_P4
#define STATEPLANE_COORDINATION_LEASE_P4

#include "coordination_message.p4"
#include "events.p4"
#include "extra.p4"
#include "group.p4"
#include "metadata.p4"
#include "rules.p4"
#include "send.p4"

// A promise lasts so long from the round's arrival, a lease from its beginning, in µs: clocks
// may differ by 1 %.
#ifndef COORDINATION_PROMISE_MICROSECONDS
#define COORDINATION_PROMISE_MICROSECONDS 50000
#endif
#ifndef COORDINATION_LEASE_MICROSECONDS
#define COORDINATION_LEASE_MICROSECONDS 49000
#endif

// A round is due: the answerer asks the head, and by it all others.
control BeginRound(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    StartMessage() start_message;
    PutConfiguration() put_configuration;
    SendToSwitch() send_to_head;
    bit<48> blocked;

    apply {
        group_blocked_until.read(blocked, meta.group.index);
        // Who is the only member needs none.
        if (meta.group.answers && meta.group.place != PLACE_HEAD && meta.now >= blocked) {
            start_message.apply(TYPE_LEASE, (bit<16>)meta.group.index, hdr);
            put_configuration.apply(hdr.message, meta);
            hdr.message.client_address = meta.own_address;
            hdr.message.client_port = COORDINATION_UDP_PORT;
            hdr.message.send_time = meta.now;
            send_to_head.apply(hdr.message.chain_1, hdr, meta);
        } else {
            coordination_events.count(EVENT_TICK_IDLE);
        }
    }
}

// A round on its way along the chain: members promise, and the answerer has its lease when it
// comes back.
control HandleLease(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    AskPredecessor() ask_predecessor;
    SendToSwitch() send_to_successor;
    bit<48> leased;
    bit<32> promised_to;
    bit<48> promised;

    apply {
        if (hdr.message.newest > meta.group.applied) @unlikely {
            ask_predecessor.apply(hdr.message.newest, false, meta);
        }
        if (hdr.message.client_address == meta.own_address) {
            group_leased_until.read(leased, meta.group.index);
            if (meta.group.answers
                && hdr.message.send_time <= meta.now
                && hdr.message.send_time + COORDINATION_LEASE_MICROSECONDS > leased) {
                leased = hdr.message.send_time + COORDINATION_LEASE_MICROSECONDS;
                group_leased_until.write(meta.group.index, leased);
                coordination_events.count(EVENT_LEASE_GRANTED);
            } else {
                coordination_events.count(EVENT_LEASE_EXPIRED);
            }
        } else {
            group_promised_to.read(promised_to, meta.group.index);
            group_promised_until.read(promised, meta.group.index);
            if (promised_to != hdr.message.client_address
                && meta.now < promised
                && RULE_ONE_PROMISE) {
                coordination_events.count(EVENT_PROMISE_WITHHELD);
            } else if (meta.group.successor != 0) {
                promised = meta.now + COORDINATION_PROMISE_MICROSECONDS;
                group_promised_to.write(meta.group.index, hdr.message.client_address);
                group_promised_until.write(meta.group.index, promised);
                coordination_events.count(EVENT_PROMISED);
                send_to_successor.apply(meta.group.successor, hdr, meta);
            } else {
                coordination_events.count(EVENT_LEASE_EXPIRED);
            }
        }
    }
}

#endif
