// Replication of per-flow state to a chain-replicated store: the switch's half of
// docs/replication-protocol.md (RedPlane, SIGCOMM 2021). Numbers of rules refer to
// that page.
//
// A program puts four blocks around its own:
//
//   parser    ReplicationParser, then its own parser if parse_program is set
//   ingress   sets flow, key, shard, shared of packets that are `arriving`;
//             ReplicationIngressBefore;
//             its own processing if `process` is set, which reads `value` and, to
//             write, changes it and sets `write`;
//             ReplicationIngressAfter;
//             its own forwarding if `forward` is set (rule 13)
//   egress    ReplicationEgress
//   deparser  ReplicationDeparser, then its own
//
// and ReplicationVerifyChecksum and ReplicationComputeChecksum in those controls.
//
// Only packets that go to the store need the shard. A hash for it that stands under no
// condition but `arriving` is computed for those alone.
//
// Clones, digests, resubmission and recirculation, and register writes in egress, are
// refused when such a program is loaded (rule 14), as its packets may wait. A control
// annotated @side_effects_allowed may have them: there, do them only for packets that
// do not wait, or no longer. `mcast_grp` of a packet that waits is cleared, so choose
// it when forwarding.

#ifndef STATEPLANE_REPLICATION_P4
#define STATEPLANE_REPLICATION_P4

#ifdef REPLICATION_OFF
#include "unreplicated.p4"
#else

#include "flow_hash.p4"
#include "headers.p4"
#include "replication_message.p4"
#include "replication_rules.p4"

#ifndef REPLICATION_BUCKETS
#define REPLICATION_BUCKETS 16384
#endif

// Slots of one bucket; FindInBucket and ClaimInBucket are unrolled for this number. A flow
// has two buckets: it lies in the second one only if it found the first one full, so that
// nearly all are found as soon as in a table of single buckets.
#define REPLICATION_WAYS 4
#define REPLICATION_SLOTS (REPLICATION_BUCKETS * REPLICATION_WAYS)
#define REPLICATION_SHARDS 256

// Ports that no link faces: where the packet generator's probes come in.
const bit<9> GENERATOR_PORT = 509;

// Mirror session HOLD_SESSION + n holds the copy of transmission n; the last one
// is used for all later ones. Sessions truncate to OUTER_BYTES + MESSAGE_BYTES
// (lease requests) or that and STATE_BYTES (writes).
const bit<32> HOLD_SESSION_LEASE = 16;
const bit<32> HOLD_SESSION_WRITE = 32;
const bit<16> HOLD_SESSIONS = 8;
const bit<32> RENEWAL_SESSION = 15;

// A lease request that was transmitted so often without an answer is given up.
const bit<16> LEASE_ATTEMPTS = 16;

// A slot that no packet used for so long, and whose writes are acknowledged, may be
// claimed by another flow although its lease is valid: the claim ends with the slot, and
// the store gets the lease back when it recalls it (rule 19). In µs.
#ifndef REPLICATION_IDLE_MICROSECONDS
#define REPLICATION_IDLE_MICROSECONDS 500000
#endif

// For so long, in µs, after a packet had to go to the store and back, the packets of its
// flow behind it go there too while it is on its way, so that none overtakes it (rule 26).
#ifndef REPLICATION_ORDER_MICROSECONDS
#define REPLICATION_ORDER_MICROSECONDS 2000
#endif

// A slot whose lease request or write went unanswered for so long may be claimed
// by another flow, in µs.
const bit<48> UNANSWERED_MICROSECONDS = 10000000;

// Metadata kept by the copy that becomes a renewal.
#define FIELD_LIST_RENEWAL 1

const bit<8> STATUS_FREE = 0;
// Claimed; no lease was ever granted for this claim.
const bit<8> STATUS_PENDING = 1;
const bit<8> STATUS_EXCLUSIVE = 2;
const bit<8> STATUS_SHARED = 3;
// The lease was given up, and its epoch never counts again; writes made under it may
// still be unacknowledged.
const bit<8> STATUS_RECALLED = 4;

// Indices of `replication_events`.
const bit<32> EVENT_BAD_MESSAGE = 0;
const bit<32> EVENT_FOREIGN_SWITCH = 1;
const bit<32> EVENT_FOREIGN_TYPE = 2;
const bit<32> EVENT_OTHER_INCARNATION = 3;
const bit<32> EVENT_OTHER_CHAIN_EPOCH = 4;
const bit<32> EVENT_STALE_REPLY = 5;
const bit<32> EVENT_DUPLICATE_PACKET = 6;
const bit<32> EVENT_REFUSED = 7;
const bit<32> EVENT_FENCED = 8;
const bit<32> EVENT_GRANT_EXPIRED = 9;
const bit<32> EVENT_TABLE_FULL = 10;
const bit<32> EVENT_TOO_BIG = 11;
const bit<32> EVENT_UNKNOWN_SHARD = 12;
const bit<32> EVENT_WRITE_UNDER_SHARED = 13;
const bit<32> EVENT_RETRANSMITTED = 14;
const bit<32> EVENT_LEASE_GIVEN_UP = 15;
const bit<32> EVENT_INSTALLED = 16;
const bit<32> EVENT_LEASE_REQUEST = 17;
const bit<32> EVENT_WRITE_REQUEST = 18;
const bit<32> EVENT_RENEW_REQUEST = 19;
const bit<32> EVENT_RELEASED = 20;
const bit<32> EVENT_WRONG_PORT = 21;
const bit<32> EVENT_RECALLED = 22;
const bit<32> EVENT_KEPT_IN_ORDER = 23;
const bit<32> EVENTS = 32;

error {
    // The state on board is not REPLICATION_STATE_BITS wide.
    ReplicationStateLength
}

// What a slot holds while a packet is in the pipeline.
struct replication_slot_t {
    bit<32> index;
    // First slot of the second bucket, of a key that has no slot; `index` is that of the
    // first bucket.
    bit<32> second;
    bit<8> status;
    bit<32> claim;
    bit<32> epoch;
    bit<48> deadline;
    bit<32> sequence;
    bit<32> acknowledged;
}

@side_effects_wait
struct replication_metadata_t {
    // For the program's parser: whether its headers follow.
    bool parse_program;
    // For the program's ingress: an ordinary packet, whose flow it is to name.
    bool arriving;

