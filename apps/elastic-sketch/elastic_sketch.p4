// ElasticSketch (Yang et al., SIGCOMM 2018): sources with many packets in a heavy part, the others
// in a light part of counters. A source that has the bucket of another votes against it, and takes
// the bucket with eight votes for each packet of the other.

#include <core.p4>
#include <v1model.p4>

#include "sketch.p4"

// Buckets of the heavy part, and counters of the light part, are 2 to these, at most 24.
#ifndef ELASTIC_HEAVY_BITS
#define ELASTIC_HEAVY_BITS 12
#endif
#ifndef ELASTIC_LIGHT_BITS
#define ELASTIC_LIGHT_BITS 19
#endif

// A bucket is a source, a flag, and its packets (31 bits), side by side. With the flag, packets of
// the source may be in the light part.
@synced(kind = "opaque")
register<bit<64>>(32w1 << ELASTIC_HEAVY_BITS) heavy;
@synced(kind = "counter")
register<bit<32>>(32w1 << ELASTIC_LIGHT_BITS) light;
// Votes against each bucket: no answer of the control plane needs them.
register<bit<32>>(32w1 << ELASTIC_HEAVY_BITS) against;

control CountPacket(
    in bit<32> source,
    in bit<32> destination,
    in bit<8> protocol,
    in bit<16> source_port,
    in bit<16> destination_port
) {
    bit<32> element;
    bit<64> held;
    bit<32> votes;
    bit<32> others;
    bit<32> lighter;
    bit<32> more = 0;
    bit<32> count;

    apply {
        element = (bit<32>)SKETCH_UPPER(SKETCH_HASH_OF_WORD(0, source), ELASTIC_HEAVY_BITS);
        lighter = source;
        heavy.read(held, element);
        votes = 1w0 ++ held[30:0];
        if (votes == 0) {
            heavy.write(element, source ++ 32w1);
            against.write(element, 0);
        } else if (held[63:32] == source) {
            held[30:0] = held[30:0] + 1;
            heavy.write(element, held);
        } else {
            against.read(others, element);
            others = others + 1;
            if ((bit<35>)others < (bit<35>)votes << 3) {
                against.write(element, others);
                more = 1;
            } else {
                against.write(element, 1);
                heavy.write(element, source ++ 32w0x80000001);
                lighter = held[63:32];
                more = votes;
            }
        }
        if (more != 0) {
            element = (bit<32>)SKETCH_UPPER(SKETCH_HASH_OF_WORD(1, lighter), ELASTIC_LIGHT_BITS);
            light.read(count, element);
            light.write(element, count + more);
        }
    }
}

#include "sketch_switch.p4"

V1Switch(
    SketchParser(),
    SketchVerifyChecksum(),
    SketchIngress(),
    SketchEgress(),
    SketchComputeChecksum(),
    SketchDeparser()
) main;
