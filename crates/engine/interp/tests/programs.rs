//! P4 programs from source to packets.

mod support;

use stateplane_interp::{Interp, Options};
use stateplane_runtime::{Engine, Entry, KeyMatch, Value};
use support::{EMPTY_EGRESS, INCLUDES, REST, compile, ingress_of, number, send};

#[test]
fn arithmetic_of_every_kind() {
    for (expression, expected) in [
        ("hdr.h.a + 200", 7 + 200),
        ("hdr.h.a - 8", 255),
        ("hdr.h.a |-| 8", 0),
        ("hdr.h.a |+| 250", 255),
        ("hdr.h.a * hdr.h.b", 7 * 9),
        ("hdr.h.a << 6", 192),
        ("(bit<8>)((int<8>)(hdr.h.a << 5) >> 3)", 0xfc),
        ("hdr.h.a[2:1] ++ 6w0", 0xc0),
        ("~hdr.h.a & 0xf0 | 1 ^ 3", 0xf2),
        ("hdr.h.a > hdr.h.b ? 8w1 : 8w2", 2),
        ("(bit<8>)(bit<1>)(hdr.h.a != 7 || hdr.h.b == 9)", 1),
        ("((bit<200>)hdr.h.a << 190 >> 189)[7:0]", 14),
        ("hdr.h.b / 2", 4),
        ("hdr.h.b % 4", 1),
        ("-hdr.h.a", 249),
    ] {
        let mut interp = ingress_of("", &format!("hdr.h.b = {expression};"));
        let sent = send(&mut interp, &[7, 9, 1]);
        assert_eq!(sent.frame, [7, expected, 1], "{expression}");
    }
}

/// Spec §6.8: arguments are copied in from left to right before the call and out after
/// it.
#[test]
fn calls_copy_in_and_out() {
    let mut interp = ingress_of(
        "action swap(inout bit<8> x, inout bit<8> y) { bit<8> t = x; x = y; y = t; }
         action both(inout bit<8> x, out bit<8> y) { y = 3; x = x + y + hdr.h.a; }",
        "swap(hdr.h.a, hdr.h.b); both(hdr.h.a, hdr.h.b);",
    );
    // After the swap a is 9; x copies 9, y is 3, hdr.h.a is still 9.
    assert_eq!(send(&mut interp, &[7, 9]).frame, [21, 3]);
}

#[test]
fn functions_and_early_returns() {
    let program = format!(
        "{INCLUDES}
        header h_t {{ bit<8> a; bit<8> b; }}
        struct headers {{ h_t h; }}
        struct metadata {{ }}
        bit<8> larger(in bit<8> x, in bit<8> y) {{
            if (x > y) {{ return x; }}
            return y;
        }}
        parser Parse(packet_in packet, out headers hdr, inout metadata meta,
                     inout standard_metadata_t std) {{
            state start {{ packet.extract(hdr.h); transition accept; }}
        }}
        control MyIngress(inout headers hdr, inout metadata meta,
                        inout standard_metadata_t std) {{
            apply {{ hdr.h.a = larger(hdr.h.a, hdr.h.b) + larger(1, 2); }}
        }}
        {EMPTY_EGRESS}{REST}"
    );
    let mut interp = compile(&program);
    assert_eq!(send(&mut interp, &[7, 9]).frame, [11, 9]);
    assert_eq!(send(&mut interp, &[9, 7]).frame, [11, 7]);
}

#[test]
fn tables_by_hit_and_by_action() {
    let mut interp = ingress_of(
        "action set(bit<8> v) { hdr.h.b = v; }
         action drop() { mark_to_drop(std); }
         table t {
             key = { hdr.h.a : exact; }
             actions = { set; drop; NoAction; }
             const default_action = NoAction();
         }",
        "if (t.apply().hit) { meta.x = 1; }
         switch (t.apply().action_run) {
             set: { hdr.h.a = 100 + meta.x; }
             NoAction: { hdr.h.a = 200 + meta.x; }
         }
         if (std.egress_spec != 511) { std.egress_spec = 5; }",
    );
    let t = interp.state_mut().table_mut("t").unwrap();
    for (key, action, data) in [(7, "set", vec![number(42)]), (8, "drop", Vec::new())] {
        let entry = Entry {
            keys: vec![KeyMatch::Exact(number(key))],
            priority: 0,
            action: action.to_owned(),
            data,
        };
        t.insert(&entry).unwrap();
    }
    let sent = send(&mut interp, &[7, 1]);
    assert_eq!((sent.port, &sent.frame[..]), (5, &[101, 42][..]));
    assert_eq!(send(&mut interp, &[8, 1]).port, 511);
    assert_eq!(send(&mut interp, &[9, 1]).frame, [200, 1]);
}

