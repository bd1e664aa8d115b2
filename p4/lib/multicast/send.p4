// Messages as they leave ingress.

#ifndef STATEPLANE_MULTICAST_SEND_P4
#define STATEPLANE_MULTICAST_SEND_P4

#include "events.p4"
#include "metadata.p4"
#include "multicast_message.p4"
#include "state.p4"

// Makes the frame one message without payload, or with the one that it has, to one address.
control MulticastSend(
    in bit<8> type,
    in bit<32> address,
    in bit<16> port,
    inout multicast_headers_t hdr,
    inout multicast_metadata_t meta
) {
    apply {
        hdr.message.type = type;
        hdr.message.flags = hdr.message.flags & ~MULTICAST_FLAG_PAYLOAD;
        hdr.message.incarnation = meta.group.incarnation;
        hdr.message.epoch = meta.group.promised;
        meta.sends = true;
        meta.destination = address;
        meta.destination_port = port;
        hdr.ipv4.ttl = 64;
        hdr.udp.length = UDP_BYTES + MULTICAST_MESSAGE_BYTES;
        hdr.ipv4.total_length = IPV4_BYTES + hdr.udp.length;
        truncate((bit<32>)(ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + MULTICAST_MESSAGE_BYTES));
    }
}

// Says that the message changed nothing; what it named stays in it.
control MulticastRefuse(
    in bit<8> code,
    inout multicast_headers_t hdr,
    inout multicast_metadata_t meta
) {
    MulticastSend() send;

    apply {
        multicast_events.count(MULTICAST_EVENT_REFUSED);
        hdr.message.code = code;
        send.apply(MULTICAST_TYPE_REFUSED, hdr.ipv4.source, hdr.udp.source_port, hdr, meta);
    }
}

// Address of a group's leader, as the controller last said.
control MulticastLeaderOf(in bit<8> group, out bit<32> address) {
    action leader(bit<32> leader_address) {
        address = leader_address;
    }

    table multicast_leaders {
        key = { group: exact; }
        actions = { leader; }
        default_action = leader(0);
        size = 32;
    }

    apply {
        multicast_leaders.apply();
    }
}

// Sends the message to the leader of the group in `origin`, as one of this group.
control MulticastAnswerLeader(
    in bit<8> type,
    inout multicast_headers_t hdr,
    inout multicast_metadata_t meta
) {
    MulticastLeaderOf() leader_of;
    MulticastSend() send;
    bit<32> address;
    bit<8> group;

    apply {
        leader_of.apply(hdr.message.origin, address);
        if (address == 0) {
            multicast_events.count(MULTICAST_EVENT_UNKNOWN_TARGET);
        } else {
            group = hdr.message.group;
            hdr.message.group = hdr.message.origin;
            hdr.message.origin = group;
            send.apply(type, address, MULTICAST_UDP_PORT, hdr, meta);
        }
    }
}

#endif
