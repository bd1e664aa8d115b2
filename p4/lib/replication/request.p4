// Requests to the store: what stands in one, and the headers in front of it.

#ifndef STATEPLANE_REPLICATION_REQUEST_P4
#define STATEPLANE_REPLICATION_REQUEST_P4

#include "events.p4"
#include "metadata.p4"
#include "order.p4"
#include "replication_message.p4"
#include "slots.p4"

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
        hdr.message.age = 0;
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

// Headers in front of `bytes` bytes of UDP's payload to a shard's chain, and the way there.
control AddressChain(
    inout replication_headers_t hdr,
    in replication_metadata_t meta,
    inout standard_metadata_t standard_metadata,
    in bit<16> bytes
) {
    apply {
        hdr.ethernet.setValid();
        hdr.ethernet.destination = meta.chain_mac;
        hdr.ethernet.source = meta.own_mac;
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.ipv4.setValid();
        hdr.ipv4.version = 4;
        hdr.ipv4.ihl = 5;
        hdr.ipv4.diffserv = 0;
        hdr.ipv4.total_length = IPV4_BYTES + UDP_BYTES + bytes;
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
        hdr.udp.length = UDP_BYTES + bytes;
        hdr.udp.checksum = 0;
        // Multicast waits too: the program chooses it anew when it forwards.
        standard_metadata.mcast_grp = 0;
        standard_metadata.egress_spec = meta.chain_port;
    }
}

// Sends the message to its shard's chain, with the packet on board if it fits in.
control SendRequest(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    LineUp() line_up;
    AddressChain() address_chain;
    bit<16> headers_length;

    apply {
        headers_length = message_frame_bytes(hdr.state.isValid());
        // A held copy comes back without the packet.
        if (standard_metadata.instance_type == INSTANCE_RECIRCULATED && !meta.arriving) {
            meta.without_packet = true;
        }
        // Rule 15.
        if (!meta.without_packet
            && headers_length - ETHERNET_BYTES + meta.inner_length > meta.path_mtu) {
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
        headers_length = headers_length - OUTER_BYTES + meta.inner_length;
        address_chain.apply(hdr, meta, standard_metadata, headers_length);
    }
}

// Sends what the host gave, a heartbeat (rule 17), to the shard's chain as requests are sent.
control SendHeartbeat(
    inout replication_headers_t hdr,
    inout replication_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    AddressChain() address_chain;

    apply {
        replication_events.count(EVENT_HEARTBEAT);
        address_chain.apply(hdr, meta, standard_metadata, meta.inner_length);
    }
}

#endif