#[test]
fn entries_of_the_source_and_longest_prefixes() {
    let mut interp = ingress_of(
        "action set(bit<8> v) { hdr.h.b = v; }
         table t {
             key = { hdr.h.a : lpm; }
             actions = { set; }
             default_action = set(0);
             const entries = {
                 0x80 &&& 0x80 : set(1);
                 0xc0 &&& 0xc0 : set(2);
                 0xff : set(3);
             }
         }",
        "t.apply();",
    );
    for (a, b) in [(0x7f, 0), (0x80, 1), (0xc1, 2), (0xff, 3)] {
        assert_eq!(send(&mut interp, &[a, 9]).frame, [a, b]);
    }
}

#[test]
fn registers_keep_values_between_packets() {
    let mut interp = ingress_of(
        "register<bit<48>>(4) last;
         register<bit<200>>(2) wide;
         bit<48> before;
         bit<200> w;",
        "last.read(before, (bit<32>)hdr.h.a);
         last.write((bit<32>)hdr.h.a, before + (bit<48>)hdr.h.b);
         wide.read(w, 1);
         w = w << 8 | (bit<200>)hdr.h.b;
         wide.write(1, w);
         hdr.h.b = (bit<8>)before;",
    );
    assert_eq!(send(&mut interp, &[1, 5]).frame, [1, 0]);
    assert_eq!(send(&mut interp, &[1, 6]).frame, [1, 5]);
    assert_eq!(send(&mut interp, &[9, 6]).frame, [9, 0], "past the end");
    let state = interp.state_mut();
    assert_eq!(state.register("last").unwrap().read(1), Ok(Value::from(11)));
    let wide = state.register("MyIngress.wide").unwrap();
    assert_eq!(wide.read(1), Ok(Value::from(0x05_0606)));
}

#[test]
fn exit_leaves_ingress_but_not_egress() {
    let mut interp = ingress_of(
        "action leave() { hdr.h.a = 50; exit; }",
        "if (hdr.h.a == 1) { leave(); } hdr.h.b = 60;",
    );
    assert_eq!(send(&mut interp, &[1, 2]).frame, [50, 2]);
    assert_eq!(send(&mut interp, &[3, 2]).frame, [3, 60]);
}

/// MPLS-like tags in a stack, of which the program takes the outermost away.
#[test]
fn stacks_loops_and_sub_parsers() {
    let program = format!(
        "{INCLUDES}
        header tag_t {{ bit<7> id; bit<1> bottom; }}
        header body_t {{ bit<8> kind; }}
        struct headers {{ tag_t[3] tags; body_t body; }}
        struct metadata {{ bit<8> depth; }}
        parser Tags(packet_in packet, out tag_t[3] tags) {{
            state start {{
                packet.extract(tags.next);
                transition select(tags.last.bottom) {{ 0: start; default: accept; }}
            }}
        }}
        parser Parse(packet_in packet, out headers hdr, inout metadata meta,
                     inout standard_metadata_t std) {{
            Tags() tags;
            state start {{
                tags.apply(packet, hdr.tags);
                packet.extract(hdr.body);
                transition accept;
            }}
        }}
        control MyIngress(inout headers hdr, inout metadata meta,
                        inout standard_metadata_t std) {{
            apply {{
                if (std.parser_error == error.StackOutOfBounds) {{
                    mark_to_drop(std);
                }} else if (hdr.tags[1].isValid()) {{
                    std.egress_spec = (bit<9>)hdr.tags[0].id;
                    hdr.tags.pop_front(1);
                }}
            }}
        }}
        {EMPTY_EGRESS}{REST}"
    );
    let mut interp = compile(&program);
    let sent = send(&mut interp, &[5 << 1, 6 << 1, 7 << 1 | 1, 0xaa, 0xbb]);
    assert_eq!(
        (sent.port, &sent.frame[..]),
        (5, &[6 << 1, 7 << 1 | 1, 0xaa, 0xbb][..])
    );
    assert_eq!(send(&mut interp, &[3, 0xaa]).frame, [3, 0xaa]);
    assert_eq!(send(&mut interp, &[2, 2, 2, 2, 3, 0xaa]).port, 511);
    // One tag alone: extracting the body fails, the tag stays.
    assert_eq!(send(&mut interp, &[3]).frame, [3]);
}

