// Count-Min sketches of flows, of the distinct destinations of each source, and of the distinct
// sources of each destination (Cormode and Muthukrishnan 2005; ApproSync §VII-C): heavy hitters,
// icebergs, super-spreaders and victims of DDoS.

#include <core.p4>
#include <v1model.p4>

#include "sketch.p4"

// Columns of the sketch of flows, and of those of partners, are 2 to these, at most 24.
#ifndef COUNT_MIN_COLUMN_BITS
#define COUNT_MIN_COLUMN_BITS 16
#endif
#ifndef COUNT_MIN_PARTNER_BITS
#define COUNT_MIN_PARTNER_BITS 14
#endif
// Bits of the filter of pairs are 2 to this, at most 30.
#ifndef COUNT_MIN_FILTER_BITS
#define COUNT_MIN_FILTER_BITS 20
#endif

const bit<32> FLOW_COLUMNS = 32w1 << COUNT_MIN_COLUMN_BITS;
const bit<32> PARTNER_COLUMNS = 32w1 << COUNT_MIN_PARTNER_BITS;

// Three rows one behind the other, and behind them the number of all that was counted.
@synced(kind = "counter")
register<bit<32>>(3 * FLOW_COLUMNS + 1) flows;
// By source, the destinations that were new to `pairs`.
@synced(kind = "counter")
register<bit<32>>(3 * PARTNER_COLUMNS + 1) destinations;
// By destination, the sources that were new to `pairs`.
@synced(kind = "counter")
register<bit<32>>(3 * PARTNER_COLUMNS + 1) sources;
// Bloom filter of pairs of source and destination.
register<bit<1>>(32w1 << COUNT_MIN_FILTER_BITS) pairs;

control CountFlow(
    in bit<32> source,
    in bit<32> destination,
    in bit<32> ports,
    in bit<32> protocol
) {
    bit<32> count;
    bit<64> value;

    action add(in bit<32> element) {
        flows.read(count, element);
        flows.write(element, count + 1);
    }

    apply {
        value = SKETCH_HASH(0, source, destination, ports, protocol);
        add((bit<32>)SKETCH_UPPER(value, COUNT_MIN_COLUMN_BITS));
        value = SKETCH_HASH(1, source, destination, ports, protocol);
        add(FLOW_COLUMNS + (bit<32>)SKETCH_UPPER(value, COUNT_MIN_COLUMN_BITS));
        value = SKETCH_HASH(2, source, destination, ports, protocol);
        add(2 * FLOW_COLUMNS + (bit<32>)SKETCH_UPPER(value, COUNT_MIN_COLUMN_BITS));
        add(3 * FLOW_COLUMNS);
    }
}

// True of a pair that the filter has not seen; it has seen it then.
control SeePair(in bit<32> source, in bit<32> destination, out bool is_new) {
    bit<1> seen;
    bit<64> value;

    action see(in bit<32> element) {
        pairs.read(seen, element);
        is_new = is_new || seen == 0;
        pairs.write(element, 1);
    }

    apply {
        is_new = false;
        value = SKETCH_HASH_OF_PAIR(3, source, destination);
        see((bit<32>)SKETCH_UPPER(value, COUNT_MIN_FILTER_BITS));
        value = SKETCH_HASH_OF_PAIR(4, source, destination);
        see((bit<32>)SKETCH_UPPER(value, COUNT_MIN_FILTER_BITS));
        value = SKETCH_HASH_OF_PAIR(5, source, destination);
        see((bit<32>)SKETCH_UPPER(value, COUNT_MIN_FILTER_BITS));
    }
}

control CountPartners(in bit<32> source, in bit<32> destination) {
    bit<32> count;
    bit<64> value;

    action add_destination(in bit<32> element) {
        destinations.read(count, element);
        destinations.write(element, count + 1);
    }

    action add_source(in bit<32> element) {
        sources.read(count, element);
        sources.write(element, count + 1);
    }

    apply {
        value = SKETCH_HASH_OF_WORD(6, source);
        add_destination((bit<32>)SKETCH_UPPER(value, COUNT_MIN_PARTNER_BITS));
        value = SKETCH_HASH_OF_WORD(7, source);
        add_destination(PARTNER_COLUMNS + (bit<32>)SKETCH_UPPER(value, COUNT_MIN_PARTNER_BITS));
        value = SKETCH_HASH_OF_WORD(8, source);
        add_destination(2 * PARTNER_COLUMNS + (bit<32>)SKETCH_UPPER(value, COUNT_MIN_PARTNER_BITS));
        add_destination(3 * PARTNER_COLUMNS);
        value = SKETCH_HASH_OF_WORD(9, destination);
        add_source((bit<32>)SKETCH_UPPER(value, COUNT_MIN_PARTNER_BITS));
        value = SKETCH_HASH_OF_WORD(10, destination);
        add_source(PARTNER_COLUMNS + (bit<32>)SKETCH_UPPER(value, COUNT_MIN_PARTNER_BITS));
        value = SKETCH_HASH_OF_WORD(11, destination);
        add_source(2 * PARTNER_COLUMNS + (bit<32>)SKETCH_UPPER(value, COUNT_MIN_PARTNER_BITS));
        add_source(3 * PARTNER_COLUMNS);
    }
}

control CountPacket(
    in bit<32> source,
    in bit<32> destination,
    in bit<8> protocol,
    in bit<16> source_port,
    in bit<16> destination_port
) {
    CountFlow() flow;
    SeePair() pair;
    CountPartners() partners;
    bool is_new;

    apply {
        flow.apply(source, destination, source_port ++ destination_port, (bit<32>)protocol);
        pair.apply(source, destination, is_new);
        if (is_new) {
            partners.apply(source, destination);
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
