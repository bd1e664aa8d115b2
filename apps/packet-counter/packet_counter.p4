// Packets and bytes of each source address (ApproSync Table II, PC), with a view at the control
// plane that says how far it is off.

#include <core.p4>
#include <v1model.p4>

#include "headers.p4"
#include "ipv4.p4"
#include "router.p4"

// Sources that are told apart, a power of two; the ring is four times as long.
#ifndef PACKET_COUNTER_LOCATIONS
#define PACKET_COUNTER_LOCATIONS 65536
#endif

#define SYNC_GROUPS 2
#define SYNC_LOCATIONS (2 * PACKET_COUNTER_LOCATIONS)
#define SYNC_RINGS (8 * PACKET_COUNTER_LOCATIONS)

#include "sync/shape.p4"

const bit<16> GROUP_PACKETS = 0;
const bit<16> GROUP_BYTES = 1;

@in_view
register<bit<32>>(PACKET_COUNTER_LOCATIONS) packets;
@in_view
register<bit<64>>(PACKET_COUNTER_LOCATIONS) bytes;

control SyncShape(in bit<16> group, out sync_shape_t shape) {
    apply {
        shape.kind = SYNC_COUNTER;
        shape.size = PACKET_COUNTER_LOCATIONS;
        shape.ring_mask = 4 * PACKET_COUNTER_LOCATIONS - 1;
        if (group == GROUP_PACKETS) {
            shape.mask = 0xffffffff;
            shape.base = 0;
            shape.ring_base = 0;
        } else {
            shape.mask = 0xffffffffffffffff;
            shape.base = PACKET_COUNTER_LOCATIONS;
            shape.ring_base = 4 * PACKET_COUNTER_LOCATIONS;
        }
    }
}

control SyncAccess(in bit<16> group, in bit<32> index, in bool write, inout bit<64> value) {
    bit<32> narrow;

    apply {
        if (group == GROUP_PACKETS) {
            if (write) {
                packets.write(index, value[31:0]);
            } else {
                packets.read(narrow, index);
                value = (bit<64>)narrow;
            }
        } else {
            if (write) {
                bytes.write(index, value);
            } else {
                bytes.read(value, index);
            }
        }
    }
}

#include "sync.p4"

struct headers_t {
    sync_headers_t sync;
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata_t {
    sync_metadata_t sync;
}

parser CounterParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    SyncParser() sync;

    state start {
        sync.apply(packet, hdr.sync, meta.sync, standard_metadata);
        transition select(hdr.sync.ethernet.isValid()) {
            true: accept;
            default: ethernet;
        }
    }

    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control CounterVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    SyncVerifyChecksum() sync;
    Ipv4VerifyChecksum() ipv4;

    apply {
        sync.apply(hdr.sync);
        ipv4.apply(hdr.ipv4);
    }
}

// Counts a packet and its bytes.
control Count(in ipv4_t ipv4) {
    SyncBefore() before_packets;
    SyncAfter() after_packets;
    SyncBefore() before_bytes;
    SyncAfter() after_bytes;
    bit<32> index;
    bit<32> packet_count;
    bit<64> byte_count;
    bit<64> held;

    apply {
        index = ipv4.source & (PACKET_COUNTER_LOCATIONS - 1);
        before_packets.apply(GROUP_PACKETS, index);
        packets.read(packet_count, index);
        held = (bit<64>)packet_count;
        packet_count = packet_count + 1;
        packets.write(index, packet_count);
        after_packets.apply(GROUP_PACKETS, index, held, (bit<64>)packet_count);
        before_bytes.apply(GROUP_BYTES, index);
        bytes.read(byte_count, index);
        held = byte_count;
        byte_count = byte_count + (bit<64>)ipv4.total_length;
        bytes.write(index, byte_count);
        after_bytes.apply(GROUP_BYTES, index, held, byte_count);
    }
}

control CounterIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    SyncIngress() sync;
    Count() count;
    Router() router;

    apply {
        sync.apply(hdr.sync, meta.sync, standard_metadata);
        if (!meta.sync.taken) {
            if (hdr.ipv4.isValid() && standard_metadata.checksum_error == 0) {
                // Packets that the router drops count too.
                @atomic {
                    count.apply(hdr.ipv4);
                }
                router.apply(hdr.ethernet, hdr.ipv4, standard_metadata);
            } else {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control CounterEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply { }
}

control CounterComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    SyncComputeChecksum() sync;
    Ipv4ComputeChecksum() ipv4;

    apply {
        sync.apply(hdr.sync);
        ipv4.apply(hdr.ipv4);
    }
}

control CounterDeparser(packet_out packet, in headers_t hdr) {
    SyncDeparser() sync;

    apply {
        sync.apply(packet, hdr.sync);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(
    CounterParser(),
    CounterVerifyChecksum(),
    CounterIngress(),
    CounterEgress(),
    CounterComputeChecksum(),
    CounterDeparser()
) main;
