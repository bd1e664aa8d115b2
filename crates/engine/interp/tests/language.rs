//! Statements, types and expressions of the language, each from source to packets.

mod support;

use stateplane_runtime::{Engine, KeyMatch};
use support::{EMPTY_EGRESS, INCLUDES, REST, compile, ingress_of, number, send};

/// Bytes `a` and `b` of the header after ingress.
fn run(declarations: &str, body: &str, a: u8, b: u8) -> (u8, u8) {
    let mut interp = ingress_of(declarations, body);
    let frame = send(&mut interp, &[a, b]).frame;
    (frame[0], frame[1])
}

/// Spec §11.8.
#[test]
fn for_loops_with_three_clauses() {
    let sum = "for (bit<8> i = 0; i < hdr.h.a; i = i + 1) { hdr.h.b = hdr.h.b + i; }";
    assert_eq!(run("", sum, 5, 0), (5, 10));
    assert_eq!(run("", sum, 0, 3), (0, 3));
    let two =
        "for (bit<8> i = 0, bit<8> j = 1; i < 4; i += 1, j = j << 1) { hdr.h.b = hdr.h.b | j; }";
    assert_eq!(run("", two, 0, 0), (0, 0xf));
    let outer = "bit<8> i = 7; for (; i > hdr.h.a;) { i = i - 1; hdr.h.b = i; }";
    assert_eq!(run("", outer, 3, 0), (3, 3));
    let leaving = "for (bit<8> i = 0; true; i = i + 1) {
            if (i == 2) { continue; }
            if (i > hdr.h.a) { break; }
            hdr.h.b = hdr.h.b + i;
        }";
    assert_eq!(run("", leaving, 4, 0), (4, 1 + 3 + 4));
    let never = "for (bit<8> i = 0; false; i = i + 1) { hdr.h.b = 1; }";
    assert_eq!(run("", never, 4, 0), (4, 0));
}

#[test]
fn for_loops_over_ranges() {
    let sum = "for (bit<8> i in 1 .. hdr.h.a) { hdr.h.b = hdr.h.b + i; }";
    assert_eq!(run("", sum, 4, 0), (4, 10));
    assert_eq!(run("", sum, 1, 0), (1, 1));
    assert_eq!(run("", sum, 0, 9), (0, 9), "an empty range");
    let all = "bit<16> n = 0; for (bit<8> i in 0 .. 255) { n = n + 1; } hdr.h.a = n[15:8]; hdr.h.b = n[7:0];";
    assert_eq!(
        run("", all, 0, 0),
        (1, 0),
        "ends at the type's greatest value"
    );
    let signed =
        "for (int<8> i in -2 .. 1) { hdr.h.b = hdr.h.b ^ (bit<8>)i; hdr.h.a = hdr.h.a + 1; }";
    assert_eq!(run("", signed, 0, 0), (4, 0xfe ^ 0xff ^ 1));
    let once = "for (bit<8> i in 0 .. hdr.h.a) { hdr.h.a = 0; hdr.h.b = hdr.h.b + 1; i = 9; }";
    assert_eq!(run("", once, 3, 0), (0, 4), "the bounds are evaluated once");
    let skipping =
        "for (bit<8> i in 0 .. 3) { if (i == hdr.h.a) { continue; } hdr.h.b = hdr.h.b + i; }";
    assert_eq!(run("", skipping, 2, 0), (2, 4));
}

#[test]
fn for_loops_over_lists_and_stacks() {
    let list = "for (bit<8> x in (tuple<bit<8>, bit<8>, bit<8>>){ 5, hdr.h.a, 7 }) {
            hdr.h.a = 0;
            hdr.h.b = (hdr.h.b << 1) + x;
        }";
    assert_eq!(run("", list, 1, 0), (0, 20 + 2 + 7));
    let stack = "h_t[3] s;
        s[0] = { 1, 2 }; s[2] = { 3, 4 };
        for (h_t h in s) {
            if (!h.isValid()) { hdr.h.a = hdr.h.a + 100; continue; }
            s[2].b = 90;
            hdr.h.b = hdr.h.b + h.b;
        }";
    assert_eq!(run("", stack, 1, 0), (101, 6));
}

