// Elephant flows (ApproSync Table II, EF): flows of five fields with more bytes than a threshold, by a
// Count-Min sketch. Their packets are marked, and dropped beyond a limit.

#include <core.p4>
#include <v1model.p4>

#include "sketch.p4"

// Columns of each of the four rows are 2 to this, at most 24.
#ifndef ELEPHANT_COLUMN_BITS
#define ELEPHANT_COLUMN_BITS 16
#endif
// Places of the flows that were found are 2 to this, at most 24.
#ifndef ELEPHANT_FLOW_BITS
#define ELEPHANT_FLOW_BITS 15
#endif

const bit<32> COLUMNS = 32w1 << ELEPHANT_COLUMN_BITS;
const bit<32> PLACES = 32w1 << ELEPHANT_FLOW_BITS;

// Bytes of IPv4 packets: four rows one behind the other, and behind them the sum of all that was
// counted. The greatest number stays.
@synced(kind = "counter")
register<bit<32>>(4 * COLUMNS + 1) bytes;
// Of each place two elements for the flow that was found first: source and destination; protocol (8
// bits), ports (16 each), and 24 bits of a hash of the addresses, by which the two are known to
// belong together.
@synced(kind = "opaque")
register<bit<64>>(2 * PLACES) elephants;

#define SKETCH_OWN_INGRESS
#include "sketch_switch.p4"

// Adds to all rows; the least counter bounds the flow's bytes from above.
control CountBytes(
    in bit<32> source,
    in bit<32> destination,
    in bit<32> ports,
    in bit<8> protocol,
    in bit<16> length,
    out bit<32> estimate
) {
    bit<32> count;

    action add(in bit<32> element) {
        bytes.read(count, element);
        count = count |+| (bit<32>)length;
        bytes.write(element, count);
        estimate = count < estimate ? count : estimate;
    }

    apply {
        estimate = 0xffffffff;
        add((bit<32>)SKETCH_UPPER(
            SKETCH_HASH(0, source, destination, ports, (bit<32>)protocol),
            ELEPHANT_COLUMN_BITS
        ));
        add(COLUMNS
            + (bit<32>)SKETCH_UPPER(
                SKETCH_HASH(1, source, destination, ports, (bit<32>)protocol),
                ELEPHANT_COLUMN_BITS
            ));
        add(2 * COLUMNS
            + (bit<32>)SKETCH_UPPER(
                SKETCH_HASH(2, source, destination, ports, (bit<32>)protocol),
                ELEPHANT_COLUMN_BITS
            ));
        add(3 * COLUMNS
            + (bit<32>)SKETCH_UPPER(
                SKETCH_HASH(3, source, destination, ports, (bit<32>)protocol),
                ELEPHANT_COLUMN_BITS
            ));
        add(4 * COLUMNS);
    }
}

// Keeps the name of a flow, if its place is free.
control NameFlow(
    in bit<32> source,
    in bit<32> destination,
    in bit<32> ports,
    in bit<8> protocol,
    out bool has_room
) {
    bit<32> place;
    bit<64> addresses;
    bit<64> rest;
    bit<64> held;
    bit<64> held_rest;

    apply {
        place = (bit<32>)SKETCH_UPPER(
            SKETCH_HASH(4, source, destination, ports, (bit<32>)protocol),
            ELEPHANT_FLOW_BITS
        );
        addresses = source ++ destination;
        rest = protocol ++ ports
            ++ (bit<24>)SKETCH_UPPER(SKETCH_HASH_OF_PAIR(5, source, destination), 24);
        elephants.read(held, 2 * place);
        elephants.read(held_rest, 2 * place + 1);
        has_room = (held == addresses && held_rest == rest) || (held == 0 && held_rest == 0);
        if (held == 0 && held_rest == 0) {
            elephants.write(2 * place, addresses);
            elephants.write(2 * place + 1, rest);
        }
    }
}

control ElephantIngress(
    inout transport_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    TransportPorts() ports;
    CountBytes() count;
    NameFlow() name;
    Router() router;
    // Packets of other flows, of elephants, of elephants beyond the limit, and of elephants whose
    // place another one has.
    counter(4, CounterType.packets_and_bytes) elephant_events;
    bit<32> threshold = 0xffffffff;
    bit<32> limit = 0xffffffff;
    bit<6> mark = 0;
    bit<32> estimate;
    bit<16> source_port;
    bit<16> destination_port;
    bool has_room;
    bool drops = false;

    // Flows with more bytes than `above` are elephants, whose packets get this DSCP; beyond `most`
    // bytes they are dropped.
    action judge(bit<32> above, bit<6> dscp, bit<32> most) {
        threshold = above;
        mark = dscp;
        limit = most;
    }

    table judgement {
        actions = { judge; }
        default_action = judge(10000000, 8, 0xffffffff);
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.version == 4 && standard_metadata.checksum_error == 0) {
            judgement.apply();
            ports.apply(hdr, source_port, destination_port);
            count.apply(
                hdr.ipv4.source,
                hdr.ipv4.destination,
                source_port ++ destination_port,
                hdr.ipv4.protocol,
                hdr.ipv4.total_length,
                estimate
            );
            if (estimate > threshold) {
                elephant_events.count(1);
                hdr.ipv4.diffserv = mark ++ hdr.ipv4.diffserv[1:0];
                name.apply(
                    hdr.ipv4.source,
                    hdr.ipv4.destination,
                    source_port ++ destination_port,
                    hdr.ipv4.protocol,
                    has_room
                );
                if (!has_room) {
                    elephant_events.count(3);
                }
                if (estimate > limit) {
                    elephant_events.count(2);
                    drops = true;
                }
            } else {
                elephant_events.count(0);
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
    ElephantIngress(),
    SketchEgress(),
    SketchComputeChecksum(),
    SketchDeparser()
) main;
