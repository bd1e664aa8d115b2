// Every kind of object that a control plane sees.
#include <v1model.p4>

@p4runtime_translation("example.org/port", 32)
type bit<9> port_id_t;
@p4runtime_translation("example.org/vrf", string)
type bit<16> vrf_id_t;
@tagged[color = "red", depth = 3]
type bit<48> mac_t;

enum bit<4> Class { best = 0, fast = 7 }
enum Mode { slow, quick }

struct part_t {
    bit<3> high;
    @name("bottom") bit<5> low;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    @name("kind") bit<16> type;
}

@controller_header("packet_in")
header in_t {
    @id(5) port_id_t ingress;
    part_t part;
    @hidden bit<7> pad;
}

@controller_header("packet_out")
@brief("To the switch.")
header out_t {
    bit<9> egress;
    bit<7> pad;
}

header_union either_t {
    in_t a;
    out_t b;
}

struct headers_t {
    out_t out_header;
    ethernet_t ethernet;
    in_t in_header;
}

struct metadata_t {
    vrf_id_t vrf;
    port_id_t port;
    mac_t mac;
    Class class;
}

struct seen_t {
    mac_t mac;
    Class class;
    bool again;
}

struct types_t {
    bit<16> low;
    @id(8) @match(ternary) bit<8> high;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t std) {
    @name("known") value_set<types_t>(4) types;
    value_set<bit<16>>(2) ports;
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type, hdr.ethernet.dst[7:0]) {
            types: accept;
            default: ask;
        }
    }
    state ask {
        transition select(hdr.ethernet.type) {
            ports: accept;
            default: accept;
        }
    }
}

control Inner(inout metadata_t meta)(bit<32> size) {
    register<seen_t>(size) seen;
    action mark(@id(3) mac_t mac, bool again, @brief("How.") Class class) {
        meta.mac = mac;
        seen.write(0, { mac, class, again });
    }
    table same {
        key = { meta.mac : exact; }
        actions = { mark; }
        default_action = mark((mac_t) 5, true, Class.fast);
    }
    apply {
        same.apply();
    }
}

@name("renamed")
control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @deprecated("use the other") @max_group_size(16) @selector_size_semantics("sum_of_members")
    @max_member_weight(9)
    action_selector(HashAlgorithm.crc16, 64, 8) choice;
    counter(8, CounterType.packets_and_bytes) total;
    direct_counter(CounterType.bytes) each;
    direct_meter<bit<2>>(MeterType.packets) speed;
    @my("text", 0x10, word) meter(4, MeterType.bytes) all;
    bit<2> color;

    @hidden action quiet() {}
    action drop() { mark_to_drop(std); }
    @description("Sends it on.")
    action forward(port_id_t port) { std.egress_spec = (bit<9>) port; }
    action tell(Mode mode) {
        speed.read(color);
        digest<seen_t>(1, { meta.mac, meta.class, mode == Mode.quick });
    }
    action never(bit<8> x) { std.mcast_grp = (bit<16>) x; }
    action direct(bit<8> x) { std.mcast_grp = (bit<16>) x; }

    @id(0x77) @brief("Where to.") @description("By network.")
    table route {
        key = {
            meta.vrf : exact @name("vrf");
            hdr.ethernet.type : lpm;
            hdr.ethernet.dst & 0xff : ternary @id(1);
            hdr.ethernet.src[11:4] : range;
            hdr.in_header.isValid() : optional;
            std.ingress_port : selector;
        }
        actions = { forward; @tableonly tell; @defaultonly NoAction; quiet; }
        const default_action = NoAction();
        implementation = choice;
        size = 0x200;
        support_timeout = true;
    }

    @unused["a", 3, true]
    table fixed {
        key = { meta.class : exact; meta.port : exact; }
        actions = { forward; tell; drop; }
        const entries = {
            (Class.fast, (port_id_t) 1) : drop();
        }
        default_action = forward((port_id_t) 511);
        counters = each;
        meters = speed;
    }

    @hidden table secret { actions = { quiet; } default_action = quiet(); }
    table idle { actions = { never; } }

    Inner(16) first;
    @name("second.by.name") Inner(32) second;

    apply {
        direct(3);
        digest<tuple<bit<8>, Mode>>(2, { 8w1, Mode.slow });
        total.count(0);
        all.execute_meter(0, color);
        route.apply();
        fixed.apply();
        secret.apply();
        first.apply(meta);
        second.apply(meta);
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {}
}
control Compute(inout headers_t hdr, inout metadata_t meta) { apply {} }
control Deparse(packet_out packet, in headers_t hdr) { apply {} }

@pkginfo(name = "objects", version = "1.2")
@pkginfo_like["kept"]
@platform_property(multicast_group_table_size = 64)
@brief("Everything.")
@other
V1Switch(P(), Verify(), In(), Out(), Compute(), Deparse()) main;
