// Flowbits (ApproSync Table II, FB; after Snort's option and SNAP's example): rules on packets set
// bits of a connection, and match bits that earlier packets have set.

#include <core.p4>
#include <v1model.p4>

#include "ipv4.p4"
#include "payload.p4"
#include "router.p4"
#include "sketch.p4"

// Places of connections are 2 to this, at most 24.
#ifndef FLOWBITS_BITS
#define FLOWBITS_BITS 16
#endif

const bit<32> PLACES = 32w1 << FLOWBITS_BITS;

// The connection that came first to the place: 40 bits of a hash, alerts (8 bits, the greatest number
// stays), 1 if the end with the lower address and port began (8 bits), and the bits (8). A place
// that is 0 is free.
@synced(kind = "opaque")
register<bit<64>>(PLACES) connections;

struct headers_t {
    payload_headers_t payload;
}

struct metadata_t {
    bit<16> bytes;
    // The payload's first eight bytes, if it has as many.
    bit<1> has_content;
    bit<64> content;
}

parser FlowbitsParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    PayloadParser() payload;

    state start {
        meta.has_content = 0;
        meta.content = 0;
        payload.apply(packet, hdr.payload, meta.bytes);
        transition select(meta.bytes) {
            0 &&& 0xfff8: accept;
            default: content;
        }
    }

    state content {
        meta.content = packet.lookahead<bit<64>>();
        meta.has_content = 1;
        transition accept;
    }
}

control FlowbitsVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.payload.own.ipv4);
    }
}

// Applies the rule that matches a packet, and does what it says to the bits of its connection.
control FlowbitsIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    TransportPorts() ports;
    Router() router;
    // Packets of connections that are kept or free to be, alerts, packets that a rule dropped, and
    // packets of connections without room.
    counter(4, CounterType.packets) flowbits_events;
    bit<16> source_port;
    bit<16> destination_port;
    bit<12> flags;
    bit<32> place;
    bit<40> tag;
    bit<64> value;
    bit<64> held;
    bit<64> kept;
    // 1 if this packet's sender is the end with the lower address and port; and if it is the one that
    // began.
    bit<1> is_lower;
    bit<1> is_forward;
    bit<1> began_lower;
    bit<8> bits;
    bit<8> alerts;
    bit<48> low;
    bit<48> high;
    bool drops = false;

    action change(bit<8> set, bit<8> clear, bit<8> toggle) {
        bits = ((bits & ~clear) | set) ^ toggle;
    }

    action alert(bit<8> set, bit<8> clear, bit<8> toggle) {
        bits = ((bits & ~clear) | set) ^ toggle;
        alerts = alerts |+| 1;
        flowbits_events.count(1);
    }

    action drop(bit<8> set, bit<8> clear, bit<8> toggle) {
        bits = ((bits & ~clear) | set) ^ toggle;
        alerts = alerts |+| 1;
        drops = true;
        flowbits_events.count(2);
    }

    // A connection begins anew, in this packet's direction.
    action begin(bit<8> set) {
        bits = set;
        alerts = 0;
        began_lower = is_lower;
    }

    // Nothing is kept of the connection any more.
    action end() {
        bits = 0;
        alerts = 0;
    }

    // Of the rules that match the one with the highest priority. `bits` is what earlier packets have
    // set (isset, isnotset).
    table rules {
        key = {
            hdr.payload.own.ipv4.protocol: ternary @name("protocol");
            hdr.payload.own.ipv4.source: ternary @name("source");
            hdr.payload.own.ipv4.destination: ternary @name("destination");
            source_port: ternary @name("source_port");
            destination_port: ternary @name("destination_port");
            flags: ternary @name("flags");
            is_forward: ternary @name("is_forward");
            bits: ternary @name("bits");
            meta.has_content: ternary @name("has_content");
            meta.content: ternary @name("content");
        }
        actions = { change; alert; drop; begin; end; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    apply {
        if (hdr.payload.own.ipv4.isValid()
            && hdr.payload.own.ipv4.version == 4
            && standard_metadata.checksum_error == 0) {
            if (hdr.payload.own.tcp.isValid() || hdr.payload.own.udp.isValid()) {
                ports.apply(hdr.payload.own, source_port, destination_port);
                flags = hdr.payload.own.tcp.isValid() ? hdr.payload.own.tcp.flags : 0;
                low = hdr.payload.own.ipv4.source ++ source_port;
                high = hdr.payload.own.ipv4.destination ++ destination_port;
                is_lower = 1;
                if (low > high) {
                    low = hdr.payload.own.ipv4.destination ++ destination_port;
                    high = hdr.payload.own.ipv4.source ++ source_port;
                    is_lower = 0;
                }
                // Both directions are one connection.
                value = SKETCH_HASH(
                    0,
                    low[47:16],
                    high[47:16],
                    low[15:0] ++ high[15:0],
                    (bit<32>)hdr.payload.own.ipv4.protocol
                );
                place = (bit<32>)SKETCH_UPPER(value, FLOWBITS_BITS);
                value = SKETCH_HASH(
                    1,
                    low[47:16],
                    high[47:16],
                    low[15:0] ++ high[15:0],
                    (bit<32>)hdr.payload.own.ipv4.protocol
                );
                tag = value[63:24];
                connections.read(held, place);
                if (held == 0 || held[63:24] == tag) {
                    flowbits_events.count(0);
                    alerts = held[23:16];
                    // The end that is seen first has begun.
                    began_lower = held == 0 ? is_lower : held[8:8];
                    is_forward = is_lower ^ began_lower ^ 1;
                    bits = held[7:0];
                    rules.apply();
                    kept = tag ++ alerts ++ 7w0 ++ began_lower ++ bits;
                    if (bits == 0 && alerts == 0) {
                        kept = 0;
                    }
                    if (kept != held) {
                        connections.write(place, kept);
                    }
                } else {
                    flowbits_events.count(3);
                }
            }
            if (drops) {
                mark_to_drop(standard_metadata);
            } else {
                router.apply(hdr.payload.own.ethernet, hdr.payload.own.ipv4, standard_metadata);
            }
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control FlowbitsEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply { }
}

control FlowbitsComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.payload.own.ipv4);
    }
}

control FlowbitsDeparser(packet_out packet, in headers_t hdr) {
    PayloadDeparser() payload;

    apply {
        payload.apply(packet, hdr.payload);
    }
}

V1Switch(
    FlowbitsParser(),
    FlowbitsVerifyChecksum(),
    FlowbitsIngress(),
    FlowbitsEgress(),
    FlowbitsComputeChecksum(),
    FlowbitsDeparser()
) main;