#[test]
fn loops_in_actions_and_functions() {
    let actions = "action pow(in bit<8> n) {
            hdr.h.b = 1;
            for (bit<8> i in 1 .. n) { if (hdr.h.b == 64) { return; } hdr.h.b = hdr.h.b << 1; }
        }";
    assert_eq!(run(actions, "pow(hdr.h.a); hdr.h.a = 0;", 3, 0), (0, 8));
    assert_eq!(run(actions, "pow(hdr.h.a); hdr.h.a = 0;", 9, 0), (0, 64));
    let mut interp = compile(&format!(
        "{INCLUDES}
        header h_t {{ bit<8> a; bit<8> b; }}
        struct headers {{ h_t h; }}
        struct metadata {{ }}
        bit<8> bits(in bit<8> x) {{
            bit<8> n = 0;
            for (bit<8> i in 0 .. 7) {{
                if ((x >> i)[0:0] == 0) {{ continue; }}
                n = n + 1;
                if (n == 6) {{ return 66; }}
            }}
            return n;
        }}
        parser Parse(packet_in packet, out headers hdr, inout metadata meta,
                     inout standard_metadata_t std) {{
            state start {{
                packet.extract(hdr.h);
                transition accept;
            }}
        }}
        control MyIngress(inout headers hdr, inout metadata meta,
                        inout standard_metadata_t std) {{
            apply {{ hdr.h.b = bits(hdr.h.b); }}
        }}
        {EMPTY_EGRESS}{REST}"
    ));
    assert_eq!(send(&mut interp, &[2, 0b1011_0001]).frame, [2, 4]);
    assert_eq!(send(&mut interp, &[3, 0xff]).frame, [3, 66]);
}

/// A variable declared in a loop starts anew in each round.
#[test]
fn declarations_in_loops_start_anew() {
    let body = "for (bit<8> i in 0 .. 1) {
            h_t h;
            if (h.isValid()) { hdr.h.b = hdr.h.b + 1; }
            h.setValid();
        }";
    assert_eq!(run("", body, 0, 0), (0, 0));
}

