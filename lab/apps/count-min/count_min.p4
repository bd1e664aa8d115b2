// Finds the heavy flows of each direction: an ordinary v1model program with two count-min
// sketches, whose rows lie behind each other in three arrays. All that it says about switches
// that die is the annotation of its arrays.

#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

// The ports to the hosts inside and outside, whose flows have the first and the second sketch.
// Of other ports, nothing is counted: a bridge to the stores may flood.
const bit<9> INSIDE = 0;
const bit<9> OUTSIDE = 1;
// Elements of a row of one sketch: a power of two.
const bit<32> COLUMNS = 64;
// A flow with more packets is heavy, and its packets get this DSCP.
const bit<32> HEAVY = 40;
const bit<6> HEAVY_DSCP = 8;

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

header ports_t {
    bit<16> source;
    bit<16> destination;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    ports_t ports;
}

struct metadata_t {
    bit<32> flow;
}

@replicated(
    mode = "bounded",
    bound = 400,
    snapshot_period = 100,
    otherwise = "drop",
    class = 71
)
register<bit<32>>(128) first_row;
@replicated register<bit<32>>(128) second_row;
@replicated register<bit<32>>(128) third_row;

parser SketchParser(
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
            (5, 0, PROTOCOL_TCP): ports;
            (5, 0, PROTOCOL_UDP): ports;
            default: accept;
        }
    }

    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control SketchVerify(inout headers_t hdr, inout metadata_t meta) {
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

control CountMin(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard) {
    bit<32> base = 0;
    bit<32> element;
    bit<32> first;
    bit<32> second;
    bit<32> third;

    apply {
        hash(
            meta.flow,
            HashAlgorithm.crc32,
            32w0,
            {
                hdr.ipv4.source,
                hdr.ipv4.destination,
                hdr.ipv4.protocol,
                hdr.ports.source,
                hdr.ports.destination
            },
            64w0x100000000
        );
        if (standard.ingress_port == OUTSIDE) {
            base = COLUMNS;
        }
        element = base + ((meta.flow >> 24) & (COLUMNS - 1));
        first_row.read(first, element);
        first = first |+| 1;
        first_row.write(element, first);
        element = base + ((meta.flow >> 12) & (COLUMNS - 1));
        second_row.read(second, element);
        second = second |+| 1;
        second_row.write(element, second);
        element = base + (meta.flow & (COLUMNS - 1));
        third_row.read(third, element);
        third = third |+| 1;
        third_row.write(element, third);
        if (first > HEAVY && second > HEAVY && third > HEAVY) {
            hdr.ipv4.dscp = HEAVY_DSCP;
        }
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

control SketchIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    CountMin() count_min;
    Router() router;

    apply {
        if (!hdr.ipv4.isValid() || standard.checksum_error == 1) {
            mark_to_drop(standard);
        } else {
            if (hdr.ports.isValid()
                && (standard.ingress_port == INSIDE || standard.ingress_port == OUTSIDE)) {
                count_min.apply(hdr, meta, standard);
            }
            router.apply(hdr, standard);
        }
    }
}

control SketchEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    apply { }
}

control SketchCompute(inout headers_t hdr, inout metadata_t meta) {
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

control SketchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(
    SketchParser(),
    SketchVerify(),
    SketchIngress(),
    SketchEgress(),
    SketchCompute(),
    SketchDeparser()
) main;
