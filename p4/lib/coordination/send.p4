// Messages as they leave: what becomes of the one at hand, and the headers in front of it.

#ifndef STATEPLANE_COORDINATION_SEND_P4
#define STATEPLANE_COORDINATION_SEND_P4

#include "coordination_message.p4"
#include "events.p4"
#include "group.p4"
#include "metadata.p4"
#include "slots.p4"

// Makes the message one of type `type` with all else zero.
control StartMessage(in bit<8> type, in bit<16> group, inout coordination_headers_t hdr) {
    DropValue() drop_value;

    apply {
        hdr.message.setValid();
        hdr.message.version = COORDINATION_VERSION;
        hdr.message.type = type;
        hdr.message.operation = 0;
        hdr.message.outcome = 0;
        hdr.message.flags = 0;
        hdr.message.hops = 0;
        hdr.message.redirects = 0;
        hdr.message.kind = 0;
        hdr.message.group = group;
        hdr.message.generation = 0;
        hdr.message.epoch = 0;
        hdr.message.value_length = 0;
        hdr.message.chain_1 = 0;
        hdr.message.chain_2 = 0;
        hdr.message.chain_3 = 0;
        hdr.message.chain_4 = 0;
        hdr.message.client_address = 0;
        hdr.message.client_port = 0;
        hdr.message.lane = 0;
        hdr.message.lane_incarnation = 0;
        hdr.message.slot = 0;
        hdr.message.request = 0;
        hdr.message.number = 0;
        hdr.message.newest = 0;
        hdr.message.record = 0;
        hdr.message.key = 0;
        hdr.message.condition = 0;
        hdr.message.operand_length = 0;
        hdr.message.guard_condition = 0;
        hdr.message.padding = 0;
        hdr.message.operand = 0;
        hdr.message.guard_key = 0;
        hdr.message.guard_number = 0;
        hdr.message.token = 0;
        hdr.message.session = 0;
        hdr.message.handle = 0;
        hdr.message.send_time = 0;
        hdr.message.rest_checksum = 0;
        drop_value.apply(hdr);
    }
}

// Puts IPv4 and UDP in front of the message; the router does the rest.
control SendMessage(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    bit<16> length;

    apply {
        length = UDP_BYTES + MESSAGE_BYTES + padded_value(hdr.message.value_length);
        hdr.ethernet.setValid();
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.tick.setInvalid();
        hdr.ipv4.setValid();
        hdr.ipv4.version = 4;
        hdr.ipv4.ihl = 5;
        hdr.ipv4.diffserv = 0;
        hdr.ipv4.total_length = IPV4_BYTES + length;
        hdr.ipv4.identification = 0;
        hdr.ipv4.flags = 2;
        hdr.ipv4.fragment_offset = 0;
        hdr.ipv4.ttl = 64;
        hdr.ipv4.protocol = IP_PROTOCOL_UDP;
        hdr.ipv4.source = meta.own_address;
        hdr.ipv4.destination = meta.destination;
        hdr.udp.setValid();
        hdr.udp.source_port = COORDINATION_UDP_PORT;
        hdr.udp.destination_port = meta.destination_port;
        hdr.udp.length = length;
        hdr.udp.checksum = 0;
        // What a tick or a copy had behind its headers stays here.
        truncate((bit<32>)(ETHERNET_BYTES + IPV4_BYTES + length));
        meta.sends = true;
        meta.forward = true;
    }
}

// Sends the message to another switch, with the newest number that this one has (rule 2).
control SendToSwitch(
    in bit<32> address,
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta
) {
    SendMessage() send_message;

    apply {
        hdr.message.newest = meta.group.applied;
        meta.destination = address;
        meta.destination_port = COORDINATION_UDP_PORT;
        send_message.apply(hdr, meta);
    }
}

// Sends the message to the client, or to the controller, that it names.
control SendToClient(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    SendMessage() send_message;

    apply {
        hdr.message.newest = meta.group.applied;
        meta.destination = hdr.message.client_address;
        meta.destination_port = hdr.message.client_port;
        send_message.apply(hdr, meta);
    }
}

// Answers a request with an outcome that has no number (rule 4).
control Refuse(
    in bit<8> outcome,
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta
) {
    PutConfiguration() put_configuration;
    DropValue() drop_value;
    SendToClient() send_to_client;

    apply {
        coordination_events.count(EVENT_REFUSED);
        hdr.message.type = TYPE_REPLY;
        hdr.message.outcome = outcome;
        hdr.message.kind = KIND_NONE;
        hdr.message.number = 0;
        hdr.message.record = 0;
        put_configuration.apply(hdr.message, meta);
        drop_value.apply(hdr);
        send_to_client.apply(hdr, meta);
    }
}

#endif