/// Spec §12.14.
#[test]
fn value_sets_in_select() {
    let mut interp = compile(&format!(
        "{INCLUDES}
        header h_t {{ bit<8> a; bit<8> b; }}
        struct headers {{ h_t h; }}
        struct metadata {{ bit<8> found; }}
        struct inner_t {{ @match(ternary) bit<8> second; }}
        struct pair_t {{ bit<8> first; inner_t inner; }}
        parser Parse(packet_in packet, out headers hdr, inout metadata meta,
                     inout standard_metadata_t std) {{
            value_set<pair_t>(2) pairs;
            @name(\"ones\") value_set<bit<8>>(4) single;
            state start {{
                packet.extract(hdr.h);
                transition select(hdr.h.a, hdr.h.b) {{
                    pairs: both;
                    (single, 7): one;
                    default: accept;
                }}
            }}
            state both {{ meta.found = 2; transition accept; }}
            state one {{ meta.found = 1; transition select(hdr.h.b) {{ single: more; }} }}
            state more {{ meta.found = 3; transition accept; }}
        }}
        control MyIngress(inout headers hdr, inout metadata meta,
                        inout standard_metadata_t std) {{
            apply {{ hdr.h.a = meta.found; if (std.parser_error == error.NoMatch) {{ hdr.h.b = 0xee; }} }}
        }}
        {EMPTY_EGRESS}{REST}"
    ));
    assert_eq!(send(&mut interp, &[1, 7]).frame, [0, 7]);
    let state = interp.state_mut();
    let pairs = state.value_set_mut("Parse.pairs").unwrap();
    let names: Vec<&str> = pairs.keys().iter().map(|key| key.name.as_str()).collect();
    assert_eq!(names, ["first", "inner.second"]);
    let masked = KeyMatch::Mask {
        value: number(0x20),
        mask: number(0xf0),
    };
    pairs.insert(&[KeyMatch::Exact(number(5)), masked]).unwrap();
    let single = state.value_set_mut("Parse.ones").unwrap();
    single.insert(&[KeyMatch::Exact(number(1))]).unwrap();
    assert_eq!(send(&mut interp, &[5, 0x2f]).frame, [2, 0x2f]);
    assert_eq!(send(&mut interp, &[5, 0x3f]).frame, [0, 0x3f]);
    assert_eq!(send(&mut interp, &[1, 7]).frame, [1, 0xee]);
    let single = interp.state_mut().value_set_mut("ones").unwrap();
    single.insert(&[KeyMatch::Exact(number(7))]).unwrap();
    assert_eq!(send(&mut interp, &[1, 7]).frame, [3, 7]);
}

/// From version 20200408 on, indices have a type of the program's choice.
#[test]
fn both_versions_of_v1model() {
    for (version, index) in [("", ""), ("#define V1MODEL_VERSION 20200408\n", ", bit<3>")] {
        let mut interp = compile(&format!(
            "{version}{INCLUDES}
            header h_t {{ bit<8> a; bit<8> b; }}
            struct headers {{ h_t h; }}
            struct metadata {{ }}
            parser Parse(packet_in packet, out headers hdr, inout metadata meta,
                         inout standard_metadata_t std) {{
                state start {{ packet.extract(hdr.h); transition accept; }}
            }}
            control MyIngress(inout headers hdr, inout metadata meta,
                            inout standard_metadata_t std) {{
                register<bit<8>{index}>(8) r;
                apply {{ r.read(hdr.h.b, 3); r.write(3, hdr.h.a); }}
            }}
            {EMPTY_EGRESS}{REST}"
        ));
        assert_eq!(send(&mut interp, &[9, 0]).frame, [9, 0]);
        assert_eq!(send(&mut interp, &[8, 0]).frame, [8, 9]);
    }
}

/// A program whose parser and controls come from the test, around one two-byte header.
fn program(declarations: &str, parser: &str, ingress: &str) -> stateplane_interp::Interp {
    compile(&format!(
        "{INCLUDES}
        header h_t {{ bit<8> a; bit<8> b; }}
        struct headers {{ h_t h; h_t g; }}
        struct metadata {{ bit<8> x; }}
        {declarations}
        parser Parse(packet_in packet, out headers hdr, inout metadata meta,
                     inout standard_metadata_t std) {{
            {parser}
        }}
        control MyIngress(inout headers hdr, inout metadata meta,
                        inout standard_metadata_t std) {{
            {ingress}
        }}
        {EMPTY_EGRESS}{REST}"
    ))
}

const EXTRACT: &str = "state start { packet.extract(hdr.h); transition accept; }";

#[test]
fn generic_controls_and_parsers() {
    let mut interp = program(
        "control Twice<T>(inout T value) { apply { value = value + value; } }
         control Keep<T>(in T value, out T kept)(T bias) { apply { kept = value + bias; } }
         parser Take<H>(packet_in packet, out H one) {
             state start { packet.extract(one); transition accept; }
         }",
        "Take<h_t>() take; state start { take.apply(packet, hdr.h); transition accept; }",
        "Twice<bit<8>>() narrow; Keep(16w0x102) keep;
         bit<16> wide;
         apply {
             narrow.apply(hdr.h.a);
             keep.apply(16w1, wide);
             Twice<bit<16>>.apply(wide);
             hdr.h.b = wide[7:0] + wide[15:8];
         }",
    );
    // 2 * 7, and 2 * (1 + 0x102) = 0x206.
    assert_eq!(send(&mut interp, &[7, 0]).frame, [14, 8]);
}

#[test]
fn objects_and_numbers_as_arguments_of_apply() {
    let mut interp = program(
        "control Count(register<bit<8>> r, int step, inout bit<8> n) {
             apply { r.read(n, 0); n = n + step; r.write(0, n); }
         }
         bit<8> add(in bit<8> x, int by) { return x + by; }",
        EXTRACT,
        "register<bit<8>>(1) first; register<bit<8>>(1) second;
         Count() count;
         apply {
             count.apply(first, 1, hdr.h.a);
             count.apply(second, 2, hdr.h.b);
             count.apply(second, 2, hdr.h.b);
             hdr.h.a = add(hdr.h.a, 10);
         }",
    );
    assert_eq!(send(&mut interp, &[0, 0]).frame, [11, 4]);
    assert_eq!(send(&mut interp, &[0, 0]).frame, [12, 8]);
}

