// UnivMon (Liu et al., SIGCOMM 2016): 32 levels of count sketches of sources, of which level l has
// those whose first l bits of a hash are ones, and at each level a table of sources that were large
// when they came last. From them the control plane estimates any sum over the counts of all sources.

#include <core.p4>
#include <v1model.p4>

#include "sketch.p4"

// Columns of each level, and places of its table, are 2 to these, at most 19.
#ifndef UNIVMON_COLUMN_BITS
#define UNIVMON_COLUMN_BITS 10
#endif
#ifndef UNIVMON_KEY_BITS
#define UNIVMON_KEY_BITS 6
#endif

const bit<32> LEVEL_COUNTERS = 32w2 << UNIVMON_COLUMN_BITS;

// A column is two counters that only grow, one for each sign.
@synced(kind = "counter")
register<bit<32>>(32 * LEVEL_COUNTERS) counts;
// A place is a source and its estimate, side by side.
@synced(kind = "opaque")
register<bit<64>>(32w32 << UNIVMON_KEY_BITS) keys;

control CountPacket(
    in bit<32> source,
    in bit<32> destination,
    in bit<8> protocol,
    in bit<16> source_port,
    in bit<16> destination_port
) {
    bit<64> sampled;
    bit<64> value;
    bit<32> own;
    bit<32> other;
    bit<32> element;
    bit<32> level = 0;
    bit<64> held;

    action add() {
        element = level * LEVEL_COUNTERS + (bit<32>)SKETCH_UPPER(value, UNIVMON_COLUMN_BITS + 1);
        counts.read(own, element);
        own = own + 1;
        counts.write(element, own);
    }

    apply {
        sampled = SKETCH_HASH_OF_WORD(0, source);
        value = SKETCH_HASH_OF_WORD(1, source);
        add();
        if (sampled >= 64w0xffffffffffffffff << 63) {
            level = 1;
            value = SKETCH_HASH_OF_WORD(2, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 62) {
            level = 2;
            value = SKETCH_HASH_OF_WORD(3, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 61) {
            level = 3;
            value = SKETCH_HASH_OF_WORD(4, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 60) {
            level = 4;
            value = SKETCH_HASH_OF_WORD(5, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 59) {
            level = 5;
            value = SKETCH_HASH_OF_WORD(6, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 58) {
            level = 6;
            value = SKETCH_HASH_OF_WORD(7, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 57) {
            level = 7;
            value = SKETCH_HASH_OF_WORD(8, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 56) {
            level = 8;
            value = SKETCH_HASH_OF_WORD(9, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 55) {
            level = 9;
            value = SKETCH_HASH_OF_WORD(10, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 54) {
            level = 10;
            value = SKETCH_HASH_OF_WORD(11, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 53) {
            level = 11;
            value = SKETCH_HASH_OF_WORD(12, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 52) {
            level = 12;
            value = SKETCH_HASH_OF_WORD(13, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 51) {
            level = 13;
            value = SKETCH_HASH_OF_WORD(14, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 50) {
            level = 14;
            value = SKETCH_HASH_OF_WORD(15, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 49) {
            level = 15;
            value = SKETCH_HASH_OF_WORD(16, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 48) {
            level = 16;
            value = SKETCH_HASH_OF_WORD(17, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 47) {
            level = 17;
            value = SKETCH_HASH_OF_WORD(18, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 46) {
            level = 18;
            value = SKETCH_HASH_OF_WORD(19, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 45) {
            level = 19;
            value = SKETCH_HASH_OF_WORD(20, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 44) {
            level = 20;
            value = SKETCH_HASH_OF_WORD(21, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 43) {
            level = 21;
            value = SKETCH_HASH_OF_WORD(22, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 42) {
            level = 22;
            value = SKETCH_HASH_OF_WORD(23, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 41) {
            level = 23;
            value = SKETCH_HASH_OF_WORD(24, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 40) {
            level = 24;
            value = SKETCH_HASH_OF_WORD(25, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 39) {
            level = 25;
            value = SKETCH_HASH_OF_WORD(26, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 38) {
            level = 26;
            value = SKETCH_HASH_OF_WORD(27, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 37) {
            level = 27;
            value = SKETCH_HASH_OF_WORD(28, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 36) {
            level = 28;
            value = SKETCH_HASH_OF_WORD(29, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 35) {
            level = 29;
            value = SKETCH_HASH_OF_WORD(30, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 34) {
            level = 30;
            value = SKETCH_HASH_OF_WORD(31, source);
            add();
        }
        if (sampled >= 64w0xffffffffffffffff << 33) {
            level = 31;
            value = SKETCH_HASH_OF_WORD(32, source);
            add();
        }
        // The estimate of the deepest level.
        counts.read(other, element ^ 1);
        own = own |-| other;
        element = (level << UNIVMON_KEY_BITS)
            + (bit<32>)SKETCH_UPPER(SKETCH_HASH_OF_WORD(33, source), UNIVMON_KEY_BITS);
        keys.read(held, element);
        if (held[63:32] == source || own >= held[31:0]) {
            keys.write(element, source ++ own);
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
