// Flowlet switching (ApproSync Table II, FL; Sinha et al., HotNets 2004, and CONGA): a flow that
// pauses longer than paths differ in delay may take another path, and its packets stay in order.

#include <core.p4>
#include <v1model.p4>

#include "sketch.p4"

// Places of flows are 2 to this, at most 24.
#ifndef FLOWLET_BITS
#define FLOWLET_BITS 14
#endif

const bit<32> PLACES = 32w1 << FLOWLET_BITS;

// When the last packet of the place came, in µs of the switch's clock.
@synced(kind = "counter")
register<bit<48>>(PLACES) times;
// The path of the place: the number of its group (upper 16 bits), and that of its member and one
// more; 0: none yet.
@synced(kind = "opaque")
register<bit<32>>(PLACES) paths;

#define SKETCH_OWN_INGRESS
#include "sketch_switch.p4"

// Chooses one of the group's members, which are at least one.
control ChooseMember(
    inout transport_headers_t hdr,
    in bit<16> group,
    in bit<16> members,
    in bit<48> now,
    out bit<16> member
) {
    TransportPorts() ports;
    // Packets that went on with their flowlet, first packets of flows and of flowlets, and packets
    // whose place had a path of another group, or of a member that is gone.
    counter(4, CounterType.packets) flowlet_events;
    bit<48> longest = 500;
    bit<48> last;
    bit<32> path;
    bit<32> place;
    bit<16> source_port;
    bit<16> destination_port;
    bit<64> value;
    bool keeps = false;

    // A pause of more µs than this ends a flowlet.
    action pause(bit<48> microseconds) {
        longest = microseconds;
    }

    table flowlet_gap {
        actions = { pause; }
        default_action = pause(500);
    }

    apply {
        flowlet_gap.apply();
        ports.apply(hdr, source_port, destination_port);
        value = SKETCH_HASH(
            0,
            hdr.ipv4.source,
            hdr.ipv4.destination,
            source_port ++ destination_port,
            (bit<32>)hdr.ipv4.protocol
        );
        place = (bit<32>)SKETCH_UPPER(value, FLOWLET_BITS);
        times.read(last, place);
        paths.read(path, place);
        if (path == 0) {
            flowlet_events.count(1);
        } else if (path[31:16] != group || path[15:0] > members) {
            flowlet_events.count(3);
        } else if (now - last > longest) {
            flowlet_events.count(2);
        } else {
            keeps = true;
            flowlet_events.count(0);
        }
        if (keeps) {
            member = path[15:0] - 1;
        } else {
            // The time makes another flowlet another draw.
            value = SKETCH_HASH(
                1,
                hdr.ipv4.source,
                hdr.ipv4.destination,
                source_port ++ destination_port,
                (bit<32>)hdr.ipv4.protocol
            );
            value = value + (bit<64>)now[31:0] * SKETCH_COEFFICIENT(8 * 1 + 4);
            member = (bit<16>)(((bit<32>)value[63:48] * (bit<32>)members) >> 16);
            paths.write(place, group ++ (member + 1));
        }
        times.write(place, now);
    }
}

control FlowletIngress(
    inout transport_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ChooseMember() choose;
    Router() router;
    ipv4_t routed;
    bit<16> group;
    bit<16> members = 0;
    bit<16> member;

    // The destination is reached by `count` members of a group, from 1 on.
    action spread(bit<16> number, bit<16> count) {
        group = number;
        members = count;
    }

    table groups {
        key = { hdr.ipv4.destination: lpm @name("destination"); }
        actions = { spread; NoAction; }
        default_action = NoAction();
        size = 4096;
    }

    // The next hop of a member, from 0 on.
    action via(bit<32> address) {
        routed.destination = address;
    }

    table members_of_groups {
        key = {
            group: exact @name("group");
            member: exact @name("member");
        }
        actions = { via; NoAction; }
        default_action = NoAction();
        size = 4096;
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.version == 4 && standard_metadata.checksum_error == 0) {
            routed = hdr.ipv4;
            groups.apply();
            if (members != 0) {
                choose.apply(
                    hdr,
                    group,
                    members,
                    standard_metadata.ingress_global_timestamp,
                    member
                );
                members_of_groups.apply();
            }
            // Routes lead to next hops, as to any address.
            router.apply(hdr.ethernet, routed, standard_metadata);
            hdr.ipv4.ttl = routed.ttl;
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

V1Switch(
    SketchParser(),
    SketchVerifyChecksum(),
    FlowletIngress(),
    SketchEgress(),
    SketchComputeChecksum(),
    SketchDeparser()
) main;
