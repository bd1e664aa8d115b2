// The library's block in ingress: what a frame is, and what becomes of it.

#ifndef STATEPLANE_MULTICAST_INGRESS_P4
#define STATEPLANE_MULTICAST_INGRESS_P4

#include "control.p4"
#include "events.p4"
#include "follow.p4"
#include "held.p4"
#include "lead.p4"
#include "metadata.p4"
#include "multicast_message.p4"
#include "ports.p4"
#include "rules.p4"
#include "send.p4"

// A message for a member, of a group of this switch.
control MulticastHandleMessage(inout multicast_headers_t hdr, inout multicast_metadata_t meta) {
    MulticastHandleStart() handle_start;
    MulticastHandleProp() handle_prop;
    MulticastJoin() join;
    MulticastHandleAsk() handle_ask;
    MulticastHandleSkip() handle_skip;
    MulticastHandleAck() handle_ack;
    MulticastHandleLeader() handle_leader;
    MulticastHandleReceived() handle_received;
    MulticastHandlePrepare() handle_prepare;
    MulticastHandleLead() handle_lead;
    MulticastRefuse() refuse;

    apply {
        meta.bears = hdr.message.type == MULTICAST_TYPE_START
            || (hdr.message.type == MULTICAST_TYPE_PROP
                && (hdr.message.flags & MULTICAST_FLAG_NO_OP) == 0);
        if (hdr.message.type == MULTICAST_TYPE_START) {
            handle_start.apply(hdr, meta);
        } else if (hdr.message.type == MULTICAST_TYPE_ACK) {
            handle_ack.apply(hdr, meta);
        } else if (hdr.message.type == MULTICAST_TYPE_RECEIVED) {
            handle_received.apply(hdr, meta);
        } else if (hdr.message.type >= MULTICAST_TYPE_HINT
            && hdr.message.type <= MULTICAST_TYPE_OLD) {
            if (hdr.message.origin == hdr.message.group || hdr.message.origin >= 32) {
                multicast_events.count(MULTICAST_EVENT_NOT_ADDRESSED);
            } else {
                handle_leader.apply(hdr, meta);
            }
        } else if (hdr.message.incarnation != meta.group.incarnation
            && MULTICAST_RULE_INCARNATION) {
            multicast_events.count(MULTICAST_EVENT_OTHER_INCARNATION);
            if (hdr.message.type == MULTICAST_TYPE_PREPARE
                || hdr.message.type == MULTICAST_TYPE_LEAD) {
                refuse.apply(MULTICAST_CODE_OTHER_INCARNATION, hdr, meta);
            }
        } else if (hdr.message.type == MULTICAST_TYPE_PROP && meta.joining) {
            join.apply(hdr, meta);
        } else if (hdr.message.type == MULTICAST_TYPE_PROP) {
            handle_prop.apply(hdr, meta);
        } else if (hdr.message.type == MULTICAST_TYPE_ASK) {
            handle_ask.apply(hdr, meta);
        } else if (hdr.message.type == MULTICAST_TYPE_SKIP) {
            handle_skip.apply(hdr, meta);
        } else if (hdr.message.type == MULTICAST_TYPE_PREPARE) {
            handle_prepare.apply(hdr, meta);
        } else if (hdr.message.type == MULTICAST_TYPE_LEAD) {
            handle_lead.apply(hdr, meta);
        } else {
            multicast_events.count(MULTICAST_EVENT_UNKNOWN_TYPE);
        }
    }
}

