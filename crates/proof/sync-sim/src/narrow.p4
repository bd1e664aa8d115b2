// Narrow counters, whose widths pass again and again, beside what they have counted in truth.
// `stateplane sync` makes the switch's program of it.

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

@synced
register<bit<8>>(LOCATIONS) packets;
@synced
register<bit<16>>(LOCATIONS) bytes;
register<bit<64>>(LOCATIONS) counted_packets;
register<bit<64>>(LOCATIONS) counted_bytes;

parser NarrowParser(
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

control NarrowVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control NarrowIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    bit<8> packet_count;
    bit<16> byte_count;
    bit<64> total;

    action count_bytes() {
        bytes.read(byte_count, meta.index);
        bytes.write(meta.index, byte_count + hdr.ipv4.length);
    }

    table sizes {
        actions = { count_bytes; }
        const default_action = count_bytes();
    }

    apply {
        meta.index = hdr.ipv4.source & (LOCATIONS - 1);
        sizes.apply();
        packets.read(packet_count, meta.index);
        packets.write(meta.index, packet_count + 1);
        counted_packets.read(total, meta.index);
        counted_packets.write(meta.index, total + 1);
        counted_bytes.read(total, meta.index);
        counted_bytes.write(meta.index, total + (bit<64>)hdr.ipv4.length);
        mark_to_drop(standard_metadata);
    }
}

control NarrowEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply { }
}

control NarrowCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control NarrowDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(
    NarrowParser(),
    NarrowVerify(),
    NarrowIngress(),
    NarrowEgress(),
    NarrowCompute(),
    NarrowDeparser()
) main;
