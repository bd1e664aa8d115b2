// UDP-flood prevention (ApproSync Table II, UF): counts the UDP packets of pairs of source and
// destination, exactly, and drops those of pairs that the control plane has blocked. A verdict names
// its pair, so that no other is dropped.

#include <core.p4>
#include <v1model.p4>

#include "sketch.p4"

// Buckets are 2 to this, at most 24.
#ifndef UDP_FLOOD_BUCKET_BITS
#define UDP_FLOOD_BUCKET_BITS 16
#endif

const bit<32> BUCKETS = 32w1 << UDP_FLOOD_BUCKET_BITS;

// A bucket is two elements: source and destination of the pair that came first in this window, and
// its packets. Both are of one register, so that a cut takes them at one moment.
@synced(kind = "opaque")
register<bit<64>>(2 * BUCKETS) pairs;
// Of each bucket source and destination that are blocked, or 0: the control plane writes them.
@synced(kind = "opaque")
register<bit<64>>(BUCKETS) blocked;

#define SKETCH_OWN_INGRESS
#include "sketch_switch.p4"

control CountPair(in bit<32> source, in bit<32> destination, out bool drops) {
    // Packets of pairs that are counted, that found their bucket taken, and that are blocked.
    counter(3, CounterType.packets) flood_events;
    bit<64> pair;
    bit<64> held;
    bit<64> count;
    bit<64> verdict;
    bit<32> bucket;

    apply {
        pair = source ++ destination;
        bucket = (bit<32>)SKETCH_UPPER(
            SKETCH_HASH_OF_PAIR(0, source, destination),
            UDP_FLOOD_BUCKET_BITS
        );
        blocked.read(verdict, bucket);
        drops = verdict == pair;
        pairs.read(held, 2 * bucket);
        pairs.read(count, 2 * bucket + 1);
        if (verdict != 0 && !drops) {
            // The bucket says how much the blocked pair sends.
            flood_events.count(1);
        } else if (count == 0) {
            pairs.write(2 * bucket, pair);
            pairs.write(2 * bucket + 1, 1);
            flood_events.count(0);
        } else if (held == pair) {
            pairs.write(2 * bucket + 1, count + 1);
            flood_events.count(0);
        } else {
            flood_events.count(1);
        }
        if (drops) {
            flood_events.count(2);
        }
    }
}

control FloodIngress(
    inout transport_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    CountPair() pair;
    Router() router;
    bool drops = false;

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.version == 4 && standard_metadata.checksum_error == 0) {
            // Fragments too: a flood may have no ports.
            if (hdr.ipv4.protocol == IP_PROTOCOL_UDP) {
                pair.apply(hdr.ipv4.source, hdr.ipv4.destination, drops);
            }
            if (drops) {
                mark_to_drop(standard_metadata);
            } else {
                router.apply(hdr.ethernet, hdr.ipv4, standard_metadata);
            }
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

V1Switch(
    SketchParser(),
    SketchVerifyChecksum(),
    FloodIngress(),
    SketchEgress(),
    SketchComputeChecksum(),
    SketchDeparser()
) main;
