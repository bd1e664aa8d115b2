// The library's block in ingress: what a frame is, and what becomes of it.

#ifndef STATEPLANE_SYNC_INGRESS_P4
#define STATEPLANE_SYNC_INGRESS_P4

#include "carrier.p4"
#include "events.p4"
#include "metadata.p4"
#include "ports.p4"
#include "request.p4"
#include "send.p4"
#include "state.p4"
#include "sync_message.p4"

// Takes a message that is whole and for this switch.
control SyncTakeMessage(inout sync_headers_t hdr, inout sync_metadata_t meta) {
    SyncShape() shape_of;
    SyncHandleRequest() handle_request;
    SyncRefuse() refuse;
    bit<16> length;

    apply {
        length = UDP_BYTES + SYNC_MESSAGE_BYTES + (bit<16>)hdr.message.count * SYNC_VALUE_BYTES;
        if (hdr.message.version != SYNC_VERSION
            || hdr.udp.length != length
            || hdr.ipv4.total_length != IPV4_BYTES + length) {
            sync_events.count(SYNC_EVENT_BAD_MESSAGE);
        } else if (hdr.ipv4.destination != meta.own_address) {
            sync_events.count(SYNC_EVENT_OTHER_ADDRESS);
        } else if (hdr.message.type > SYNC_TYPE_STAGE) {
            sync_events.count(SYNC_EVENT_UNKNOWN_TYPE);
        } else {
            if (meta.group >= SYNC_GROUPS) {
                sync_events.count(SYNC_EVENT_UNKNOWN_GROUP);
                refuse.apply(SYNC_OUTCOME_UNKNOWN_GROUP, hdr, meta);
            } else {
                shape_of.apply(meta.group, meta.shape);
                handle_request.apply(hdr, meta);
            }
        }
    }
}

// Takes a frame of the packet generator.
control SyncTakeTick(inout sync_headers_t hdr, inout sync_metadata_t meta) {
    SyncShape() shape_of;
    SyncTurn() turn;

    apply {
        if (hdr.tick.group < SYNC_GROUPS) {
            shape_of.apply(meta.group, meta.shape);
            turn.apply(hdr, meta);
        } else {
            sync_events.count(SYNC_EVENT_UNKNOWN_TICK);
        }
    }
}

// Takes the library's frames, and says so in `taken`.
control SyncIngress(
    inout sync_headers_t hdr,
    inout sync_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    SyncSettings() settings;
    SyncTakeMessage() take_message;
    SyncTakeTick() take_tick;

    action set_identity(bit<32> switch_id, bit<32> address) {
        meta.switch_id = switch_id;
        meta.own_address = address;
    }

    // The switch's number, and its address in the protocol.
    table sync_identity {
        actions = { set_identity; }
        default_action = set_identity(0, 0);
    }

    apply {
        meta.taken = hdr.ethernet.isValid();
        meta.sends = false;
        if (meta.taken) {
            meta.now = standard_metadata.ingress_global_timestamp;
            sync_identity.apply();
            meta.group = hdr.tick.isValid() ? hdr.tick.group[15:0] : hdr.message.group;
            meta.at = (bit<32>)meta.group;
            settings.apply(meta);
            if (standard_metadata.checksum_error == 1
                || standard_metadata.parser_error != error.NoError) {
                sync_events.count(SYNC_EVENT_BAD_FRAME);
            } else {
                // Ring, sums and values of a message belong to one moment, also where several workers
                // run the program.
                @atomic {
                    if (hdr.tick.isValid()) {
                        take_tick.apply(hdr, meta);
                    } else if (hdr.message.isValid()) {
                        take_message.apply(hdr, meta);
                    }
                }
            }
            if (meta.sends) {
                standard_metadata.egress_spec = SYNC_CONTROL_PORT;
            } else {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

#endif
