// Sampling by size of flow (ApproSync Table II, FS; after SNAP's example): of a small flow every few
// packets are copied to a collector, of a medium and of a large one fewer.

#include <core.p4>
#include <v1model.p4>

#include "sketch.p4"

// Places of flows are 2 to this, at most 24.
#ifndef SAMPLING_BITS
#define SAMPLING_BITS 16
#endif

const bit<32> PLACES = 32w1 << SAMPLING_BITS;
// Mirror session of copies.
const bit<32> SAMPLE_SESSION = 1;

// Packets of the flows of a place; the greatest number stays.
@synced(kind = "counter")
register<bit<32>>(PLACES) sizes;
// Copies of them.
@synced(kind = "counter")
register<bit<32>>(PLACES) samples;
// Packets since the last copy.
register<bit<32>>(PLACES) gaps;

#define SKETCH_OWN_INGRESS
#include "sketch_switch.p4"

control Sample(inout transport_headers_t hdr, out bool is_sample) {
    TransportPorts() ports;
    // Packets of small, medium and large flows, and copies of each.
    counter(6, CounterType.packets) sampling_events;
    bit<32> medium = 100;
    bit<32> large = 1000;
    bit<32> of_small = 5;
    bit<32> of_medium = 50;
    bit<32> of_large = 500;
    bit<32> every;
    bit<32> size;
    bit<32> gap;
    bit<32> count;
    bit<32> place;
    bit<32> kind;
    bit<16> source_port;
    bit<16> destination_port;

    // Packets from which on a flow is medium, and large; one of so many packets is copied of a small,
    // a medium and a large flow, none with 0.
    action sample(
        bit<32> medium_from,
        bit<32> large_from,
        bit<32> small_every,
        bit<32> medium_every,
        bit<32> large_every
    ) {
        medium = medium_from;
        large = large_from;
        of_small = small_every;
        of_medium = medium_every;
        of_large = large_every;
    }

    table sampling {
        actions = { sample; }
        default_action = sample(100, 1000, 5, 50, 500);
    }

    apply {
        sampling.apply();
        ports.apply(hdr, source_port, destination_port);
        place = (bit<32>)SKETCH_UPPER(
            SKETCH_HASH(
                0,
                hdr.ipv4.source,
                hdr.ipv4.destination,
                source_port ++ destination_port,
                (bit<32>)hdr.ipv4.protocol
            ),
            SAMPLING_BITS
        );
        sizes.read(size, place);
        size = size |+| 1;
        sizes.write(place, size);
        if (size >= large) {
            kind = 2;
            every = of_large;
        } else if (size >= medium) {
            kind = 1;
            every = of_medium;
        } else {
            kind = 0;
            every = of_small;
        }
        sampling_events.count(kind);
        gaps.read(gap, place);
        gap = gap |+| 1;
        is_sample = every != 0 && gap >= every;
        if (is_sample) {
            gap = 0;
            samples.read(count, place);
            samples.write(place, count |+| 1);
            sampling_events.count(kind + 3);
        }
        gaps.write(place, gap);
    }
}

control SamplingIngress(
    inout transport_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    Sample() sample;
    Router() router;
    bool is_sample;

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.version == 4 && standard_metadata.checksum_error == 0) {
            sample.apply(hdr, is_sample);
            if (is_sample) {
                clone(CloneType.I2E, SAMPLE_SESSION);
            }
            router.apply(hdr.ethernet, hdr.ipv4, standard_metadata);
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

V1Switch(
    SketchParser(),
    SketchVerifyChecksum(),
    SamplingIngress(),
    SketchEgress(),
    SketchComputeChecksum(),
    SketchDeparser()
) main;
