// The library's block in ingress: what a packet is, and what becomes of it.

#ifndef STATEPLANE_COORDINATION_INGRESS_P4
#define STATEPLANE_COORDINATION_INGRESS_P4

#include "chain.p4"
#include "configure.p4"
#include "coordination_message.p4"
#include "events.p4"
#include "extra.p4"
#include "group.p4"
#include "join.p4"
#include "lease.p4"
#include "metadata.p4"
#include "ports.p4"
#include "redirect.p4"
#include "request.p4"
#include "rules.p4"
#include "send.p4"

// A message for this switch.
control HandleMessage(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    LoadGroup() load_group;
    HandleRequest() handle_request;
    HandleChain() handle_chain;
    HandleConfigure() handle_configure;
    HandlePing() handle_ping;
    HandleRedirect() handle_redirect;
    DropValue() drop_value;
    SendToClient() send_to_client;

    apply {
        if (hdr.message.type == TYPE_PING) {
            handle_ping.apply(hdr, meta);
        } else if (hdr.message.type == TYPE_REDIRECT) {
            handle_redirect.apply(hdr, meta);
        } else if (hdr.message.group >= COORDINATION_GROUPS) {
            coordination_events.count(EVENT_UNKNOWN_GROUP);
            if (hdr.message.type == TYPE_REQUEST) {
                hdr.message.type = TYPE_REPLY;
                hdr.message.outcome = OUTCOME_MALFORMED;
                hdr.message.epoch = 0;
                drop_value.apply(hdr);
                send_to_client.apply(hdr, meta);
            }
        } else {
            meta.extra_group = hdr.message.group;
            // What was read of group, slots and lanes must still hold when they are written, also
            // where several workers run the program (rule 7).
            @atomic {
                load_group.apply(hdr.message.group, meta);
                if (hdr.message.type == TYPE_REQUEST) {
                    handle_request.apply(hdr, meta);
                } else if (hdr.message.type >= TYPE_ENTRY && hdr.message.type <= TYPE_HANDED) {
                    handle_chain.apply(hdr, meta);
                } else if (hdr.message.type == TYPE_CONFIGURE) {
                    handle_configure.apply(hdr, meta);
                } else {
                    coordination_events.count(EVENT_UNKNOWN_TYPE);
                }
            }
        }
    }
}

// True if the parts of a long value are what was sent.
control RestHolds(inout coordination_headers_t hdr, out bool holds) {
    bit<16> part;
    bit<32> sum;

    apply {
        sum = 0;
        if (hdr.rest[0].isValid()) {
            hash(part, HashAlgorithm.csum16, (bit<16>)0, { hdr.rest[0].bytes }, (bit<32>)0x10000);
            sum = sum + (bit<32>)(~part);
        }
        if (hdr.rest[1].isValid()) {
            hash(part, HashAlgorithm.csum16, (bit<16>)0, { hdr.rest[1].bytes }, (bit<32>)0x10000);
            sum = sum + (bit<32>)(~part);
        }
        if (hdr.rest[2].isValid()) {
            hash(part, HashAlgorithm.csum16, (bit<16>)0, { hdr.rest[2].bytes }, (bit<32>)0x10000);
            sum = sum + (bit<32>)(~part);
        }
        if (hdr.rest[3].isValid()) {
            hash(part, HashAlgorithm.csum16, (bit<16>)0, { hdr.rest[3].bytes }, (bit<32>)0x10000);
            sum = sum + (bit<32>)(~part);
        }
        if (hdr.rest[4].isValid()) {
            hash(part, HashAlgorithm.csum16, (bit<16>)0, { hdr.rest[4].bytes }, (bit<32>)0x10000);
            sum = sum + (bit<32>)(~part);
        }
        if (hdr.rest[5].isValid()) {
            hash(part, HashAlgorithm.csum16, (bit<16>)0, { hdr.rest[5].bytes }, (bit<32>)0x10000);
            sum = sum + (bit<32>)(~part);
        }
        if (hdr.rest[6].isValid()) {
            hash(part, HashAlgorithm.csum16, (bit<16>)0, { hdr.rest[6].bytes }, (bit<32>)0x10000);
            sum = sum + (bit<32>)(~part);
        }
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        holds = hdr.message.rest_checksum == ~sum[15:0] || !RULE_MESSAGE_CHECKSUM;
    }
}

// Takes a message for this switch that is whole.
control TakeMessage(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    HandleMessage() handle_message;
    RestHolds() rest_holds;
    bit<16> length;
    bool holds;

    apply {
        holds = true;
        if (hdr.rest[0].isValid()) @unlikely {
            rest_holds.apply(hdr, holds);
        }
        length = UDP_BYTES + MESSAGE_BYTES + padded_value(hdr.message.value_length);
        if (!hdr.message.isValid()
            || hdr.message.version != COORDINATION_VERSION
            || hdr.udp.length != length
            || hdr.ipv4.total_length != IPV4_BYTES + length
            || !holds) {
            coordination_events.count(EVENT_BAD_MESSAGE);
        } else {
            handle_message.apply(hdr, meta);
        }
    }
}

// A frame of the packet generator.
control HandleTick(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    LoadGroup() load_group;
    BeginRound() begin_round;
    ContinueCopy() continue_copy;

    apply {
        if (hdr.tick.kind == TICK_LEASE && hdr.tick.index < COORDINATION_GROUPS) {
            load_group.apply(hdr.tick.index[15:0], meta);
            begin_round.apply(hdr, meta);
        } else if (hdr.tick.kind == TICK_COPY) {
            continue_copy.apply(meta);
        } else {
            coordination_events.count(EVENT_UNKNOWN_TICK);
        }
    }
}

// Takes messages for this switch, and frames of the packet generator. After it the program
// forwards what `forward` says.
control CoordinationIngress(
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    TakeMessage() take_message;
    SendExtra() send_extra;
    HandleTick() handle_tick;
    Redirect() redirect;
    bool drops;

    action set_identity(bit<32> switch_id, bit<32> address) {
        meta.switch_id = switch_id;
        meta.own_address = address;
    }

    // The switch's number, and its address in the protocol.
    table coordination_identity {
        actions = { set_identity; }
        default_action = set_identity(0, 0);
    }

    apply {
        meta.forward = false;
        meta.sends = false;
        meta.now = standard_metadata.ingress_global_timestamp;
        coordination_identity.apply();
        if (meta.extra != 0) {
            // As in HandleMessage.
            @atomic {
                send_extra.apply(hdr, meta, standard_metadata);
            }
        } else if (hdr.tick.isValid()) {
            // As in HandleMessage.
            @atomic {
                handle_tick.apply(hdr, meta);
            }
        } else if (standard_metadata.checksum_error == 1
            || standard_metadata.parser_error != error.NoError
            || !hdr.ipv4.isValid()
            || hdr.ipv4.version != 4
            || hdr.ipv4.ihl != 5) {
            coordination_events.count(EVENT_BAD_FRAME);
        } else {
            redirect.apply(hdr, meta, drops);
            if (hdr.ipv4.destination != meta.own_address) {
                meta.forward = !drops;
            } else {
                take_message.apply(hdr, meta);
            }
        }
        if (meta.extra != 0) @unlikely {
            clone_preserving_field_list(CloneType.I2E, COORDINATION_SESSION, FIELD_LIST_EXTRA);
        }
        if (!meta.forward) {
            mark_to_drop(standard_metadata);
        }
    }
}

#endif