    // From the program: whether the packet belongs to a replicated flow, which
    // (never 0), in which shard, and whether a shared lease is enough, because this
    // packet will not write (rule 18).
    bool flow;
    @field_list(FIELD_LIST_RENEWAL)
    bit<128> key;
    @field_list(FIELD_LIST_RENEWAL)
    bit<16> shard;
    bool shared;

    // For the program: run the processing; and, after ReplicationIngressAfter,
    // forward the packet, which may have been processed before and waited until
    // its write was durable.
    bool process;
    bool forward;
    // The flow's state, and whether the program wrote it.
    bit<REPLICATION_STATE_BITS> value;
    bool write;

    // The rest is the library's own.
    @field_list(FIELD_LIST_RENEWAL)
    bit<8> renewal;
    // The lease is to be renewed, unless the packet writes, which renews it too.
    bool renews;
    bit<48> now;
    bit<32> incarnation;
    bit<32> switch_id;
    bool found;
    // Packets of the flow that came before this one are on their way to the store and back.
    bool behind;
    // An output packet came back.
    bool release;
    replication_slot_t slot;
    // A message is to be sent; a copy of it is to be held for retransmission; its
    // packet is to be left out.
    bool send;
    bool hold;
    bool without_packet;
    // Length of the frame without the outer headers, in bytes.
    bit<16> inner_length;
    // The way to the shard's chain.
    bool chain_known;
    bit<9> chain_port;
    bit<16> path_mtu;
    bit<32> chain_epoch;
    bit<48> chain_mac;
    bit<48> own_mac;
    bit<32> chain_address;
    bit<32> own_address;
}

// Drawn anew by the host at each start, before the first packet (rule 6).
register<bit<32>>(1) replication_incarnation;
// When the chain of a shard was last heard (rule 17), in µs of the switch clock.
register<bit<48>>(REPLICATION_SHARDS) replication_heard;
register<bit<32>>(1) replication_claims;

// Flow slots. A slot whose key is 0 is free.
register<bit<128>>(REPLICATION_SLOTS) slot_key;
register<bit<8>>(REPLICATION_SLOTS) slot_status;
register<bit<16>>(REPLICATION_SLOTS) slot_shard;
register<bit<32>>(REPLICATION_SLOTS) slot_claim;
register<bit<32>>(REPLICATION_SLOTS) slot_epoch;
register<bit<48>>(REPLICATION_SLOTS) slot_deadline;
register<bit<32>>(REPLICATION_SLOTS) slot_period;
register<bit<32>>(REPLICATION_SLOTS) slot_sequence;
register<bit<32>>(REPLICATION_SLOTS) slot_acknowledged;
register<bit<REPLICATION_STATE_BITS>>(REPLICATION_SLOTS) slot_value;
// Number of the last packet request.
register<bit<32>>(REPLICATION_SLOTS) slot_request;
// Request number of the lease request whose copy is held, 0 if there is none.
register<bit<32>>(REPLICATION_SLOTS) slot_asked;
// Packets that came back: the highest request number, and a bit for each of the
// 128 numbers from it downwards (rule 4).
register<bit<32>>(REPLICATION_SLOTS) slot_returned;
register<bit<128>>(REPLICATION_SLOTS) slot_window;
// Rule 26: number of the last packet request on its way whose packet is still to be
// processed, and of the last whose packet is to be released, 0 if there is none; and until
// when packets line up behind them.
register<bit<32>>(REPLICATION_SLOTS) slot_unprocessed;
register<bit<32>>(REPLICATION_SLOTS) slot_unreleased;
register<bit<48>>(REPLICATION_SLOTS) slot_line;
register<bit<48>>(REPLICATION_SLOTS) slot_renewed;
register<bit<48>>(REPLICATION_SLOTS) slot_used;

counter(EVENTS, CounterType.packets) replication_events;

