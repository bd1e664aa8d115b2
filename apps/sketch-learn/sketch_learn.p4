// SketchLearn (Huang et al., SIGCOMM 2018): by hash of the source all packets, and for each of its 32
// bits those of sources that have the bit. The control plane learns from them how the bits are
// distributed, and finds the sources that are not.

#include <core.p4>
#include <v1model.p4>

#include "sketch.p4"

// Columns are 2 to this, at most 24.
#ifndef SKETCH_LEARN_COLUMN_BITS
#define SKETCH_LEARN_COLUMN_BITS 10
#endif

const bit<32> COLUMNS = 32w1 << SKETCH_LEARN_COLUMN_BITS;

// All packets, then those with bit 0 of the source, with bit 1, and so on.
@synced(kind = "counter")
register<bit<32>>(33 * COLUMNS) levels;

control CountPacket(
    in bit<32> source,
    in bit<32> destination,
    in bit<8> protocol,
    in bit<16> source_port,
    in bit<16> destination_port
) {
    bit<32> column;
    bit<32> count;

    action add(in bit<32> element) {
        levels.read(count, element);
        levels.write(element, count + 1);
    }

    apply {
        column = (bit<32>)SKETCH_UPPER(SKETCH_HASH_OF_WORD(0, source), SKETCH_LEARN_COLUMN_BITS);
        add(column);
        if (source[0:0] == 1) {
            add(1 * COLUMNS + column);
        }
        if (source[1:1] == 1) {
            add(2 * COLUMNS + column);
        }
        if (source[2:2] == 1) {
            add(3 * COLUMNS + column);
        }
        if (source[3:3] == 1) {
            add(4 * COLUMNS + column);
        }
        if (source[4:4] == 1) {
            add(5 * COLUMNS + column);
        }
        if (source[5:5] == 1) {
            add(6 * COLUMNS + column);
        }
        if (source[6:6] == 1) {
            add(7 * COLUMNS + column);
        }
        if (source[7:7] == 1) {
            add(8 * COLUMNS + column);
        }
        if (source[8:8] == 1) {
            add(9 * COLUMNS + column);
        }
        if (source[9:9] == 1) {
            add(10 * COLUMNS + column);
        }
        if (source[10:10] == 1) {
            add(11 * COLUMNS + column);
        }
        if (source[11:11] == 1) {
            add(12 * COLUMNS + column);
        }
        if (source[12:12] == 1) {
            add(13 * COLUMNS + column);
        }
        if (source[13:13] == 1) {
            add(14 * COLUMNS + column);
        }
        if (source[14:14] == 1) {
            add(15 * COLUMNS + column);
        }
        if (source[15:15] == 1) {
            add(16 * COLUMNS + column);
        }
        if (source[16:16] == 1) {
            add(17 * COLUMNS + column);
        }
        if (source[17:17] == 1) {
            add(18 * COLUMNS + column);
        }
        if (source[18:18] == 1) {
            add(19 * COLUMNS + column);
        }
        if (source[19:19] == 1) {
            add(20 * COLUMNS + column);
        }
        if (source[20:20] == 1) {
            add(21 * COLUMNS + column);
        }
        if (source[21:21] == 1) {
            add(22 * COLUMNS + column);
        }
        if (source[22:22] == 1) {
            add(23 * COLUMNS + column);
        }
        if (source[23:23] == 1) {
            add(24 * COLUMNS + column);
        }
        if (source[24:24] == 1) {
            add(25 * COLUMNS + column);
        }
        if (source[25:25] == 1) {
            add(26 * COLUMNS + column);
        }
        if (source[26:26] == 1) {
            add(27 * COLUMNS + column);
        }
        if (source[27:27] == 1) {
            add(28 * COLUMNS + column);
        }
        if (source[28:28] == 1) {
            add(29 * COLUMNS + column);
        }
        if (source[29:29] == 1) {
            add(30 * COLUMNS + column);
        }
        if (source[30:30] == 1) {
            add(31 * COLUMNS + column);
        }
        if (source[31:31] == 1) {
            add(32 * COLUMNS + column);
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
