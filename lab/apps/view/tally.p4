// Numbers the packets of each UDP flow, and counts the packets that it numbered: an ordinary
// v1model program whose numbers are kept when a switch dies, and whose counts a control plane
// looks at. All that it says about the first is the annotation of `numbers`; for the second it
// has nothing. `stateplane protect` and `stateplane sync` add both.
//
// A packet to SEQUENCER_PORT carries its number away in the first eight bytes of its payload, and
// the number of the switch that gave it in its DSCP.

#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_UDP = 17;
const bit<16> SEQUENCER_PORT = 5000;
// Flows that have a number. In what `protect` makes of the program there are as many as the table
// of flows has room for.
const bit<32> FLOWS = 4096;
// Locations at which packets are counted, by the low bits of their source port: a power of two.
const bit<32> LOCATIONS = 64;

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> length;
    bit<16> id;
    bit<3> flags;
    bit<13> offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header udp_t {
    bit<16> source;
    bit<16> destination;
    bit<16> length;
    bit<16> checksum;
}

header number_t {
    bit<64> value;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    number_t number;
}

struct metadata_t { }

@replicated(
    key = { hdr.ipv4.source, hdr.ipv4.destination, hdr.udp.source },
    when = hdr.number.isValid(),
    class = 72
)
register<bit<64>>(FLOWS) numbers;
// Stays with each switch: what the control plane knows of it is the view.
register<bit<32>>(LOCATIONS) packets;

parser TallyParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state udp {
        packet.extract(hdr.udp);
        // A number needs eight bytes of payload.
        transition select(hdr.udp.destination, hdr.udp.length) {
            (SEQUENCER_PORT, 16 .. 65535): number;
            default: accept;
        }
    }

    state number {
        packet.extract(hdr.number);
        transition accept;
    }
}

control TallyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(
            hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            {
                hdr.ipv4.version,
                hdr.ipv4.ihl,
                hdr.ipv4.dscp,
                hdr.ipv4.ecn,
                hdr.ipv4.length,
                hdr.ipv4.id,
                hdr.ipv4.flags,
                hdr.ipv4.offset,
                hdr.ipv4.ttl,
                hdr.ipv4.protocol,
                hdr.ipv4.source,
                hdr.ipv4.destination
            },
            hdr.ipv4.checksum,
            HashAlgorithm.csum16
        );
    }
}

control Router(inout headers_t hdr, inout standard_metadata_t standard) {
    bit<32> next_hop = 0;
    bool known = false;

    action drop() {
        mark_to_drop(standard);
    }

    action via(bit<32> address) {
        next_hop = address;
        known = true;
    }

    table routes {
        key = { hdr.ipv4.destination: lpm; }
        actions = { via; drop; }
        default_action = drop();
        size = 64;
    }

    action forward(bit<9> port, bit<48> mac, bit<48> source_mac) {
        standard.egress_spec = port;
        hdr.ethernet.destination = mac;
        hdr.ethernet.source = source_mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    table neighbours {
        key = { next_hop: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 64;
    }

    apply {
        if (hdr.ipv4.ttl > 1) {
            routes.apply();
            if (known) {
                neighbours.apply();
            }
        } else {
            drop();
        }
    }
}

control TallyIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    Router() router;
    bit<32> flow;
    bit<32> location;
    bit<64> number;
    bit<32> count;

    action name_switch(bit<6> switch_number) {
        hdr.ipv4.dscp = switch_number;
    }

    table own_number {
        actions = { name_switch; NoAction; }
        default_action = NoAction();
    }

    apply {
        if (!hdr.ipv4.isValid() || standard.checksum_error == 1) {
            mark_to_drop(standard);
        } else {
            if (hdr.number.isValid()) {
                hash(
                    flow,
                    HashAlgorithm.crc32,
                    32w0,
                    { hdr.ipv4.source, hdr.ipv4.destination, hdr.udp.source },
                    FLOWS
                );
                numbers.read(number, flow);
                number = number + 1;
                numbers.write(flow, number);
                hdr.number.value = number;
                hdr.udp.checksum = 0;
                location = (bit<32>)hdr.udp.source & (LOCATIONS - 1);
                packets.read(count, location);
                packets.write(location, count + 1);
                own_number.apply();
            }
            router.apply(hdr, standard);
        }
    }
}

control TallyEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    apply { }
}

control TallyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(
            hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            {
                hdr.ipv4.version,
                hdr.ipv4.ihl,
                hdr.ipv4.dscp,
                hdr.ipv4.ecn,
                hdr.ipv4.length,
                hdr.ipv4.id,
                hdr.ipv4.flags,
                hdr.ipv4.offset,
                hdr.ipv4.ttl,
                hdr.ipv4.protocol,
                hdr.ipv4.source,
                hdr.ipv4.destination
            },
            hdr.ipv4.checksum,
            HashAlgorithm.csum16
        );
    }
}

control TallyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(
    TallyParser(),
    TallyVerify(),
    TallyIngress(),
    TallyEgress(),
    TallyCompute(),
    TallyDeparser()
) main;