/// Arguments bound in a table's list of actions are evaluated when the action runs.
#[test]
fn bound_arguments_with_side_effects() {
    let mut interp = program(
        "bit<8> bump(inout bit<8> x) { x = x + 1; return x; }",
        EXTRACT,
        "action set(in bit<8> v, bit<8> w) { hdr.h.b = hdr.h.b + v + w; }
         action skip() { }
         table t {
             key = { hdr.h.a : exact; }
             actions = { set(bump(hdr.h.a)); skip; }
             const default_action = skip;
             const entries = { 5 : set(100); 6 : skip(); }
         }
         apply {
             switch (t.apply().action_run) { set: { hdr.h.b = hdr.h.b + 1; } default: { } }
         }",
    );
    assert_eq!(send(&mut interp, &[5, 1]).frame, [6, 1 + 6 + 100 + 1]);
    assert_eq!(send(&mut interp, &[6, 1]).frame, [6, 1]);
}

#[test]
fn lookahead_into_headers_in_structs_and_stacks() {
    let mut interp = program(
        "struct peek_t { h_t first; h_t[2] rest; }",
        "state start {
             peek_t peek = packet.lookahead<peek_t>();
             packet.extract(hdr.h);
             hdr.g = peek.rest[1];
             hdr.h.a = peek.first.isValid() && peek.rest[0].isValid() ? peek.rest[0].a : 0;
             transition accept;
         }",
        "apply { }",
    );
    let frame = [1, 2, 3, 4, 5, 6];
    assert_eq!(send(&mut interp, &frame).frame, [3, 2, 5, 6, 3, 4, 5, 6]);
    assert_eq!(send(&mut interp, &[1, 2, 3]).frame, [1, 2, 3]);
}

#[test]
fn compile_time_values() {
    let body = "const pair_t p = { 10, 20 };
         const list<bit<8>> few = { 1, 2, 4 };
         for (bit<8> x in few) { hdr.h.a = hdr.h.a + x; }
         port_t port = 3;
         if (p == { 10, 20 } && kind_t.c == kind_t.b) { hdr.h.b = (bit<8>)port + (bit<8>)kind_t.d; }
         log_msg(\"a\" ++ \"b\");
         hdr.h.b = hdr.h.b << shift;";
    let mut interp = program(
        "struct pair_t { bit<8> x; bit<8> y; }
         type bit<8> port_t;
         enum bit<8> kind_t { a = 1, b = 2, c = b, d = a + b }
         const int<4> shift = 1;",
        EXTRACT,
        &format!("apply {{ {body} }}"),
    );
    assert_eq!(send(&mut interp, &[0, 0]).frame, [7, 12]);
    assert_eq!(interp.state_mut().log.poll().as_deref(), Some("ab"));
}

/// Names as the reference compiler gives them, which control planes rely on.
#[test]
fn names_of_keys() {
    let interp = program(
        "const bit<8> MASK = 0xf0;",
        EXTRACT,
        "table t {
             key = {
                 hdr.h.a[7:4] : exact;
                 hdr.h.b & MASK : ternary;
                 8w0x48 : exact;
                 hdr.g.isValid() : exact;
                 std.ingress_port : exact @name(\"in\");
             }
             actions = { NoAction; }
         }
         apply { t.apply(); }",
    );
    let names: Vec<&str> = interp.program().tables[0]
        .keys
        .iter()
        .map(|key| key.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "hdr.h.a[7:4]",
            "hdr.h.b & 240",
            "0x48",
            "hdr.g.$valid$",
            "in"
        ]
    );
}