// A message for this switch, or a copy that was held.
control MulticastTake(
    in bool held,
    inout multicast_headers_t hdr,
    inout multicast_metadata_t meta
) {
    MulticastLoadGroup() load_group;
    MulticastHandleMessage() handle_message;
    MulticastHandleHeld() handle_held;
    MulticastRefuse() refuse;
    bool member;
    bit<16> length;

    action set_member(bit<8> number, bit<16> longest) {
        member = true;
        meta.group.member = number;
        meta.group.longest = longest;
    }

    action not_a_member() {
        member = false;
    }

    // Groups of which the switch is a member: its number, and the longest payload.
    table multicast_groups {
        key = { hdr.message.group: exact; }
        actions = { set_member; not_a_member; }
        default_action = not_a_member();
        size = MULTICAST_GROUPS;
    }

    apply {
        length = UDP_BYTES + MULTICAST_MESSAGE_BYTES;
        if (hdr.message.version != MULTICAST_VERSION
            || hdr.udp.length < length
            || hdr.ipv4.total_length != IPV4_BYTES + hdr.udp.length
            || (hdr.udp.length != length && (hdr.message.flags & MULTICAST_FLAG_PAYLOAD) == 0)) {
            multicast_events.count(MULTICAST_EVENT_BAD_MESSAGE);
        } else {
            meta.payload = hdr.udp.length - length;
            multicast_groups.apply();
            // A copy is held while the log has its entry, also when the switch is no member: it may
            // be one again.
            if ((!member && !held) || hdr.message.group >= MULTICAST_GROUPS) {
                multicast_events.count(MULTICAST_EVENT_UNKNOWN_GROUP);
                if (hdr.message.type == MULTICAST_TYPE_START) {
                    refuse.apply(MULTICAST_CODE_UNKNOWN_GROUP, hdr, meta);
                }
            } else {
                load_group.apply(hdr.message.group, meta);
                if (held) {
                    handle_held.apply(hdr, meta);
                } else {
                    handle_message.apply(hdr, meta);
                }
            }
        }
    }
}

// Takes messages for this switch. After it the program forwards what `forward` says.
control MulticastIngress(
    inout multicast_headers_t hdr,
    inout multicast_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    MulticastTake() take;

    action set_identity(bit<32> address) {
        meta.own_address = address;
    }

    // The switch's address in the protocol.
    table multicast_identity {
        actions = { set_identity; }
        default_action = set_identity(0);
    }

    apply {
        meta.forward = false;
        meta.hold = false;
        meta.again = false;
        meta.joining = meta.joins == 1 && meta.held == 0;
        meta.joins = 0;
        meta.sends = false;
        meta.bears = false;
        meta.to = 0;
        meta.loops = false;
        meta.now = standard_metadata.ingress_global_timestamp;
        multicast_identity.apply();
        if (standard_metadata.checksum_error == 1
            || standard_metadata.parser_error != error.NoError
            || !hdr.ipv4.isValid()) {
            multicast_events.count(MULTICAST_EVENT_BAD_MESSAGE);
        } else if (!hdr.message.isValid() || hdr.ipv4.destination != meta.own_address) {
            meta.forward = true;
        } else {
            // What was read of group, log and lanes must still hold when they are written, also where
            // several workers run the program.
            @atomic {
                take.apply(
                    standard_metadata.instance_type == INSTANCE_RECIRCULATED && meta.held == 1,
                    hdr,
                    meta
                );
            }
        }
        meta.held = meta.hold ? 1w1 : 1w0;
        // Whatever registers hold, no packet comes back for ever; the next one goes on.
        meta.again = meta.again && !meta.hold && meta.passes < MULTICAST_PASSES;
        meta.passes = meta.again ? meta.passes + 1 : 0;
        if (meta.hold) {
            clone_preserving_field_list(
                CloneType.I2E,
                MULTICAST_HOLD
                    + (bit<32>)(meta.attempt == MULTICAST_FOLLOWS
                        ? MULTICAST_HOLDS - 1
                        : meta.attempt),
                MULTICAST_FIELD_LIST
            );
        } else if (meta.again) {
            clone_preserving_field_list(CloneType.I2E, MULTICAST_AGAIN, MULTICAST_FIELD_LIST);
        }
        if (meta.sends) {
            meta.forward = true;
            hdr.ipv4.source = meta.own_address;
            hdr.ipv4.destination = meta.destination;
            hdr.udp.source_port = MULTICAST_UDP_PORT;
            hdr.udp.destination_port = meta.destination_port;
            hdr.udp.checksum = 0;
            if (meta.destination == meta.own_address) {
                meta.forward = false;
                meta.loops = true;
                standard_metadata.egress_spec = MULTICAST_LOOP_PORT;
            }
        } else if (meta.joins == 1) {
            meta.loops = true;
            standard_metadata.egress_spec = MULTICAST_LOOP_PORT;
        } else if (meta.to != 0) {
            standard_metadata.mcast_grp = (bit<16>)meta.group.at[7:0] * 8 + (bit<16>)meta.to;
        } else if (!meta.forward) {
            mark_to_drop(standard_metadata);
        }
    }
}

#endif
