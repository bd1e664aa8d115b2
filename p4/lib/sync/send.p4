// Messages as they leave.

#ifndef STATEPLANE_SYNC_SEND_P4
#define STATEPLANE_SYNC_SEND_P4

#include "each.p4"
#include "events.p4"
#include "metadata.p4"
#include "ports.p4"
#include "state.p4"
#include "sync_message.p4"

// Bytes around a frame on the wire: preamble, check sequence, gap.
const bit<16> SYNC_FRAMING_BYTES = 24;

// Takes values away, those of a request or of nobody.
control SyncDropValues(inout sync_headers_t hdr) {
    apply {
#define SYNC_DROP_VALUE(i) hdr.values[i].setInvalid();
        SYNC_EACH(SYNC_DROP_VALUE)
        hdr.message.count = 0;
    }
}

// Fields that all messages of a switch have: which start of which switch, T, t and how far the
// ring, sums and cuts are.
control SyncDescribe(inout sync_headers_t hdr, inout sync_metadata_t meta) {
    bit<64> other;
    bit<64> tail;

    apply {
        hdr.message.version = SYNC_VERSION;
        hdr.message.group = meta.group;
        hdr.message.switch_id = meta.switch_id;
        sync_incarnation.read(hdr.message.incarnation, 0);
        hdr.message.time = meta.now;
        hdr.message.fetch = SYNC_FETCH;
        sync_term.read(hdr.message.term, meta.at);
        sync_stamp.read(hdr.message.stamp, meta.at);
        sync_shift.read(hdr.message.after, meta.at);
        sync_epoch.read(hdr.message.epoch, meta.at);
        sync_kind.read(hdr.message.kind, meta.at);
        sync_fill.read(hdr.message.operand, meta.at);
        sync_sweep_took.read(hdr.message.sweep, meta.at);
        sync_byte_time.read(other, meta.at);
        hdr.message.lost = other[31:0];
        sync_head.read(other, meta.at);
        sync_tail.read(tail, meta.at);
        tail = tail - other;
        hdr.message.queued = tail[31:0];
        sync_threshold.read(hdr.message.threshold, meta.at);
        if (SYNC_RULE_THRESHOLD_KEPT) {
            sync_threshold_sweep.read(other, meta.at);
            if (other > hdr.message.threshold) {
                hdr.message.threshold = other;
            }
            sync_threshold_last.read(other, meta.at);
            if (other > hdr.message.threshold) {
                hdr.message.threshold = other;
            }
        }
        hdr.message.bound = hdr.message.threshold;
        sync_peak.read(other, meta.at);
        if (other > hdr.message.bound) {
            hdr.message.bound = other;
        }
        sync_peak_last.read(other, meta.at);
        if (other > hdr.message.bound) {
            hdr.message.bound = other;
        }
    }
}

// Spends the budget for a frame on the wire (rule 13).
control SyncSpend(in bit<16> bytes, inout sync_metadata_t meta) {
    bit<64> until;
    bit<64> byte_time;

    apply {
        sync_spent_until.read(until, meta.at);
        sync_byte_time.read(byte_time, meta.at);
        if (until < (bit<64>)meta.now << 16) {
            until = (bit<64>)meta.now << 16;
        }
        sync_spent_until.write(meta.at, until + (bit<64>)bytes * byte_time);
    }
}

// Puts the headers in front of the message. Addresses and ports are set.
control SyncSend(inout sync_headers_t hdr, inout sync_metadata_t meta) {
    SyncSpend() spend;
    bit<16> length;

    apply {
        length = (bit<16>)hdr.message.count * SYNC_VALUE_BYTES;
        if (hdr.message.type == SYNC_TYPE_FETCHED) {
            length = (bit<16>)hdr.message.count * SYNC_FROZEN_BYTES;
        }
        length = length + UDP_BYTES + SYNC_MESSAGE_BYTES;
        hdr.tick.setInvalid();
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.ipv4.version = 4;
        hdr.ipv4.ihl = 5;
        hdr.ipv4.diffserv = 0;
        hdr.ipv4.total_length = IPV4_BYTES + length;
        hdr.ipv4.identification = 0;
        hdr.ipv4.flags = 2;
        hdr.ipv4.fragment_offset = 0;
        hdr.ipv4.ttl = 64;
        hdr.ipv4.protocol = IP_PROTOCOL_UDP;
        hdr.udp.length = length;
        hdr.udp.checksum = 0;
        // What a tick or a request had behind its headers stays here, and frozen values of nobody.
        truncate((bit<32>)(ETHERNET_BYTES + IPV4_BYTES + length));
        spend.apply(SYNC_FRAMING_BYTES + ETHERNET_BYTES + IPV4_BYTES + length, meta);
        meta.sends = true;
    }
}

// Answers the message at hand, which bears type and values of the answer.
control SyncAnswer(inout sync_headers_t hdr, inout sync_metadata_t meta) {
    SyncSend() send;
    bit<48> mac;

    apply {
        mac = hdr.ethernet.source;
        hdr.ethernet.source = hdr.ethernet.destination;
        hdr.ethernet.destination = mac;
        hdr.ipv4.destination = hdr.ipv4.source;
        hdr.ipv4.source = meta.own_address;
        hdr.udp.destination_port = hdr.udp.source_port;
        hdr.udp.source_port = SYNC_UDP_PORT;
        send.apply(hdr, meta);
    }
}

// Says that the message changed nothing. What it named stays in it.
control SyncRefuse(in bit<8> outcome, inout sync_headers_t hdr, inout sync_metadata_t meta) {
    SyncDropValues() drop_values;
    SyncAnswer() answer;

    apply {
        sync_events.count(SYNC_EVENT_REFUSED);
        hdr.message.type = SYNC_TYPE_REFUSED;
        hdr.message.outcome = outcome;
        hdr.message.switch_id = meta.switch_id;
        sync_incarnation.read(hdr.message.incarnation, 0);
        if (meta.group < SYNC_GROUPS) {
            sync_term.read(hdr.message.term, meta.at);
        }
        hdr.message.time = meta.now;
        hdr.message.fetch = SYNC_FETCH;
        drop_values.apply(hdr);
        answer.apply(hdr, meta);
    }
}

#endif
