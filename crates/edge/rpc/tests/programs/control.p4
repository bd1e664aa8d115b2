// Every kind of object that P4Runtime writes and reads.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> pad;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<1> learn;
    bit<6> pad;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> length;
    bit<16> identification;
    bit<3> flags;
    bit<13> offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    packet_out_t packet_out;
    packet_in_t packet_in;
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata_t {
    bit<1> learn;
    bit<2> color;
    bit<16> hop;
}

struct seen_t {
    bit<48> mac;
    bit<9> port;
}

struct pair_t {
    bit<48> mac;
    bool known;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    value_set<bit<16>>(4) ip_types;
    state start {
        transition select(std.ingress_port) {
            CPU_PORT: from_cpu;
            default: ethernet;
        }
    }
    state from_cpu {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x800: ipv4;
            ip_types: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<32>>(16) totals;
    @in_view
    register<bit<32>>(16) seen;
    register<pair_t>(4) pairs;
    counter(8, CounterType.packets_and_bytes) per_port;
    direct_counter(CounterType.packets_and_bytes) route_hits;
    meter(4, MeterType.bytes) limits;
    direct_meter<bit<2>>(MeterType.packets) speed;
    action_selector(HashAlgorithm.crc16, 32, 8) hops;

    action drop() { mark_to_drop(std); }
    action send(bit<9> port) { std.egress_spec = port; }
    action send_to_controller() { std.egress_spec = CPU_PORT; }
    action via(bit<9> port, bit<48> mac) {
        std.egress_spec = port;
        hdr.ethernet.dst = mac;
    }
    action group(bit<16> number) { std.mcast_grp = number; }
    action mirror(bit<9> port) {
        std.egress_spec = port;
        clone(CloneType.I2E, 5);
    }
    action meter_it(bit<9> port) {
        speed.read(meta.color);
        std.egress_spec = port;
    }

    table l2 {
        key = { hdr.ethernet.dst : exact; }
        actions = { send; drop; group; mirror; send_to_controller; NoAction; }
        default_action = NoAction();
        size = 128;
        support_timeout = true;
    }
    table routes {
        key = { hdr.ipv4.dst : lpm; }
        actions = { send; drop; NoAction; }
        default_action = NoAction();
        counters = route_hits;
        size = 16;
    }
    table acl {
        key = {
            hdr.ipv4.src : ternary;
            hdr.ipv4.protocol : range;
            hdr.ipv4.ttl : optional;
        }
        actions = { drop; meter_it; NoAction; }
        default_action = NoAction();
        meters = speed;
        size = 4;
    }
    table balanced {
        key = {
            hdr.ethernet.type : exact;
            hdr.ipv4.src : selector;
        }
        actions = { via; NoAction; }
        implementation = hops;
        size = 8;
    }
    table fixed {
        key = { hdr.ethernet.type : exact; }
        actions = { drop; NoAction; }
        const default_action = NoAction();
        const entries = {
            0xdead : drop();
        }
    }

    apply {
        if (hdr.packet_out.isValid()) {
            meta.learn = hdr.packet_out.learn;
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        }
        totals.write(1, 0x11223344);
        per_port.count(1);
        if (meta.learn == 1) {
            digest<seen_t>(1, { hdr.ethernet.src, std.ingress_port });
        }
        l2.apply();
        fixed.apply();
        if (hdr.ipv4.isValid()) {
            routes.apply();
            acl.apply();
            balanced.apply();
        }
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = std.ingress_port;
        }
    }
}

control Check(inout headers_t hdr, inout metadata_t meta) { apply {} }
control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(P(), Check(), In(), Out(), Check(), Deparse()) main;