parser ReplicationParser(
    packet_in packet,
    out replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    state start {
        meta.parse_program = true;
        meta.arriving = meta.renewal == 0;
        transition select(packet.lookahead<ethernet_t>().ether_type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_GENERATED: generated;
            default: accept;
        }
    }

    state generated {
        transition select(standard_metadata.ingress_port) {
            GENERATOR_PORT: probe;
            default: accept;
        }
    }

    state probe {
        meta.parse_program = false;
        meta.arriving = false;
        packet.extract(hdr.ethernet);
        packet.extract(hdr.probe);
        transition accept;
    }

    state ipv4 {
        replication_front_t front = packet.lookahead<replication_front_t>();
        transition select(front.version_and_ihl, front.fragment, front.protocol) {
            (0x45, 0, IP_PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state udp {
        replication_udp_front_t front = packet.lookahead<replication_udp_front_t>();
        transition select(front.source_port, front.destination_port) {
            (REPLICATION_UDP_PORT, REPLICATION_UDP_PORT): message;
            default: accept;
        }
    }

    state message {
        meta.parse_program = false;
        meta.arriving = false;
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        packet.extract(hdr.message);
        transition select(hdr.message.state_length) {
            0: on_board;
            STATE_BYTES: with_state;
            default: bad_state;
        }
    }

    state with_state {
        packet.extract(hdr.state);
        transition on_board;
    }

    state bad_state {
        verify(false, error.ReplicationStateLength);
        // The line above has rejected; BMv2 takes no explicit `reject`.
        transition accept;
    }

    state on_board {
        meta.parse_program = (hdr.message.flags & FLAG_PACKET) != 0;
        transition accept;
    }
}

control ReplicationDeparser(packet_out packet, in replication_headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.message);
        packet.emit(hdr.state);
    }
}

// A message that was damaged on the way is not believed: `checksum_error` tells. The packet
// on board has checksums of its own.
control ReplicationVerifyChecksum(inout replication_headers_t hdr) {
    apply {
        verify_checksum(
            hdr.ipv4.isValid(),
            {
                hdr.ipv4.version,
                hdr.ipv4.ihl,
                hdr.ipv4.diffserv,
                hdr.ipv4.total_length,
                hdr.ipv4.identification,
                hdr.ipv4.flags,
                hdr.ipv4.fragment_offset,
                hdr.ipv4.ttl,
                hdr.ipv4.protocol,
                hdr.ipv4.source,
                hdr.ipv4.destination
            },
            hdr.ipv4.checksum,
            HashAlgorithm.csum16
        );
        verify_checksum(
            hdr.message.isValid() && !hdr.state.isValid() && RULE_MESSAGE_CHECKSUM,
            {
                hdr.message.version,
                hdr.message.type,
                hdr.message.code,
                hdr.message.flags,
                hdr.message.chain_epoch,
                hdr.message.shard,
                hdr.message.switch_id,
                hdr.message.incarnation,
                hdr.message.claim,
                hdr.message.request,
                hdr.message.send_time,
                hdr.message.ingress_port,
                hdr.message.key,
                hdr.message.lease_epoch,
                hdr.message.sequence,
                hdr.message.parked,
                hdr.message.period,
                hdr.message.attempt,
                hdr.message.state_length
            },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        verify_checksum(
            hdr.message.isValid() && hdr.state.isValid() && RULE_MESSAGE_CHECKSUM,
            {
                hdr.message.version,
                hdr.message.type,
                hdr.message.code,
                hdr.message.flags,
                hdr.message.chain_epoch,
                hdr.message.shard,
                hdr.message.switch_id,
                hdr.message.incarnation,
                hdr.message.claim,
                hdr.message.request,
                hdr.message.send_time,
                hdr.message.ingress_port,
                hdr.message.key,
                hdr.message.lease_epoch,
                hdr.message.sequence,
                hdr.message.parked,
                hdr.message.period,
                hdr.message.attempt,
                hdr.message.state_length,
                hdr.state.value
            },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
    }
}

control ReplicationComputeChecksum(inout replication_headers_t hdr) {
    apply {
        update_checksum(
            hdr.ipv4.isValid(),
            {
                hdr.ipv4.version,
                hdr.ipv4.ihl,
                hdr.ipv4.diffserv,
                hdr.ipv4.total_length,
                hdr.ipv4.identification,
                hdr.ipv4.flags,
                hdr.ipv4.fragment_offset,
                hdr.ipv4.ttl,
                hdr.ipv4.protocol,
                hdr.ipv4.source,
                hdr.ipv4.destination
            },
            hdr.ipv4.checksum,
            HashAlgorithm.csum16
        );
        update_checksum(
            hdr.message.isValid() && !hdr.state.isValid(),
            {
                hdr.message.version,
                hdr.message.type,
                hdr.message.code,
                hdr.message.flags,
                hdr.message.chain_epoch,
                hdr.message.shard,
                hdr.message.switch_id,
                hdr.message.incarnation,
                hdr.message.claim,
                hdr.message.request,
                hdr.message.send_time,
                hdr.message.ingress_port,
                hdr.message.key,
                hdr.message.lease_epoch,
                hdr.message.sequence,
                hdr.message.parked,
                hdr.message.period,
                hdr.message.attempt,
                hdr.message.state_length
            },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        update_checksum(
            hdr.message.isValid() && hdr.state.isValid(),
            {
                hdr.message.version,
                hdr.message.type,
                hdr.message.code,
                hdr.message.flags,
                hdr.message.chain_epoch,
                hdr.message.shard,
                hdr.message.switch_id,
                hdr.message.incarnation,
                hdr.message.claim,
                hdr.message.request,
                hdr.message.send_time,
                hdr.message.ingress_port,
                hdr.message.key,
                hdr.message.lease_epoch,
                hdr.message.sequence,
                hdr.message.parked,
                hdr.message.period,
                hdr.message.attempt,
                hdr.message.state_length,
                hdr.state.value
            },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
    }
}

// Looks the key up in the four ways of a bucket, which begins with the slot `first`.
control FindInBucket(inout replication_metadata_t meta, in bit<32> first) {
    bit<128> stored;

    apply {
        meta.slot.index = first;
        slot_key.read(stored, first);
        meta.found = stored == meta.key || (!RULE_KEY_COMPARISON && stored != 0);
        if (!meta.found) {
            meta.slot.index = first + 1;
            slot_key.read(stored, meta.slot.index);
            meta.found = stored == meta.key;
            if (!meta.found) {
                meta.slot.index = first + 2;
                slot_key.read(stored, meta.slot.index);
                meta.found = stored == meta.key;
                if (!meta.found) {
                    meta.slot.index = first + 3;
                    slot_key.read(stored, meta.slot.index);
                    meta.found = stored == meta.key;
                }
            }
        }
    }
}

// Looks the key up in its two buckets and loads the slot.
control FindSlot(inout replication_metadata_t meta) {
    FlowHash() flow_hash;
    FirstBucket() first_bucket;
    SecondBucket() second_bucket;
    FindInBucket() find_in_first;
    FindInBucket() find_in_second;
    bit<64> mixed;
    bit<32> first;
    bit<32> second;

    apply {
        flow_hash.apply(meta.key, mixed);
        first_bucket.apply(mixed, REPLICATION_BUCKETS, first);
        first = first * REPLICATION_WAYS;
        find_in_first.apply(meta, first);
        if (!meta.found) @unlikely {
            second_bucket.apply(mixed, REPLICATION_BUCKETS, second);
            second = second * REPLICATION_WAYS;
            find_in_second.apply(meta, second);
            if (!meta.found) {
                meta.slot.index = first;
                meta.slot.second = second;
            }
        }
        if (meta.found) {
            slot_status.read(meta.slot.status, meta.slot.index);
            slot_claim.read(meta.slot.claim, meta.slot.index);
            slot_epoch.read(meta.slot.epoch, meta.slot.index);
            slot_deadline.read(meta.slot.deadline, meta.slot.index);
            slot_sequence.read(meta.slot.sequence, meta.slot.index);
            slot_acknowledged.read(meta.slot.acknowledged, meta.slot.index);
            slot_value.read(meta.value, meta.slot.index);
        }
    }
}

// Whether a slot may be given to another flow: it is free; or its lease has run
// out or is idle, and all its writes are acknowledged; or it waited too long for an
// answer.
control MayClaim(in bit<32> index, in bit<48> now, out bool free) {
    bit<128> stored;
    bit<8> status;
    bit<48> deadline;
    bit<48> used;
    bit<32> sequence;
    bit<32> acknowledged;

    apply {
        slot_key.read(stored, index);
        slot_status.read(status, index);
        slot_deadline.read(deadline, index);
        slot_used.read(used, index);
        slot_sequence.read(sequence, index);
        slot_acknowledged.read(acknowledged, index);
        free = stored == 0
            || (status != STATUS_PENDING
                && sequence == acknowledged
                && (deadline <= now || used + REPLICATION_IDLE_MICROSECONDS <= now))
            || (deadline <= now && used + UNANSWERED_MICROSECONDS < now);
    }
}

// Looks for a slot to claim in the bucket that begins with the slot `first`.
control ClaimInBucket(inout replication_metadata_t meta, in bit<32> first) {
    MayClaim() may_claim;

    apply {
        meta.slot.index = first;
        may_claim.apply(first, meta.now, meta.found);
        if (!meta.found) {
            meta.slot.index = first + 1;
            may_claim.apply(meta.slot.index, meta.now, meta.found);
        }
        if (!meta.found) {
            meta.slot.index = first + 2;
            may_claim.apply(meta.slot.index, meta.now, meta.found);
        }
        if (!meta.found) {
            meta.slot.index = first + 3;
            may_claim.apply(meta.slot.index, meta.now, meta.found);
        }
    }
}

// Claims a slot for a key that FindSlot did not find, in its first bucket if one may be
// claimed there, else in its second. `found` tells whether there was one.
control ClaimSlot(inout replication_metadata_t meta) {
    ClaimInBucket() claim_in_first;
    ClaimInBucket() claim_in_second;
    bit<32> first;

    apply {
        first = meta.slot.index;
        claim_in_first.apply(meta, first);
        if (!meta.found) {
            claim_in_second.apply(meta, meta.slot.second);
        }
        if (meta.found) {
            replication_claims.read(meta.slot.claim, 0);
            meta.slot.claim = meta.slot.claim + 1;
            replication_claims.write(0, meta.slot.claim);
            meta.slot.status = STATUS_PENDING;
            meta.slot.epoch = 0;
            meta.slot.deadline = 0;
            meta.slot.sequence = 0;
            meta.slot.acknowledged = 0;
            slot_key.write(meta.slot.index, meta.key);
            slot_status.write(meta.slot.index, STATUS_PENDING);
            slot_shard.write(meta.slot.index, meta.shard);
            slot_claim.write(meta.slot.index, meta.slot.claim);
            slot_epoch.write(meta.slot.index, 0);
            slot_deadline.write(meta.slot.index, 0);
            slot_period.write(meta.slot.index, 0);
            slot_sequence.write(meta.slot.index, 0);
            slot_acknowledged.write(meta.slot.index, 0);
            slot_value.write(meta.slot.index, 0);
            slot_request.write(meta.slot.index, 0);
            slot_asked.write(meta.slot.index, 0);
            slot_returned.write(meta.slot.index, 0);
            slot_window.write(meta.slot.index, 1);
            slot_unprocessed.write(meta.slot.index, 0);
            slot_unreleased.write(meta.slot.index, 0);
            slot_line.write(meta.slot.index, 0);
            slot_renewed.write(meta.slot.index, 0);
            slot_used.write(meta.slot.index, meta.now);
        }
    }
}

// Tells whether a returned packet with this request number is the first of its
// number (rule 4), and notes it.
control ReturnedOnce(in bit<32> index, in bit<32> request, out bool first) {
    bit<32> highest;
    bit<128> window;
    bit<32> distance;

    apply {
        slot_returned.read(highest, index);
        slot_window.read(window, index);
        distance = request - highest;
        first = true;
        if (distance == 0 || distance[31:31] == 1) {
            distance = highest - request;
            if (distance >= 128) {
                first = false;
            } else {
                first = ((window >> distance[7:0]) & 1) == 0;
                window = window | ((bit<128>)1 << distance[7:0]);
            }
        } else {
            if (distance >= 128) {
                window = 1;
            } else {
                window = (window << distance[7:0]) | 1;
            }
            slot_returned.write(index, request);
        }
        slot_window.write(index, window);
        if (!RULE_RELEASE_ONCE) {
            first = true;
        }
    }
}

// Takes a packet that came back out of its flow's line, which ends with the last one
// (rule 26).
control LeaveLine(in bit<32> index, in bit<32> request) {
    bit<32> unprocessed;
    bit<32> unreleased;

    apply {
        slot_unprocessed.read(unprocessed, index);
        slot_unreleased.read(unreleased, index);
        if (request == unprocessed) {
            unprocessed = 0;
            slot_unprocessed.write(index, 0);
        }
        if (request == unreleased) {
            unreleased = 0;
            slot_unreleased.write(index, 0);
        }
        if (unprocessed == 0 && unreleased == 0) {
            slot_line.write(index, 0);
        }
    }
}

// Fills the fields that all requests of a slot share. The message's state stays
// invalid.
control StartRequest(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    in bit<8> type,
    in bit<16> ingress_port
) {
    bit<32> request;

    apply {
        slot_request.read(request, meta.slot.index);
        request = request + 1;
        // 0 says that there is none.
        if (request == 0) @unlikely {
            request = 1;
        }
        slot_request.write(meta.slot.index, request);
        hdr.message.setValid();
        hdr.message.version = REPLICATION_VERSION;
        hdr.message.type = type;
        hdr.message.flags = 0;
        hdr.message.shard = meta.shard;
        hdr.message.code = 0;
        hdr.message.claim = meta.slot.claim;
        hdr.message.request = request;
        hdr.message.ingress_port = ingress_port;
        hdr.message.key = meta.key;
        hdr.message.lease_epoch = meta.slot.epoch;
        hdr.message.sequence = meta.slot.sequence;
        hdr.message.parked = 0;
        hdr.message.period = 0;
        hdr.message.attempt = 0;
        hdr.message.state_length = 0;
        hdr.state.setInvalid();
        meta.send = true;
    }
}

// Asks for a lease with the packet on board. One copy at a time waits for
// retransmission.
control RequestLease(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    StartRequest() start_request;
    bit<32> asked;

    apply {
        start_request.apply(hdr, meta, TYPE_LEASE_REQUEST, (bit<16>)standard_metadata.ingress_port);
        // A lease that was given up is named, so that its grant is not repeated.
        if (meta.slot.status != STATUS_RECALLED) {
            hdr.message.lease_epoch = 0;
            hdr.message.sequence = 0;
        }
        // A packet that is behind others asks for what the slot has.
        if (meta.shared && !(meta.behind && meta.slot.status == STATUS_EXCLUSIVE)) {
            hdr.message.flags = FLAG_SHARED;
        }
        slot_asked.read(asked, meta.slot.index);
        if (asked == 0) {
            slot_asked.write(meta.slot.index, hdr.message.request);
            meta.hold = true;
        }
        replication_events.count(EVENT_LEASE_REQUEST);
    }
}

// Moves the deadline (rule 1). Shrinking by 1/512 is sound while all clock rates
// are within 900 ppm of true time.
control ExtendLease(inout replication_metadata_t meta, in replication_t message, in bool replace) {
    bit<48> span;
    bit<48> deadline;

    apply {
        span = (bit<48>)message.parked + (bit<48>)message.period;
        deadline = message.send_time + span - (span >> 9);
        if (message.period != 0 && (replace || deadline > meta.slot.deadline)) {
            meta.slot.deadline = deadline;
            slot_deadline.write(meta.slot.index, deadline);
            slot_period.write(meta.slot.index, message.period);
        }
    }
}

// A message from the store, for this switch and of a slot that it holds.
control HandleReply(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ExtendLease() extend_grant;
    ExtendLease() extend_held;
    LeaveLine() leave_line;
    ReturnedOnce() returned_once;
    bool newer;
    bool present;
    bool recalled;
    bool first;
    bool on_board;
    bit<32> asked;
    bit<32> held;
    bit<32> difference;

    action free_slot() {
        slot_key.write(meta.slot.index, 0);
        slot_status.write(meta.slot.index, STATUS_FREE);
        slot_claim.write(meta.slot.index, 0);
        slot_asked.write(meta.slot.index, 0);
    }

    apply {
        on_board = (hdr.message.flags & FLAG_PACKET) != 0;
        if (on_board) {
            leave_line.apply(meta.slot.index, hdr.message.request);
        }
        difference = hdr.message.lease_epoch - meta.slot.epoch;
        present = meta.slot.status != STATUS_PENDING && difference == 0;
        recalled = meta.slot.status == STATUS_RECALLED;
        newer = meta.slot.status == STATUS_PENDING || (difference != 0 && difference[31:31] == 0);

        if (hdr.message.type == TYPE_LEASE_REPLY) {
            // What answers a request made under the present epoch is not older than that,
            // however far the numbers are apart.
            slot_asked.read(asked, meta.slot.index);
            if (asked != 0 && difference != 0) {
                asked = hdr.message.request - asked;
                newer = newer || asked[31:31] == 0;
            }
            if (!newer && (!present || recalled)) {
                replication_events.count(EVENT_STALE_REPLY);
            } else if (!hdr.state.isValid()) {
                replication_events.count(EVENT_BAD_MESSAGE);
            } else {
                slot_asked.write(meta.slot.index, 0);
                if (newer || !RULE_INSTALL_ONCE) {
                    meta.slot.epoch = hdr.message.lease_epoch;
                    meta.slot.sequence = hdr.message.sequence;
                    meta.slot.acknowledged = hdr.message.sequence;
                    meta.value = hdr.state.value;
                    slot_epoch.write(meta.slot.index, meta.slot.epoch);
                    slot_sequence.write(meta.slot.index, meta.slot.sequence);
                    slot_acknowledged.write(meta.slot.index, meta.slot.acknowledged);
                    slot_value.write(meta.slot.index, meta.value);
                    replication_events.count(EVENT_INSTALLED);
                }
                if ((hdr.message.flags & FLAG_SHARED) != 0) {
                    meta.slot.status = STATUS_SHARED;
                } else {
                    meta.slot.status = STATUS_EXCLUSIVE;
                }
                slot_status.write(meta.slot.index, meta.slot.status);
                extend_grant.apply(meta, hdr.message, newer);
                if (on_board) {
                    if (meta.now >= meta.slot.deadline && RULE_LEASE_DEADLINE) {
                        replication_events.count(EVENT_GRANT_EXPIRED);
                    } else {
                        returned_once.apply(meta.slot.index, hdr.message.request, first);
                        if (first) {
                            meta.process = true;
                            standard_metadata.ingress_port = (bit<9>)hdr.message.ingress_port;
                        } else {
                            replication_events.count(EVENT_DUPLICATE_PACKET);
                        }
                    }
                }
            }
        } else if (hdr.message.type == TYPE_REFUSAL) {
            replication_events.count(EVENT_REFUSED);
            if (hdr.message.code == CODE_FENCED) {
                // Fences the epoch that the request bore, not a later grant of
                // the same claim. One that was given up and left nothing unwritten may
                // have asked again.
                if (meta.slot.status != STATUS_PENDING
                    && hdr.message.sequence == meta.slot.epoch
                    && !(recalled && meta.slot.sequence == meta.slot.acknowledged)) {
                    replication_events.count(EVENT_FENCED);
                    free_slot();
                }
            } else if (hdr.message.code == CODE_NO_RECORD
                || hdr.message.code == CODE_POOL_EXHAUSTED
                || hdr.message.code == CODE_BAD_STATE
                || hdr.message.code == CODE_STORE_FULL
                || hdr.message.code == CODE_NOT_WRITABLE
                || hdr.message.code == CODE_QUOTA_EXCEEDED) {
                free_slot();
            }
        } else if (!present) {
            replication_events.count(EVENT_STALE_REPLY);
        } else {
            // WRITE_REPLY or RENEW_REPLY. What the claim did not write cannot be
            // acknowledged to it.
            held = hdr.message.sequence;
            difference = meta.slot.sequence - held;
            if (difference[31:31] == 1) {
                held = meta.slot.sequence;
            }
            difference = held - meta.slot.acknowledged;
            if (difference != 0 && difference[31:31] == 0) {
                meta.slot.acknowledged = held;
                slot_acknowledged.write(meta.slot.index, meta.slot.acknowledged);
            }
            if (!recalled) {
                extend_held.apply(meta, hdr.message, false);
            }
            if (on_board) {
                returned_once.apply(meta.slot.index, hdr.message.request, first);
                if (first) {
                    meta.release = true;
                    standard_metadata.ingress_port = (bit<9>)hdr.message.ingress_port;
                    replication_events.count(EVENT_RELEASED);
                } else {
                    replication_events.count(EVENT_DUPLICATE_PACKET);
                }
            }
        }
    }
}

// The store asks for a lease because another switch needs it: it ends at once, and
// the answer tells the last write made under it, for which the store waits (rule 19).
// A claim that has no slot uses no lease. A grant that is still on its way is asked for
// again when it has come.
control HandleRecall(inout replication_headers_t hdr, inout replication_metadata_t meta) {
    bool present;

    apply {
        present = meta.found
            && meta.slot.status != STATUS_PENDING
            && hdr.message.lease_epoch == meta.slot.epoch;
        if (present) {
            hdr.message.sequence = meta.slot.sequence;
            if (RULE_RECALL_STOPS) {
                slot_status.write(meta.slot.index, STATUS_RECALLED);
                slot_deadline.write(meta.slot.index, 0);
            }
        }
        if (present || !meta.found) {
            hdr.message.type = TYPE_RELEASE_REQUEST;
            hdr.message.flags = 0;
            hdr.message.state_length = 0;
            hdr.state.setInvalid();
            meta.without_packet = true;
            meta.send = true;
            replication_events.count(EVENT_RECALLED);
        }
    }
}

// A held copy came back: transmit it again unless it was answered (paper §5.2).
control HandleHeldCopy(inout replication_headers_t hdr, inout replication_metadata_t meta) {
    bit<32> asked;
    bit<32> unacknowledged;

    apply {
        if (hdr.message.type == TYPE_WRITE_REQUEST) {
            // Only the copy of the last write: it carries the whole state.
            unacknowledged = hdr.message.sequence - meta.slot.acknowledged;
            meta.send = (meta.slot.status == STATUS_EXCLUSIVE
                || meta.slot.status == STATUS_RECALLED)
                && hdr.message.lease_epoch == meta.slot.epoch
                && hdr.message.sequence == meta.slot.sequence
                && unacknowledged != 0
                && unacknowledged[31:31] == 0;
        } else {
            slot_asked.read(asked, meta.slot.index);
            if (asked == hdr.message.request) {
                if (hdr.message.attempt < LEASE_ATTEMPTS) {
                    meta.send = true;
                } else {
                    replication_events.count(EVENT_LEASE_GIVEN_UP);
                    slot_asked.write(meta.slot.index, 0);
                }
            }
        }
        if (meta.send) {
            hdr.message.attempt = hdr.message.attempt + 1;
            meta.hold = true;
            replication_events.count(EVENT_RETRANSMITTED);
        }
    }
}

control ReplicationIngressBefore(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    FindSlot() find_slot;
    ClaimSlot() claim_slot;
    RequestLease() request_lease;
    StartRequest() start_renewal;
    HandleReply() handle_reply;
    HandleRecall() handle_recall;
    HandleHeldCopy() handle_held_copy;
    bit<32> period;
    bit<48> renewed;
    bit<48> line;
    bit<32> unprocessed;
    bit<32> unreleased;
    bit<16> outer;
    bool whole = false;
    bool held = false;
    bool stranger;

    action set_identity(bit<32> switch_id, bit<32> address, bit<48> mac) {
        meta.switch_id = switch_id;
        meta.own_address = address;
        meta.own_mac = mac;
    }

    // The switch's own addresses in the protocol network.
    table replication_identity {
        actions = { set_identity; }
        default_action = set_identity(0, 0, 0);
    }

    // `mtu` counts the IPv4 datagram, as on the interface (rule 15).
    action chain(bit<32> address, bit<48> mac, bit<9> port, bit<32> epoch, bit<16> mtu) {
        meta.chain_known = true;
        meta.chain_address = address;
        meta.chain_mac = mac;
        meta.chain_port = port;
        meta.chain_epoch = epoch;
        meta.path_mtu = mtu;
    }

    action unknown_shard() {
        meta.chain_known = false;
    }

    // Where the head of each shard's chain is.
    table replication_shards {
        key = { meta.shard: exact; }
        actions = { chain; unknown_shard; }
        default_action = unknown_shard();
        size = REPLICATION_SHARDS;
    }

    apply {
        meta.now = standard_metadata.ingress_global_timestamp;
        meta.process = false;
        meta.release = false;
        meta.forward = false;
        meta.write = false;
        meta.send = false;
        meta.hold = false;
        meta.renews = false;
        meta.without_packet = false;
        meta.found = false;
        meta.behind = false;

        meta.inner_length = (bit<16>)standard_metadata.packet_length;
        if (hdr.probe.isValid()) {
            meta.shard = hdr.probe.shard;
        } else if (hdr.message.isValid()) {
            meta.key = hdr.message.key;
            meta.shard = hdr.message.shard;
            outer = OUTER_BYTES + MESSAGE_BYTES;
            if (hdr.state.isValid()) {
                outer = outer + STATE_BYTES;
            }
            // A message's frame is too long to be padded, so all lengths agree.
            whole = hdr.ipv4.total_length == meta.inner_length - 14
                && hdr.udp.length == meta.inner_length - 34;
            meta.inner_length = meta.inner_length - outer;
            whole = whole && (meta.inner_length == 0 || (hdr.message.flags & FLAG_PACKET) != 0);
        }
        if (meta.arriving) {
            if (meta.flow) {
                find_slot.apply(meta);
                held = meta.found
                    && meta.slot.status != STATUS_PENDING
                    && (meta.shared || meta.slot.status != STATUS_SHARED)
                    && (meta.now < meta.slot.deadline || !RULE_LEASE_DEADLINE);
                if (held) {
                    slot_line.read(line, meta.slot.index);
                    meta.behind = meta.now < line && RULE_RELEASE_ORDER;
                } else @unlikely {
                    // The packet asks for a lease, below.
                }
            } else {
                meta.process = true;
            }
        }
        // Of packets of no flow, and under a shared lease, nothing else is sent.
        if (!meta.process && (!held || meta.slot.status != STATUS_SHARED || meta.behind)) {
            if (held) {
                // One read costs less than the program's hash.
                slot_shard.read(meta.shard, meta.slot.index);
            }
            replication_identity.apply();
            replication_incarnation.read(meta.incarnation, 0);
            replication_shards.apply();
        }
        if (meta.behind) @unlikely {
            // What does not fit into a request had better overtake than be lost.
            meta.behind = OUTER_BYTES + MESSAGE_BYTES - 14 + meta.inner_length <= meta.path_mtu;
            slot_unprocessed.read(unprocessed, meta.slot.index);
            held = unprocessed == 0 || !meta.behind;
        }

        if (hdr.probe.isValid()) {
            hdr.probe.setInvalid();
            meta.key = 0;
            hdr.message.setValid();
            hdr.message.version = REPLICATION_VERSION;
            hdr.message.type = TYPE_PROBE_REQUEST;
            hdr.message.shard = meta.shard;
            meta.send = true;
            meta.without_packet = true;
        } else if (hdr.ethernet.isValid()) {
            stranger = true;
            if (!hdr.message.isValid()
                || (!whole && standard_metadata.instance_type != INSTANCE_RECIRCULATED)
                || standard_metadata.checksum_error == 1
                || standard_metadata.parser_error != error.NoError
                || hdr.message.version != REPLICATION_VERSION) {
                replication_events.count(EVENT_BAD_MESSAGE);
            } else if (hdr.ipv4.destination != meta.own_address
                && standard_metadata.instance_type != INSTANCE_RECIRCULATED) {
                replication_events.count(EVENT_FOREIGN_SWITCH);
            } else if (hdr.message.switch_id != meta.switch_id) {
                replication_events.count(EVENT_FOREIGN_SWITCH);
            } else if (hdr.message.incarnation != meta.incarnation && RULE_INCARNATION) {
                replication_events.count(EVENT_OTHER_INCARNATION);
            } else if (!meta.chain_known) {
                replication_events.count(EVENT_UNKNOWN_SHARD);
            } else if (standard_metadata.instance_type != INSTANCE_RECIRCULATED
                && standard_metadata.ingress_port != meta.chain_port) {
                replication_events.count(EVENT_WRONG_PORT);
            } else if (standard_metadata.instance_type != INSTANCE_RECIRCULATED
                && hdr.message.chain_epoch != meta.chain_epoch) {
                replication_events.count(EVENT_OTHER_CHAIN_EPOCH);
            } else {
                stranger = false;
            }
            if (!stranger) {
                find_slot.apply(meta);
                // Replies to an earlier claim of the slot are not this flow's.
                meta.found = meta.found && meta.slot.claim == hdr.message.claim;
                if (standard_metadata.instance_type == INSTANCE_RECIRCULATED) {
                    if (meta.found) {
                        handle_held_copy.apply(hdr, meta);
                    }
                } else if (hdr.message.type == TYPE_RECALL) {
                    handle_recall.apply(hdr, meta);
                } else if (hdr.message.type == TYPE_PROBE_REPLY) {
                    replication_heard.write((bit<32>)meta.shard, meta.now);
                } else if (hdr.message.type == TYPE_LEASE_REPLY
                    || hdr.message.type == TYPE_WRITE_REPLY
                    || hdr.message.type == TYPE_RENEW_REPLY
                    || hdr.message.type == TYPE_REFUSAL) {
                    replication_heard.write((bit<32>)meta.shard, meta.now);
                    if (meta.found) {
                        handle_reply.apply(hdr, meta, standard_metadata);
                        if (meta.process) {
                            slot_line.read(line, meta.slot.index);
                            slot_unreleased.read(unreleased, meta.slot.index);
                            meta.behind = unreleased != 0 && meta.now < line && RULE_RELEASE_ORDER;
                        }
                    } else {
                        replication_events.count(EVENT_STALE_REPLY);
                    }
                } else {
                    replication_events.count(EVENT_FOREIGN_TYPE);
                }
            }
            if (!meta.send) {
                hdr.ethernet.setInvalid();
                hdr.ipv4.setInvalid();
                hdr.udp.setInvalid();
                hdr.message.setInvalid();
                hdr.state.setInvalid();
                if (!meta.process && !meta.release) {
                    mark_to_drop(standard_metadata);
                }
            }
        } else if (meta.renewal == 1 && standard_metadata.instance_type == INSTANCE_RECIRCULATED) {
            find_slot.apply(meta);
            if (meta.found
                && meta.slot.status != STATUS_PENDING
                && meta.slot.status != STATUS_RECALLED) {
                start_renewal.apply(hdr, meta, TYPE_RENEW_REQUEST, 0);
                meta.without_packet = true;
                replication_events.count(EVENT_RENEW_REQUEST);
            } else {
                mark_to_drop(standard_metadata);
            }
        } else if (meta.flow) {
            if (held) {
                meta.process = true;
                slot_used.write(meta.slot.index, meta.now);
                slot_period.read(period, meta.slot.index);
                // Rule 8: at half the period, and again each eighth of it.
                if (meta.now + (bit<48>)(period >> 1) > meta.slot.deadline) @unlikely {
                    slot_renewed.read(renewed, meta.slot.index);
                    meta.renews = meta.now > renewed + (bit<48>)(period >> 3);
                    if (meta.renews) {
                        slot_renewed.write(meta.slot.index, meta.now);
                    }
                }
            } else @unlikely {
                if (!meta.found) {
                    claim_slot.apply(meta);
                } else {
                    slot_used.write(meta.slot.index, meta.now);
                }
                if (meta.found) {
                    request_lease.apply(hdr, meta, standard_metadata);
                } else {
                    replication_events.count(EVENT_TABLE_FULL);
                    mark_to_drop(standard_metadata);
                }
            }
        }
    }
}

// Puts a packet that goes to the store and back at the end of its flow's line (rule 26).
// Readers do not line up behind one that asks for an exclusive lease (rule 18).
control LineUp(in replication_t message, in replication_metadata_t meta) {
    bool reads_go_on;

    apply {
        reads_go_on = meta.slot.status == STATUS_SHARED && meta.now < meta.slot.deadline;
        if (message.type != TYPE_LEASE_REQUEST) {
            slot_unreleased.write(meta.slot.index, message.request);
        } else if (meta.behind || !reads_go_on) {
            slot_unprocessed.write(meta.slot.index, message.request);
        }
        if (!meta.behind && !reads_go_on) {
            slot_line.write(meta.slot.index, meta.now + REPLICATION_ORDER_MICROSECONDS);
        }
    }
}

// Turns a packet that wrote, or that met an unacknowledged write, into a request
// (rules 8 to 10), or one that is behind such packets (rule 26), or renews the lease under
// which it read, and sends what is to be sent to the store.
@side_effects_allowed
control ReplicationIngressAfter(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    StartRequest() start_write;
    StartRequest() start_passage;
    LineUp() line_up;
    bit<16> headers_length;

    apply {
        if (meta.found
            && meta.process
            && (meta.write || meta.slot.sequence != meta.slot.acknowledged)) @unlikely {
            meta.behind = false;
            if (meta.slot.status != STATUS_EXCLUSIVE) {
                replication_events.count(EVENT_WRITE_UNDER_SHARED);
                mark_to_drop(standard_metadata);
            } else {
                if (meta.write) {
                    meta.slot.sequence = meta.slot.sequence + 1;
                    slot_sequence.write(meta.slot.index, meta.slot.sequence);
                    slot_value.write(meta.slot.index, meta.value);
                    meta.hold = true;
                }
                start_write.apply(
                    hdr,
                    meta,
                    TYPE_WRITE_REQUEST,
                    (bit<16>)standard_metadata.ingress_port
                );
                hdr.message.state_length = STATE_BYTES;
                hdr.state.setValid();
                hdr.state.value = meta.value;
                // Rule 14: a packet that outputs nothing is replicated without one.
                meta.without_packet = standard_metadata.egress_spec == DROP_PORT;
                replication_events.count(EVENT_WRITE_REQUEST);
            }
        } else if (meta.process
            && meta.behind
            && standard_metadata.egress_spec != DROP_PORT) @unlikely {
            start_passage.apply(
                hdr,
                meta,
                TYPE_RENEW_REQUEST,
                (bit<16>)standard_metadata.ingress_port
            );
            replication_events.count(EVENT_KEPT_IN_ORDER);
        } else if (meta.renews) @unlikely {
            meta.renewal = 1;
            clone_preserving_field_list(CloneType.I2E, RENEWAL_SESSION, FIELD_LIST_RENEWAL);
        }

        if (meta.send && !meta.chain_known) {
            replication_events.count(EVENT_UNKNOWN_SHARD);
            meta.hold = false;
            mark_to_drop(standard_metadata);
        } else if (meta.send) {
            headers_length = OUTER_BYTES + MESSAGE_BYTES;
            if (hdr.state.isValid()) {
                headers_length = headers_length + STATE_BYTES;
            }
            // A held copy comes back without the packet.
            if (standard_metadata.instance_type == INSTANCE_RECIRCULATED && !meta.arriving) {
                meta.without_packet = true;
            }
            // Rule 15; a datagram does not count the Ethernet header's 14 bytes.
            if (!meta.without_packet && headers_length - 14 + meta.inner_length > meta.path_mtu) {
                replication_events.count(EVENT_TOO_BIG);
                meta.without_packet = true;
            }
            if (meta.without_packet) {
                meta.inner_length = 0;
                truncate((bit<32>)headers_length);
                hdr.message.flags = hdr.message.flags & ~FLAG_PACKET;
            } else {
                hdr.message.flags = hdr.message.flags | FLAG_PACKET;
                line_up.apply(hdr.message, meta);
            }
            hdr.message.chain_epoch = meta.chain_epoch;
            hdr.message.switch_id = meta.switch_id;
            hdr.message.incarnation = meta.incarnation;
            hdr.message.send_time = meta.now;
            hdr.ethernet.setValid();
            hdr.ethernet.destination = meta.chain_mac;
            hdr.ethernet.source = meta.own_mac;
            hdr.ethernet.ether_type = ETHERTYPE_IPV4;
            hdr.ipv4.setValid();
            hdr.ipv4.version = 4;
            hdr.ipv4.ihl = 5;
            hdr.ipv4.diffserv = 0;
            hdr.ipv4.total_length = headers_length - 14 + meta.inner_length;
            hdr.ipv4.identification = 0;
            hdr.ipv4.flags = 2;
            hdr.ipv4.fragment_offset = 0;
            hdr.ipv4.ttl = 64;
            hdr.ipv4.protocol = IP_PROTOCOL_UDP;
            hdr.ipv4.source = meta.own_address;
            hdr.ipv4.destination = meta.chain_address;
            hdr.udp.setValid();
            hdr.udp.source_port = REPLICATION_UDP_PORT;
            hdr.udp.destination_port = REPLICATION_UDP_PORT;
            hdr.udp.length = headers_length - 34 + meta.inner_length;
            hdr.udp.checksum = 0;
            // Multicast waits too: the program chooses it anew when it forwards.
            standard_metadata.mcast_grp = 0;
            standard_metadata.egress_spec = meta.chain_port;
        } else {
            meta.forward = (meta.process || meta.release)
                && standard_metadata.egress_spec != DROP_PORT;
        }
    }
}

@side_effects_allowed
control ReplicationEgress(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    bit<32> session;
    bit<16> headers_length;

    apply {
        if (standard_metadata.instance_type == INSTANCE_EGRESS_CLONE && hdr.message.isValid()) {
            // The session cut the packet off; the headers follow suit.
            headers_length = OUTER_BYTES + MESSAGE_BYTES;
            if (hdr.state.isValid()) {
                headers_length = headers_length + STATE_BYTES;
            }
            hdr.message.flags = hdr.message.flags & ~FLAG_PACKET;
            hdr.ipv4.total_length = headers_length - 14;
            hdr.udp.length = headers_length - 34;
            recirculate_preserving_field_list(0);
        } else if (standard_metadata.instance_type == INSTANCE_INGRESS_CLONE && meta.renewal == 1) {
            recirculate_preserving_field_list(FIELD_LIST_RENEWAL);
        } else if (meta.hold && hdr.message.isValid() && RULE_RETRANSMISSION) {
            session = (bit<32>)hdr.message.attempt;
            if (hdr.message.attempt >= HOLD_SESSIONS) {
                session = (bit<32>)(HOLD_SESSIONS - 1);
            }
            if (hdr.message.type == TYPE_WRITE_REQUEST) {
                session = session + HOLD_SESSION_WRITE;
            } else {
                session = session + HOLD_SESSION_LEASE;
            }
            clone(CloneType.E2E, session);
        }
    }
}

#endif

#endif
