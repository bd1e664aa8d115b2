// The library's two blocks in ingress: before the program's processing and after it.

#ifndef STATEPLANE_REPLICATION_INGRESS_P4
#define STATEPLANE_REPLICATION_INGRESS_P4

#include "events.p4"
#include "lease.p4"
#include "metadata.p4"
#include "ports.p4"
#include "replication_message.p4"
#include "replication_rules.p4"
#include "reply.p4"
#include "request.p4"
#include "slots.p4"

// Drawn anew by the host at each start, before the first packet (rule 6).
register<bit<32>>(1) replication_incarnation;

// Finds the state of an arriving packet's flow, or asks the store for it; takes what the store
// sends; and tells whether to process the packet.
control ReplicationIngressBefore(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    FindSlot() find_slot;
    ClaimSlot() claim_slot;
    RequestLease() request_lease;
    CheckMessage() check_message;
    HandleMessage() handle_message;
    bit<48> line;
    bit<32> unprocessed;
    bool whole = false;
    bool held = false;
    bool believed;

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

    // Address of the head of each shard's chain.
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
        meta.without_packet = false;
        meta.found = false;
        meta.behind = false;

        meta.inner_length = (bit<16>)standard_metadata.packet_length;
        if (hdr.probe.isValid()) {
            meta.shard = hdr.probe.shard;
        } else if (hdr.message.isValid()) {
            meta.key = hdr.message.key;
            meta.shard = hdr.message.shard;
            // A message's frame is too long to be padded, so all lengths agree.
            whole = hdr.ipv4.total_length == meta.inner_length - ETHERNET_BYTES
                && hdr.udp.length == meta.inner_length - (ETHERNET_BYTES + IPV4_BYTES);
            meta.inner_length = meta.inner_length - message_frame_bytes(hdr.state.isValid());
            whole = whole && (meta.inner_length == 0 || (hdr.message.flags & FLAG_PACKET) != 0);
        }
        if (meta.arriving) {
            if (meta.known) {
                find_slot.apply(meta);
                held = meta.found
                    && meta.slot.status != STATUS_PENDING
                    && meta.slot.counts
                    && (meta.shared || meta.slot.status != STATUS_SHARED);
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
                // The program's hash need not be computed.
                meta.shard = meta.slot.shard;
            }
            replication_identity.apply();
            replication_incarnation.read(meta.incarnation, 0);
            replication_shards.apply();
        }
        if (meta.behind) @unlikely {
            // What does not fit into a request had better overtake than be lost.
            meta.behind = OUTER_BYTES + MESSAGE_BYTES - ETHERNET_BYTES + meta.inner_length
                <= meta.path_mtu;
            slot_unprocessed.read(unprocessed, meta.slot.index);
            held = unprocessed == 0 || !meta.behind;
        }

        if (hdr.probe.isValid()) {
            hdr.probe.setInvalid();
            meta.send = true;
            if (standard_metadata.ingress_port == HEARTBEAT_PORT) {
                meta.inner_length = meta.inner_length - (ETHERNET_BYTES + PROBE_BYTES);
            } else {
                meta.key = 0;
                hdr.message.setValid();
                hdr.message.version = REPLICATION_VERSION;
                hdr.message.type = TYPE_PROBE_REQUEST;
                hdr.message.shard = meta.shard;
                meta.without_packet = true;
            }
        } else if (hdr.ethernet.isValid()) {
            check_message.apply(hdr, meta, standard_metadata, whole, believed);
            if (believed) {
                find_slot.apply(meta);
                // Replies to an earlier claim of the slot are not this flow's.
                meta.found = meta.found && meta.slot.claim == hdr.message.claim;
                handle_message.apply(hdr, meta, standard_metadata);
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
        } else if (meta.known) {
            if (held) {
                meta.process = true;
                slot_used.write(meta.slot.index, meta.now);
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

// Turns a packet that wrote, or that met an unacknowledged write, into a request
// (rules 8 to 10), or one that is behind such packets (rule 26), and sends what is to be sent
// to the store.
@side_effects_allowed
control ReplicationIngressAfter(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    StartRequest() start_write;
    StartRequest() start_passage;
    SendRequest() send_request;
    SendHeartbeat() send_heartbeat;

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
        }

        if (meta.send && !meta.chain_known) {
            replication_events.count(EVENT_UNKNOWN_SHARD);
            meta.hold = false;
            mark_to_drop(standard_metadata);
        } else if (meta.send && !hdr.message.isValid()) {
            send_heartbeat.apply(hdr, meta, standard_metadata);
        } else if (meta.send) {
            send_request.apply(hdr, meta, standard_metadata);
        } else {
            meta.forward = (meta.process || meta.release)
                && standard_metadata.egress_spec != DROP_PORT;
        }
    }
}

#endif