/// The header checksum of a router is right; the demo depends on it.
#[test]
fn an_ipv4_router() {
    let program = format!(
        "{INCLUDES}
        header ipv4_t {{
            bit<4> version; bit<4> ihl; bit<8> tos; bit<16> length;
            bit<16> id; bit<3> flags; bit<13> offset;
            bit<8> ttl; bit<8> protocol; bit<16> checksum;
            bit<32> source; bit<32> destination;
        }}
        struct headers {{ ipv4_t ip; }}
        struct metadata {{ }}
        parser Parse(packet_in packet, out headers hdr, inout metadata meta,
                     inout standard_metadata_t std) {{
            state start {{
                packet.extract(hdr.ip);
                verify(hdr.ip.version == 4, error.ParserInvalidArgument);
                transition accept;
            }}
        }}
        control MyVerify(inout headers hdr, inout metadata meta) {{
            apply {{
                verify_checksum(true, {{ hdr.ip.version, hdr.ip.ihl, hdr.ip.tos,
                    hdr.ip.length, hdr.ip.id, hdr.ip.flags, hdr.ip.offset, hdr.ip.ttl,
                    hdr.ip.protocol, hdr.ip.source, hdr.ip.destination }},
                    hdr.ip.checksum, HashAlgorithm.csum16);
            }}
        }}
        control MyCompute(inout headers hdr, inout metadata meta) {{
            apply {{
                update_checksum(hdr.ip.isValid(), {{ hdr.ip.version, hdr.ip.ihl,
                    hdr.ip.tos, hdr.ip.length, hdr.ip.id, hdr.ip.flags, hdr.ip.offset,
                    hdr.ip.ttl, hdr.ip.protocol, hdr.ip.source, hdr.ip.destination }},
                    hdr.ip.checksum, HashAlgorithm.csum16);
            }}
        }}
        control MyIngress(inout headers hdr, inout metadata meta,
                        inout standard_metadata_t std) {{
            action via(bit<9> port) {{ std.egress_spec = port; }}
            action drop() {{ mark_to_drop(std); }}
            table routes {{
                key = {{ hdr.ip.destination : lpm; }}
                actions = {{ via; drop; }}
                default_action = drop();
            }}
            apply {{
                if (std.parser_error != error.NoError || std.checksum_error == 1) {{
                    drop();
                }} else {{
                    hdr.ip.ttl = hdr.ip.ttl - 1;
                    routes.apply();
                }}
            }}
        }}
        {EMPTY_EGRESS}
        control Deparse(packet_out packet, in headers hdr) {{ apply {{ packet.emit(hdr); }} }}
        V1Switch(Parse(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), Deparse()) main;"
    );
    let mut interp = compile(&program);
    let routes = interp.state_mut().table_mut("routes").unwrap();
    let route = Entry {
        keys: vec![KeyMatch::Prefix {
            value: number(0xc0a8_0000),
            length: 24,
        }],
        priority: 0,
        action: "via".to_owned(),
        data: vec![number(7)],
    };
    routes.insert(&route).unwrap();
    // The example of RFC 1071 in many textbooks: checksum b861.
    let packet = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00,
        0x01, 0xc0, 0xa8, 0x00, 0xc7, 0xde, 0xad,
    ];
    let sent = send(&mut interp, &packet);
    assert_eq!(sent.port, 7);
    assert_eq!(sent.frame[8..12], [0x3f, 0x11, 0xb9, 0x61]);
    assert_eq!(sent.frame[12..], packet[12..]);
    let mut wrong = packet;
    wrong[11] ^= 1;
    assert_eq!(send(&mut interp, &wrong).port, 511);
    let mut elsewhere = packet;
    elsewhere[18] = 1;
    elsewhere[10..12].copy_from_slice(&[0xb7, 0x61]);
    assert_eq!(send(&mut interp, &elsewhere).port, 511);
    assert_eq!(interp.state().events.checksum_errors, 1);
    let mut version_6 = packet;
    version_6[0] = 0x65;
    assert_eq!(send(&mut interp, &version_6).port, 511);
    assert_eq!(send(&mut interp, &packet[..19]).port, 511);
}

/// Runts and garbage on the programs that we ship.
#[test]
fn shipped_programs_survive_any_frame() {
    for path in [
        "apps/nat/controlled.p4",
        "apps/nat/nat.p4",
        "apps/nat/unprotected.p4",
        "apps/counter/counter.p4",
    ] {
        let program = stateplane_compile::shipped(path).program();
        let program = program.unwrap_or_else(|refused| panic!("{refused}"));
        let mut interp = Interp::new(program, Options::default()).unwrap();
        let mut random = stateplane_runtime::hash::Random::new(1);
        for length in 0..200 {
            for kind in 0..4 {
                let mut frame: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
                // Beginnings that get further: IPv4, then UDP between the protocol's ports.
                if length >= 38 && kind > 0 {
                    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
                    frame[20..22].fill(0);
                    frame[23] = if kind == 1 { 6 } else { 17 };
                    if kind == 3 {
                        frame[34..38].copy_from_slice(&[0x12, 0xb9, 0x12, 0xb9]);
                    }
                }
                send(&mut interp, &frame);
            }
        }
    }
}
