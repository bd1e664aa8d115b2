// Copies for members, other leaders and receivers, and copies that return.

#ifndef STATEPLANE_MULTICAST_EGRESS_P4
#define STATEPLANE_MULTICAST_EGRESS_P4

#include "events.p4"
#include "metadata.p4"
#include "multicast_message.p4"
#include "ports.p4"
#include "rules.p4"

// Makes a copy what its target is to get.
control MulticastCopy(
    inout multicast_headers_t hdr,
    inout multicast_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    bit<3> kind;
    bit<8> number;
    bool payload;
    bool dropped;

    action reach(bit<32> address, bit<48> mac, bit<48> source_mac) {
        hdr.ipv4.destination = address;
        hdr.ethernet.destination = mac;
        hdr.ethernet.source = source_mac;
    }

    action member(bit<32> incarnation, bit<32> address, bit<48> mac, bit<48> source_mac) {
        reach(address, mac, source_mac);
        kind = MULTICAST_MEMBERS;
        hdr.message.incarnation = incarnation;
    }

    action receiver(bit<32> address, bit<48> mac, bit<48> source_mac) {
        reach(address, mac, source_mac);
        kind = MULTICAST_RECEIVERS;
    }

    action leader(bit<8> group, bit<32> address, bit<48> mac, bit<48> source_mac) {
        reach(address, mac, source_mac);
        kind = MULTICAST_LEADERS;
        number = group;
    }

    action nobody() {
        kind = 0;
    }

    // Target of each copy, by the rid of its node in the replication group.
    table multicast_targets {
        key = {
            hdr.message.group: exact;
            standard_metadata.egress_rid: exact;
        }
        actions = { member; receiver; leader; nobody; }
        default_action = nobody();
        size = 512;
    }

    apply {
        number = 0;
        dropped = false;
        multicast_targets.apply();
        hdr.message.origin = meta.group.member;
        payload = meta.bears;
        if ((kind & meta.to) == 0) {
            multicast_events.count(MULTICAST_EVENT_UNKNOWN_TARGET);
            dropped = true;
            mark_to_drop(standard_metadata);
        } else if (kind == MULTICAST_MEMBERS) {
            hdr.message.type = MULTICAST_TYPE_PROP;
        } else if (kind == MULTICAST_RECEIVERS) {
            hdr.message.type = meta.receiver_type;
            payload = payload && meta.receiver_payload;
            hdr.message.incarnation = meta.group.incarnation;
        } else if ((hdr.message.destinations >> number)[0:0] == 0
            && MULTICAST_RULE_ADDRESSED_ONLY) {
            // The group is no destination (rule 16).
            dropped = true;
            mark_to_drop(standard_metadata);
        } else {
            hdr.message.type = meta.leader_type;
            hdr.message.before = meta.group.done;
            hdr.message.origin = hdr.message.group;
            hdr.message.group = number;
            hdr.message.incarnation = meta.group.incarnation;
            payload = payload && meta.leader_type == MULTICAST_TYPE_START;
            if (meta.leader_type == MULTICAST_TYPE_START) {
                hdr.message.flags = hdr.message.flags | MULTICAST_FLAG_OF_LEADER;
                hdr.message.timestamp = meta.leader_time;
                hdr.message.final = 0;
            }
        }
        hdr.udp.length = UDP_BYTES + MULTICAST_MESSAGE_BYTES;
        if (payload) {
            hdr.udp.length = hdr.udp.length + meta.payload;
        } else {
            hdr.message.flags = hdr.message.flags & ~MULTICAST_FLAG_PAYLOAD;
            truncate((bit<32>)(ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + MULTICAST_MESSAGE_BYTES));
        }
        hdr.ipv4.total_length = IPV4_BYTES + hdr.udp.length;
        hdr.ipv4.ttl = 64;
        hdr.ipv4.source = meta.own_address;
        hdr.udp.source_port = MULTICAST_UDP_PORT;
        hdr.udp.destination_port = MULTICAST_UDP_PORT;
        hdr.udp.checksum = 0;
        meta.loops = !dropped && hdr.ipv4.destination == meta.own_address;
    }
}

// Sends copies to their targets, and held ones back to ingress.
control MulticastEgress(
    inout multicast_headers_t hdr,
    inout multicast_metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    MulticastCopy() copy;

    apply {
        if (standard_metadata.instance_type == INSTANCE_INGRESS_CLONE) {
            recirculate_preserving_field_list(MULTICAST_FIELD_LIST);
        } else if (meta.to != 0 && !meta.sends) {
            copy.apply(hdr, meta, standard_metadata);
        }
        if (meta.loops) {
            meta.held = 0;
            recirculate_preserving_field_list(MULTICAST_FIELD_LIST);
        }
    }
}

#endif
