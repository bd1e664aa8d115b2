// FlowRadar (Li et al., NSDI 2016): all flows of five fields with their packets. A Bloom filter
// says which flows are new; each flow is in three cells, with the XOR of their flows, the number of
// flows, and their packets. The control plane decodes the cells of one moment.

#include <core.p4>
#include <v1model.p4>

#include "sketch.p4"

// Cells of each of the three tables are 2 to this, at most 24.
#ifndef FLOW_RADAR_CELL_BITS
#define FLOW_RADAR_CELL_BITS 12
#endif
// Words of 64 bits of the Bloom filter are 2 to this, at most 24.
#ifndef FLOW_RADAR_FILTER_BITS
#define FLOW_RADAR_FILTER_BITS 13
#endif

const bit<32> TABLE_CELLS = 32w1 << FLOW_RADAR_CELL_BITS;
const bit<32> FILTER = 9 * TABLE_CELLS;

// Cells of three words: XOR of the addresses, XOR of ports and protocol, number of flows (24 bits)
// and packets (40 bits). Behind them the filter. All of it is one register, so that a cut takes all
// of it at one moment, and fills cells and filter with 0 together.
@synced(kind = "opaque")
register<bit<64>>(FILTER + (32w1 << FLOW_RADAR_FILTER_BITS)) radar;

// The bit of a function's value in the filter: false of a flow that is new. It is set then.
control SeeFlow(in bit<64> value, inout bool is_new) {
    bit<64> word;
    bit<64> place;
    bit<32> element;
    bit<64> mask;

    apply {
        place = (bit<64>)SKETCH_UPPER(value, FLOW_RADAR_FILTER_BITS + 6);
        element = FILTER + (bit<32>)(place >> 6);
        mask = 64w1 << place[5:0];
        radar.read(word, element);
        if ((word & mask) == 0) {
            is_new = true;
            radar.write(element, word | mask);
        }
    }
}

// Counts a packet in a cell, and of a new flow the flow.
control CountInCell(in bit<32> cell, in bool is_new, in bit<64> pair, in bit<64> rest) {
    bit<64> word;
    bit<32> element;

    apply {
        element = 3 * cell;
        if (is_new) {
            radar.read(word, element);
            radar.write(element, word ^ pair);
            radar.read(word, element + 1);
            radar.write(element + 1, word ^ rest);
        }
        radar.read(word, element + 2);
        if (is_new) {
            word[63:40] = word[63:40] + 1;
        }
        word[39:0] = word[39:0] + 1;
        radar.write(element + 2, word);
    }
}

control CountPacket(
    in bit<32> source,
    in bit<32> destination,
    in bit<8> protocol,
    in bit<16> source_port,
    in bit<16> destination_port
) {
    SeeFlow() first_bit;
    SeeFlow() second_bit;
    SeeFlow() third_bit;
    CountInCell() first_cell;
    CountInCell() second_cell;
    CountInCell() third_cell;
    bit<32> ports;
    bit<64> pair;
    bit<64> rest;
    bit<64> value;
    bit<32> cell;
    bool is_new = false;

    apply {
        ports = source_port ++ destination_port;
        pair = source ++ destination;
        rest = ports ++ (bit<32>)protocol;
        value = SKETCH_HASH(3, source, destination, ports, protocol);
        first_bit.apply(value, is_new);
        value = SKETCH_HASH(4, source, destination, ports, protocol);
        second_bit.apply(value, is_new);
        value = SKETCH_HASH(5, source, destination, ports, protocol);
        third_bit.apply(value, is_new);
        value = SKETCH_HASH(0, source, destination, ports, protocol);
        cell = (bit<32>)SKETCH_UPPER(value, FLOW_RADAR_CELL_BITS);
        first_cell.apply(cell, is_new, pair, rest);
        value = SKETCH_HASH(1, source, destination, ports, protocol);
        cell = TABLE_CELLS + (bit<32>)SKETCH_UPPER(value, FLOW_RADAR_CELL_BITS);
        second_cell.apply(cell, is_new, pair, rest);
        value = SKETCH_HASH(2, source, destination, ports, protocol);
        cell = 2 * TABLE_CELLS + (bit<32>)SKETCH_UPPER(value, FLOW_RADAR_CELL_BITS);
        third_cell.apply(cell, is_new, pair, rest);
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