/// Spec §8.17: arrays of anything but headers have elements, and no more.
#[test]
fn arrays_of_numbers_and_structs() {
    let mut interp = program(
        "struct pair { bit<8> x; bit<8> y; }
         struct lanes { bit<8>[4] lane; pair[2] pairs; }",
        EXTRACT,
        "bit<8>[4] a;
         action copy(inout bit<8>[4] to, in lanes l) { to = l.lane; to[3] = l.pairs[1].y; }
         apply {
             lanes l;
             l.lane = { 1, 2, 3, 4 };
             l.lane[hdr.h.a[1:0]] = 9;
             l.pairs[1] = { 5, 6 };
             copy(a, l);
             for (bit<8> x in a) { hdr.h.b = hdr.h.b + x; }
             hdr.h.a = a[hdr.h.a] + (a == l.lane ? 8w100 : 0);
         }",
    );
    assert_eq!(send(&mut interp, &[0, 0]).frame, [9, 9 + 2 + 3 + 6]);
    assert_eq!(send(&mut interp, &[1, 0]).frame, [9, 1 + 9 + 3 + 6]);
    assert_eq!(
        send(&mut interp, &[7, 0]).frame,
        [0, 1 + 2 + 3 + 6],
        "past the end"
    );
}

/// `clone3`, `resubmit`, `recirculate` with data, `Checksum16`, `mark_to_drop()`.
#[test]
fn externs_of_older_programs() {
    let mut interp = program(
        "struct rest_t { bit<8> z; }",
        EXTRACT,
        "Checksum16() sum;
         action drop() { mark_to_drop(); }
         apply {
             if (hdr.h.a == 1) { drop(); }
             if (hdr.h.a == 2) { meta.x = hdr.h.b; resubmit({ meta.x, std.ingress_port }); }
             if (hdr.h.a == 3) { meta.x = 7; clone3(CloneType.I2E, 5, meta); }
             if (hdr.h.a == 4) {
                 bit<16> c = sum.get({ hdr.h.a, hdr.h.b });
                 hdr.h = { c[15:8], c[7:0] };
             }
         }",
    );
    assert_eq!(
        send(&mut interp, &[1, 0]).port,
        stateplane_runtime::DROP_PORT
    );
    assert_eq!(send(&mut interp, &[4, 1]).frame, [0xfb, 0xfe]);
    let ingress = |interp: &mut stateplane_interp::Interp, frame: &[u8]| {
        interp.ingress(&stateplane_runtime::IngressInput {
            frame,
            port: 2,
            instance_type: stateplane_runtime::InstanceType::Normal,
            preserved: &stateplane_runtime::Preserved::default(),
            now: 0,
        })
    };
    let outcome = ingress(&mut interp, &[2, 0x5a]);
    assert_eq!(
        outcome.resubmit.map(|fields| fields.bits.to_vec()),
        Some(vec![0x5a])
    );
    let outcome = ingress(&mut interp, &[3, 0]);
    let clone = outcome.clone.expect("a clone is asked for");
    assert_eq!((clone.session, clone.preserved.bits.to_vec()), (5, vec![7]));
}

#[test]
fn arrays_in_headers_are_extracted_and_emitted() {
    let mut interp = compile(&format!(
        "{INCLUDES}
        header h_t {{ bit<4> a; bit<4>[3] n; }}
        struct headers {{ h_t h; h_t g; }}
        struct metadata {{ }}
        parser Parse(packet_in packet, out headers hdr, inout metadata meta,
                     inout standard_metadata_t std) {{
            state start {{ packet.extract(hdr.h); transition accept; }}
        }}
        control MyIngress(inout headers hdr, inout metadata meta,
                        inout standard_metadata_t std) {{
            apply {{ hdr.g = hdr.h; hdr.g.n[hdr.h.a] = 0xf; if (hdr.g == hdr.h) {{ hdr.h.a = 9; }} }}
        }}
        {EMPTY_EGRESS}{REST}"
    ));
    assert_eq!(
        send(&mut interp, &[0x12, 0x34]).frame,
        [0x12, 0x34, 0x12, 0xf4]
    );
    assert_eq!(
        send(&mut interp, &[0x2a, 0xbf, 7]).frame,
        [0x9a, 0xbf, 0x2a, 0xbf, 7]
    );
}
