// The protocol of "Poster: In-Network Total Order Guarantees supporting State Machine Replication with
// P4 Programmable Switches" (Boughzala and Koldehofe, ICNP 2024) as printed: the leader of each group
// that a message addresses proposes a timestamp to all switches of all these groups, each of them
// acknowledges it to all others, and a switch that has acknowledgements of a majority of each group
// gives the message to its replica, with the greatest timestamp. An entry of the registers, keyed by
// the message's id, has one message at a time; nothing is lost and nothing fails.
//
// Left open there and added here, so that receivers can put messages into one order: proposals are
// numbered, a message is not decided before the own group's leader acknowledged each proposal, and
// the replica is told how many proposals of its leader came before.
//
// An acknowledgement bears the message, since the one that completes a majority becomes the message to
// the replica. A leader's proposal is its own acknowledgement.

struct metadata_t {
    // True of copies to the replica; of all others none is.
    bool decided;
    bit<64> final;
    bit<32> sequence;
    bit<32> known;
}

#include "message.p4"

// Messages that the registers have room for.
#define ENTRIES 65536
// Values of an entry: the proposals of two groups, acknowledged by members of two.
#define PROPOSALS 2
// Rid of the copy to the replica.
#define REPLICA 16

// Set by the configuration: the own group, the place among all switches, that of each group's leader,
// and the majority of a group.
register<bit<8>>(1) poster_group;
register<bit<8>>(1) poster_place;
register<bit<8>>(2) poster_leaders;
register<bit<32>>(1) poster_quorum;

register<bit<64>>(1) poster_clock;
// Number of the own group's last proposal that came.
register<bit<32>>(1) poster_known;
register<bit<32>>(ENTRIES) poster_id;
register<bit<64>>(ENTRIES) poster_final;
register<bit<32>>(ENTRIES) poster_sequence;
// Acknowledgements of each proposal by members of each group, and by the own group's leader.
register<bit<32>>(ENTRIES * 4) poster_acks;
register<bit<8>>(ENTRIES * PROPOSALS) poster_led;
// True when the message was given to the replica.
register<bit<1>>(ENTRIES) poster_done;

control SwitchIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    bit<8> own;
    bit<8> place;
    bit<8> leader;
    bit<32> quorum;
    bit<32> at;
    bit<32> id;
    bit<64> clock;
    bit<64> final;
    bit<32> known;
    bit<32> sequence;
    bit<32> count;
    bit<8> led;
    bit<1> done;
    bool whole;

    // Forgets what was at the entry before, when another message comes.
    action enter() {
        poster_id.write(at, hdr.message.id);
        poster_final.write(at, 0);
        poster_sequence.write(at, 0);
        poster_acks.write(at * 4, 0);
        poster_acks.write(at * 4 + 1, 0);
        poster_acks.write(at * 4 + 2, 0);
        poster_acks.write(at * 4 + 3, 0);
        poster_led.write(at * 2, 0);
        poster_led.write(at * 2 + 1, 0);
        poster_done.write(at, 0);
    }

    // Counts the acknowledgement of the proposal of `group` by the switch `from`, of the group `of`.
    action acknowledge(bit<32> group, bit<32> of, bit<8> from) {
        poster_acks.read(count, at * 4 + group * 2 + of);
        poster_acks.write(at * 4 + group * 2 + of, count + 1);
        if (from == leader) {
            poster_led.write(at * 2 + group, 1);
        }
    }

    // The proposal of `group` needs the acknowledgements of a majority of group `of`.
    action require(bit<32> group, bit<32> of) {
        poster_acks.read(count, at * 4 + group * 2 + of);
        whole = whole && count >= quorum;
    }

    action require_leader(bit<32> group) {
        poster_led.read(led, at * 2 + group);
        whole = whole && led == 1;
    }

    apply {
        if (!hdr.message.isValid()) {
            mark_to_drop(standard_metadata);
        } else @atomic {
            meta.decided = false;
            poster_group.read(own, 0);
            poster_place.read(place, 0);
            poster_leaders.read(leader, (bit<32>)own);
            poster_quorum.read(quorum, 0);
            poster_clock.read(clock, 0);
            poster_known.read(known, 0);
            at = hdr.message.id & (ENTRIES - 1);
            poster_id.read(id, at);
            if (id != hdr.message.id) {
                enter();
            }
            bit<8> origin = hdr.message.origin;
            bit<32> of = (bit<32>)own;
            bit<8> type = hdr.message.type;
            if (type == TYPE_START) {
                // The leader proposes.
                clock = clock + 1;
                known = known + 1;
                hdr.message.group = own;
                hdr.message.timestamp = clock;
                hdr.message.sequence = known;
                hdr.message.type = TYPE_PROP;
                origin = place;
            } else {
                if (hdr.message.timestamp > clock) {
                    clock = hdr.message.timestamp;
                }
                bit<8> first;
                poster_leaders.read(first, 1);
                if (origin >= first) {
                    of = 1;
                } else {
                    of = 0;
                }
                if (type == TYPE_PROP && hdr.message.group == own) {
                    known = hdr.message.sequence;
                }
                hdr.message.type = TYPE_ACK;
            }
            hdr.message.origin = place;
            poster_clock.write(0, clock);
            poster_known.write(0, known);
            poster_final.read(final, at);
            if (hdr.message.timestamp > final) {
                final = hdr.message.timestamp;
                poster_final.write(at, final);
            }
            poster_sequence.read(sequence, at);
            if (hdr.message.group == own && type != TYPE_ACK) {
                sequence = hdr.message.sequence;
                poster_sequence.write(at, sequence);
            }
            acknowledge((bit<32>)hdr.message.group, of, origin);
            if (type == TYPE_PROP) {
                // The own one, which goes to all others.
                acknowledge((bit<32>)hdr.message.group, (bit<32>)own, place);
            }
            whole = sequence != 0;
            if ((hdr.message.destinations & 1) == 1) {
                require(0, 0);
                require_leader(0);
            }
            if ((hdr.message.destinations & 2) == 2) {
                require(1, 1);
                require_leader(1);
            }
            if (hdr.message.destinations == 3) {
                require(0, 1);
                require(1, 0);
            }
            poster_done.read(done, at);
            meta.decided = whole && done == 0;
            if (meta.decided) {
                poster_done.write(at, 1);
            }
            meta.final = final;
            meta.sequence = sequence;
            meta.known = known;
            // Groups of copies: 1 to 3 the other switches of the groups addressed, 4 the replica,
            // 5 to 7 both.
            bit<16> copies = 0;
            if (type != TYPE_ACK) {
                copies = (bit<16>)hdr.message.destinations;
            }
            if (meta.decided) {
                copies = copies + 4;
            }
            standard_metadata.mcast_grp = copies;
            if (copies == 0) {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control SwitchEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    Target() target;

    apply {
        if (standard_metadata.egress_rid == REPLICA) {
            hdr.message.type = TYPE_DELIVER;
            hdr.message.timestamp = meta.final;
            hdr.message.sequence = meta.sequence;
            hdr.message.known = meta.known;
        }
        target.apply(hdr, standard_metadata);
    }
}

V1Switch(
    SwitchRead(),
    SwitchVerifyChecksum(),
    SwitchIngress(),
    SwitchEgress(),
    SwitchComputeChecksum(),
    SwitchWrite()
) main;
