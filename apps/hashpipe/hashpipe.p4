// HashPipe (Sivaraman et al., SOSR 2017): the sources with the most packets. A bucket of the first
// stage takes every source; what it held goes on to the next stage and stays where it has more
// packets than the bucket there. Packets of what falls out behind the last stage are counted.

#include <core.p4>
#include <v1model.p4>

#include "sketch.p4"

// Buckets of each of the four stages are 2 to this, at most 24.
#ifndef HASHPIPE_STAGE_BITS
#define HASHPIPE_STAGE_BITS 12
#endif

const bit<32> STAGE_BUCKETS = 32w1 << HASHPIPE_STAGE_BITS;

// A bucket is a source and its packets, side by side, so that neither is seen without the other:
// stages one behind the other, and behind them the packets that were dropped.
@synced(kind = "opaque")
register<bit<64>>(4 * STAGE_BUCKETS + 1) stages;

// One stage behind the first: keeps the larger of what comes and what it holds.
control LaterStage(inout bit<32> carried, inout bit<32> count, in bit<32> element) {
    bit<64> held;

    apply {
        if (count != 0) {
            stages.read(held, element);
            if (held[31:0] != 0 && held[63:32] == carried) {
                stages.write(element, carried ++ (held[31:0] + count));
                count = 0;
            } else if (held[31:0] < count) {
                stages.write(element, carried ++ count);
                carried = held[63:32];
                count = held[31:0];
            }
        }
    }
}

control CountPacket(
    in bit<32> source,
    in bit<32> destination,
    in bit<8> protocol,
    in bit<16> source_port,
    in bit<16> destination_port
) {
    LaterStage() second;
    LaterStage() third;
    LaterStage() fourth;
    bit<32> carried;
    bit<32> count;
    bit<32> element;
    bit<64> held;

    apply {
        element = (bit<32>)SKETCH_UPPER(SKETCH_HASH_OF_WORD(0, source), HASHPIPE_STAGE_BITS);
        stages.read(held, element);
        carried = held[63:32];
        count = held[31:0];
        if (count != 0 && carried == source) {
            stages.write(element, source ++ (count + 1));
            count = 0;
        } else {
            stages.write(element, source ++ 32w1);
        }
        element = STAGE_BUCKETS
            + (bit<32>)SKETCH_UPPER(SKETCH_HASH_OF_WORD(1, carried), HASHPIPE_STAGE_BITS);
        second.apply(carried, count, element);
        element = 2 * STAGE_BUCKETS
            + (bit<32>)SKETCH_UPPER(SKETCH_HASH_OF_WORD(2, carried), HASHPIPE_STAGE_BITS);
        third.apply(carried, count, element);
        element = 3 * STAGE_BUCKETS
            + (bit<32>)SKETCH_UPPER(SKETCH_HASH_OF_WORD(3, carried), HASHPIPE_STAGE_BITS);
        fourth.apply(carried, count, element);
        if (count != 0) {
            element = 4 * STAGE_BUCKETS;
            stages.read(held, element);
            stages.write(element, held + (bit<64>)count);
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
