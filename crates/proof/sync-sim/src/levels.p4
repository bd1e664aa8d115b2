// Levels that packets raise and lower, and which flow a location is of: a gauge, and a key with
// its count. `stateplane sync` makes the switch's program of it.

#include <core.p4>
#include <v1model.p4>

#ifndef LOCATIONS
#define LOCATIONS 32
#endif

header ethernet_t {
    bit<96> addresses;
    bit<16> ether_type;
}

header ipv4_t {
    bit<16> kind;
    bit<16> length;
    bit<64> others;
    bit<32> source;
    bit<32> destination;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata_t {
    bit<32> index;
}

register<bit<32>>(LOCATIONS) level;

parser LevelsParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control LevelsVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control LevelsIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    register<bit<32>>(LOCATIONS) flow;
    register<bit<16>>(LOCATIONS) flow_packets;
    bit<32> present;
    bit<32> key;
    bit<16> count;

    action raise() {
        level.read(present, meta.index);
        level.write(meta.index, present + (bit<32>)hdr.ipv4.length);
    }

    action lower() {
        level.read(present, meta.index);
        level.write(meta.index, present |-| (bit<32>)hdr.ipv4.length);
    }

    table change {
        key = { hdr.ipv4.length[0:0]: exact; }
        actions = { raise; lower; }
        const entries = {
            0: raise();
            1: lower();
        }
        default_action = raise();
    }

    apply {
        meta.index = hdr.ipv4.source & (LOCATIONS - 1);
        change.apply();
        // Some lengths are of one flow, and others of another that takes its place.
        key = hdr.ipv4.source + ((bit<32>)hdr.ipv4.length & 256);
        flow.read(present, meta.index);
        flow_packets.read(count, meta.index);
        if (present != key) {
            flow.write(meta.index, key);
            count = 0;
        }
        flow_packets.write(meta.index, count + 1);
        mark_to_drop(standard_metadata);
        if (hdr.ipv4.length[1:1] == 1) {
            exit;
        }
    }
}

control LevelsEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply { }
}

control LevelsCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control LevelsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(
    LevelsParser(),
    LevelsVerify(),
    LevelsIngress(),
    LevelsEgress(),
    LevelsCompute(),
    LevelsDeparser()
) main;
