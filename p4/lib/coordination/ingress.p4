// The library's block in ingress: what a packet is, and what becomes of it.

#ifndef STATEPLANE_COORDINATION_INGRESS_P4
#define STATEPLANE_COORDINATION_INGRESS_P4

#include "chain.p4"
#include "configure.p4"
#include "coordination_message.p4"
#include "events.p4"
#include "extra.p4"
#include "group.p4"
#include "metadata.p4"
#include "ports.p4"
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
    DropValue() drop_value;
    SendToClient() send_to_client;

    apply {
        if (hdr.message.type == TYPE_PING) {
            handle_ping.apply(hdr, meta);
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
            load_group.apply(hdr.message.group, meta);
            meta.extra_group = hdr.message.group;
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

// Takes messages for this switch, and frames of the packet generator. After it the program
// forwards what `forward` says.
control CoordinationIngress(
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    HandleMessage() handle_message;
    SendExtra() send_extra;

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
            send_extra.apply(hdr, meta, standard_metadata);
        } else if (standard_metadata.checksum_error == 1
            || standard_metadata.parser_error != error.NoError
            || !hdr.ipv4.isValid()) {
            coordination_events.count(EVENT_BAD_FRAME);
        } else if (hdr.ipv4.destination != meta.own_address) {
            meta.forward = true;
        } else if (!hdr.message.isValid()
            || hdr.message.version != COORDINATION_VERSION
            || hdr.udp.length != hdr.ipv4.total_length - IPV4_BYTES
            || hdr.udp.length != UDP_BYTES + MESSAGE_BYTES
                + ((hdr.message.value_length + (CHUNK_BYTES - 1)) & ~(CHUNK_BYTES - 1))) {
            coordination_events.count(EVENT_BAD_MESSAGE);
        } else {
            handle_message.apply(hdr, meta);
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
