//! Tests of arguments, their order, errors and loops against the specification, on both engines:
//! agreement of the engines does not show that the checker is right.

use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Native;
use stateplane_runtime::{EgressInput, Engine, IngressInput, InstanceType, Preserved};

/// Declarations that the cases call.
const DECLARATIONS: &str = "
bit<8> g(inout bit<8> z) { z = 3; return 1; }
bit<8> f(inout bit<8> x, in bit<8> z) { x = x + z; return 4; }
bit<8> next(inout bit<8> n) { n = n + 1; return n; }
void low(inout bit<4> x, in bit<8> z) { x = x + z[3:0]; }
void two(out bit<8> x, out bit<8> y) { x = 1; y = 2; }
void both(inout bit<8> x, inout bit<8> y) { x = x + 1; y = y + 2; }
void part(out bit<8> x, out pair_t p) { x = 1; p.x = 2; p.y = 3; }
bit<8> sum(inout pair_t p, in bit<8> z) { p.x = p.x + z; return p.x + p.y; }
bit<8> change(inout pair_t p) { p.x = 40; p.y = 50; return 1; }
bool lose(inout h_t x) { x.a = 9; x.setInvalid(); return true; }
bit<8> valid(inout h_t x, in bool other) { if (x.isValid() && other) { return x.a; } return 0xff; }
bit<8> early(inout bit<8> x, in bit<8> z) { x = z; if (z == 1) { return 7; } x = 0; return 8; }
bit<8> third(in bit<8> x, in bit<8> y, in bit<8> z) { return x * 16 + y * 4 + z; }
control Add(inout bit<8> x, in bit<8> z) { apply { x = x + z; } }
control Two(out bit<8> x, out bit<8> y) { apply { x = 1; y = 2; } }
control Leave(inout bit<8> x, out bit<8> y, in bit<8> z) { apply { x = x + z; y = z; exit; } }
parser Part(packet_in packet, inout bit<8> x, in bit<8> z) {
    state start { x = x + z; transition accept; }
}
parser Pair(packet_in packet, out bit<8> x, out bit<8> y) {
    state start { x = 1; y = 2; transition accept; }
}
parser Short(packet_in packet, inout bit<8> x, in bit<8> z) {
    h_t h;
    state start { x = x + z; packet.extract(h); transition accept; }
}
";

fn program(parser: &str, locals: &str, apply: &str) -> Program {
    program_with("", parser, locals, apply)
}

/// A program whose text begins with `head`.
fn program_with(head: &str, parser: &str, locals: &str, apply: &str) -> Program {
    whole(&format!(
        "{head}
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; bit<8> c; bit<8> d; }}
struct pair_t {{ bit<8> x; bit<8> y; }}
struct headers {{ h_t h; h_t g; h_t[4] s; }}
struct metadata {{ pair_t p; bit<8> x; }}
{DECLARATIONS}
parser Parse(packet_in packet, out headers hdr, inout metadata meta,
             inout standard_metadata_t std) {{
    {parser}
}}
control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{
    {locals}
    apply {{ {apply} }}
}}
control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{
    apply {{ }}
}}
control NoChecksum(inout headers hdr, inout metadata meta) {{ apply {{ }} }}
control Deparse(packet_out packet, in headers hdr) {{ apply {{ packet.emit(hdr.h); }} }}
V1Switch(Parse(), NoChecksum(), MyIngress(), MyEgress(), NoChecksum(), Deparse()) main;
"
    ))
}

/// A program from its whole text.
fn whole(text: &str) -> Program {
    let program = stateplane_compile::text(text).program();
    program.unwrap_or_else(|refused| panic!("{refused}"))
}

fn send(mut engine: impl Engine, frame: [u8; 4]) -> [u8; 4] {
    let outcome = engine.ingress(&IngressInput {
        frame: &frame,
        port: 1,
        instance_type: InstanceType::Normal,
        preserved: &Preserved::default(),
        now: 1_000,
    });
    let input = EgressInput {
        port: 2,
        rid: 0,
        instance_type: InstanceType::Normal,
        enqueued_at: 1_000,
        enqueue_depth: 0,
        dequeue_depth: 0,
        now: 2_000,
    };
    let mut out = Vec::new();
    engine.egress(outcome.packet, &input, &mut out);
    out[..4].try_into().unwrap()
}

/// Bytes of `hdr.h` after both engines ran on `frame`, which must agree.
fn run(program: &Program, frame: [u8; 4]) -> [u8; 4] {
    let interp = Interp::new(program.clone(), Default::default()).unwrap();
    let native = Native::new(program.clone(), Default::default()).unwrap();
    let made = send(interp, frame);
    assert_eq!(send(native, frame), made, "native");
    made
}

const EXTRACT: &str = "state start { packet.extract(hdr.h); transition accept; }";

/// Runs statements in ingress.
#[track_caller]
fn ingress(locals: &str, apply: &str, frame: [u8; 4], expected: [u8; 4]) {
    let program = program(EXTRACT, locals, apply);
    assert_eq!(run(&program, frame), expected, "{locals}\n{apply}");
}

/// Runs statements in the parser, behind the extraction.
#[track_caller]
fn parser(statements: &str, apply: &str, frame: [u8; 4], expected: [u8; 4]) {
    let text = format!("state start {{ packet.extract(hdr.h); {statements} transition accept; }}");
    let program = program(&text, "", apply);
    assert_eq!(run(&program, frame), expected, "{statements}");
}

#[test]
fn inout_arguments_are_copied_in_before_later_arguments_are_evaluated() {
    // The example of spec §6.8.
    ingress(
        "",
        "hdr.h.b = f(hdr.h.a, g(hdr.h.a));",
        [0; 4],
        [1, 4, 0, 0],
    );
    // In the order of the arguments, not of the parameters.
    ingress(
        "",
        "hdr.h.b = f(z = g(hdr.h.a), x = hdr.h.a);",
        [0; 4],
        [4, 4, 0, 0],
    );
    ingress(
        "",
        "hdr.h.b = f(hdr.h.a, f(hdr.h.a, g(hdr.h.a)));",
        [0; 4],
        [4, 4, 0, 0],
    );
    ingress(
        "",
        "low(hdr.h.a[3:0], g(hdr.h.a));",
        [0x20, 0, 0, 0],
        [1, 0, 0, 0],
    );
    let apply = "meta.p = { 10, 20 }; hdr.h.a = sum(meta.p, change(meta.p));
        hdr.h.b = meta.p.x; hdr.h.c = meta.p.y;";
    ingress("", apply, [0; 4], [31, 11, 20, 0]);
    let apply = "hdr.g.setValid(); hdr.g.a = 5; hdr.h.a = valid(hdr.g, lose(hdr.g));
        if (hdr.g.isValid()) { hdr.h.b = hdr.g.a; }";
    ingress("", apply, [0; 4], [5, 5, 0, 0]);
    ingress(
        "",
        "hdr.h.b = early(hdr.h.a, g(hdr.h.a));",
        [9, 0, 0, 0],
        [1, 7, 0, 0],
    );
}

#[test]
fn places_of_arguments_are_found_in_their_turn() {
    let apply = "hdr.s[0].setValid(); hdr.s[1].setValid();
        hdr.s[0].a = 10; hdr.s[1].a = 20; meta.x = 0;
        f(hdr.s[meta.x].a, next(meta.x));
        hdr.h.a = hdr.s[0].a; hdr.h.b = hdr.s[1].a; hdr.h.c = meta.x;";
    ingress("", apply, [0; 4], [11, 20, 1, 0]);
    // Its index is what the callee changes.
    let apply = "hdr.s[0].setValid(); hdr.s[1].setValid();
        hdr.s[0].a = 10; hdr.s[1].a = 20; meta.x = 0;
        both(meta.x, hdr.s[meta.x].a);
        hdr.h.a = hdr.s[0].a; hdr.h.b = hdr.s[1].a; hdr.h.c = meta.x;";
    ingress("", apply, [0; 4], [12, 20, 1, 0]);
    let apply = "meta.x = 0; r.write(0, 7); r.write(1, 8);
        hdr.s[0].setValid(); hdr.s[1].setValid(); hdr.s[0].a = 1; hdr.s[1].a = 2;
        r.read(hdr.s[meta.x].a, (bit<32>)next(meta.x));
        hdr.h.a = hdr.s[0].a; hdr.h.b = hdr.s[1].a;";
    ingress("register<bit<8>>(4) r;", apply, [0; 4], [8, 2, 0, 0]);
}

#[test]
fn actions_and_controls_copy_like_functions() {
    let act = "action act(inout bit<8> x, in bit<8> z) { x = x + z; hdr.h.d = hdr.h.a; }";
    // Before the action ends, `hdr.h.a` is what `g` made of it.
    ingress(act, "act(hdr.h.a, g(hdr.h.a));", [0; 4], [1, 0, 0, 3]);
    let whole = "action act(inout h_t x, in bool y) {
            x.b = x.a + 1; if (hdr.g.isValid()) { hdr.h.d = 1; }
        }";
    let apply = "hdr.g.setValid(); hdr.g.a = 5; act(hdr.g, lose(hdr.g));
        hdr.h.a = hdr.g.a; hdr.h.b = hdr.g.b;";
    ingress(whole, apply, [0; 4], [5, 6, 0, 0]);
    let nested = "action act(inout bit<8> x, in bit<8> z) { x = x + z; }
        action outer() { act(hdr.h.a, g(hdr.h.a)); hdr.h.b = hdr.h.a; }";
    ingress(nested, "outer();", [0; 4], [1, 1, 0, 0]);
    ingress(
        "Add() add;",
        "add.apply(hdr.h.a, g(hdr.h.a));",
        [0; 4],
        [1, 0, 0, 0],
    );
    ingress("", "Add.apply(hdr.h.a, g(hdr.h.a));", [0; 4], [1, 0, 0, 0]);
    parser(
        "hdr.h.b = f(hdr.h.a, g(hdr.h.a));",
        "",
        [0; 4],
        [1, 4, 0, 0],
    );
}

#[test]
fn parsers_copy_like_functions() {
    let text = "Part() part; Pair() pair;
        state start {
            packet.extract(hdr.h);
            part.apply(packet, hdr.h.a, g(hdr.h.a));
            pair.apply(packet, y = hdr.h.b, x = hdr.h.b);
            transition accept;
        }";
    // A named argument follows none that is not.
    let text = text.replace("pair.apply(packet, y", "pair.apply(packet = packet, y");
    assert_eq!(run(&program(&text, "", ""), [0; 4]), [1, 1, 0, 0]);
    // Values that an inner parser wrote before its error are copied out.
    let text = "Short() short;
        state start {
            packet.extract(hdr.h);
            short.apply(packet, hdr.h.a, g(hdr.h.a));
            hdr.h.b = 9;
            transition accept;
        }";
    assert_eq!(run(&program(text, "", ""), [0; 4]), [1, 0, 0, 0]);
}

#[test]
fn applied_tables_are_arguments_with_side_effects() {
    let table = "action hit() { hdr.h.a = 3; }
        table t {
            key = { hdr.h.d : exact; }
            actions = { hit; NoAction; }
            const entries = { 1 : hit(); }
            const default_action = NoAction();
        }
        action act(inout bit<8> x, in bit<8> z) { x = x + z; }";
    let apply = "act(hdr.h.a, t.apply().hit ? 8w1 : 2);";
    ingress(table, apply, [0, 0, 0, 1], [1, 0, 0, 1]);
    ingress(table, apply, [0, 0, 0, 2], [2, 0, 0, 2]);
    let apply = "hdr.h.b = hdr.h.a + (t.apply().hit ? hdr.h.a : 8w2);";
    ingress(table, apply, [10, 0, 0, 1], [3, 13, 0, 1]);
}

#[test]
fn arguments_of_a_tables_action_are_copied_in_their_turn() {
    let table = "action act(inout bit<8> x, in bit<8> z) { x = x + z; hdr.h.c = hdr.h.a; }
        table t {
            actions = { act(hdr.h.a, g(hdr.h.a)); }
            const default_action = act(hdr.h.a, g(hdr.h.a));
        }";
    ingress(table, "t.apply();", [0; 4], [1, 0, 3, 0]);
    let named = "action act(out bit<8> x, out bit<8> y, bit<8> data) {
            x = 1; y = 2; hdr.h.b = data; exit;
        }
        table t {
            key = { hdr.h.d : exact; }
            actions = { act(y = hdr.h.a, x = hdr.h.a); NoAction; }
            const entries = { 1 : act(5); }
            const default_action = NoAction();
        }";
    ingress(named, "t.apply(); hdr.h.c = 9;", [0, 0, 0, 1], [1, 5, 0, 1]);
}

#[test]
fn arguments_are_copied_out_in_their_order() {
    ingress("", "two(y = hdr.h.a, x = hdr.h.a);", [0; 4], [1, 0, 0, 0]);
    ingress("", "two(x = hdr.h.a, y = hdr.h.a);", [0; 4], [2, 0, 0, 0]);
    ingress("", "two(hdr.h.a, hdr.h.a);", [0; 4], [2, 0, 0, 0]);
    ingress(
        "",
        "both(y = hdr.h.a, x = hdr.h.a);",
        [5, 0, 0, 0],
        [6, 0, 0, 0],
    );
    ingress("", "two(y = hdr.h.a, x = hdr.h.b);", [0; 4], [2, 1, 0, 0]);
    // Where one place is a part of the other.
    let show = "hdr.h.a = meta.p.x; hdr.h.b = meta.p.y;";
    let apply = format!("part(p = meta.p, x = meta.p.y); {show}");
    ingress("", &apply, [0; 4], [2, 1, 0, 0]);
    let apply = format!("part(x = meta.p.y, p = meta.p); {show}");
    ingress("", &apply, [0; 4], [2, 3, 0, 0]);
    let act = "action act(out bit<8> x, out bit<8> y) { x = 1; y = 2; }";
    ingress(act, "act(y = hdr.h.a, x = hdr.h.a);", [0; 4], [1, 0, 0, 0]);
    ingress(
        "Two() two_;",
        "two_.apply(y = hdr.h.a, x = hdr.h.a);",
        [0; 4],
        [1, 0, 0, 0],
    );
}

/// Spec §12.4 and §12.5.
#[test]
fn what_is_left_by_return_or_exit_is_copied_out() {
    let act = "action act(inout bit<8> x, in bit<8> z) { x = x + z; exit; }";
    ingress(
        act,
        "act(hdr.h.a, g(hdr.h.a)); hdr.h.b = 9;",
        [0; 4],
        [1, 0, 0, 0],
    );
    let act = "action act(out bit<8> x, out bit<8> y) { x = 1; y = 2; exit; }";
    ingress(
        act,
        "act(y = hdr.h.a, x = hdr.h.a); hdr.h.b = 9;",
        [0; 4],
        [1, 0, 0, 0],
    );
    let act = "action act(inout bit<8> x, in bit<8> z) { x = x + z; return; }";
    ingress(
        act,
        "act(hdr.h.a, g(hdr.h.a)); hdr.h.b = 9;",
        [0; 4],
        [1, 9, 0, 0],
    );
    let leave = "Leave() leave;";
    ingress(
        leave,
        "leave.apply(hdr.h.a, hdr.h.b, g(hdr.h.a)); hdr.h.c = 9;",
        [0; 4],
        [1, 1, 0, 0],
    );
    // Nothing after an argument that exits is evaluated.
    let table = "action leave() { hdr.h.c = 1; exit; }
        table t { actions = { leave; } const default_action = leave(); }
        action act(inout bit<8> x, in bit<8> z) { x = x + z; }";
    let apply = "act(hdr.h.a, t.apply().hit ? 8w1 : 2); hdr.h.b = 9;";
    ingress(table, apply, [0; 4], [0, 0, 1, 0]);
}

#[test]
fn operands_are_evaluated_from_left_to_right() {
    ingress(
        "",
        "hdr.h.b = hdr.h.a + next(hdr.h.a);",
        [4, 0, 0, 0],
        [5, 9, 0, 0],
    );
    ingress(
        "",
        "hdr.h.b = (hdr.h.a ++ next(hdr.h.a))[15:8];",
        [4, 0, 0, 0],
        [5, 4, 0, 0],
    );
    ingress(
        "",
        "hdr.h.b = hdr.h.a << next(hdr.h.a);",
        [2, 0, 0, 0],
        [3, 16, 0, 0],
    );
    let apply = "hdr.h.b = third(hdr.h.a, next(hdr.h.a), hdr.h.a);";
    ingress("", apply, [1, 0, 0, 0], [2, 16 + 8 + 2, 0, 0]);
    let apply = "if (hdr.h.a == 0 && next(hdr.h.b) == 1 || next(hdr.h.c) == 1) { hdr.h.d = 1; }";
    ingress("", apply, [0, 0, 0, 0], [0, 1, 0, 1]);
    ingress("", apply, [0, 1, 0, 0], [0, 2, 1, 1]);
    ingress("", apply, [1, 1, 1, 0], [1, 1, 2, 0]);
    let apply = "meta.p = { hdr.h.a, next(hdr.h.a) }; hdr.h.b = meta.p.x; hdr.h.c = meta.p.y;";
    ingress("", apply, [1, 0, 0, 0], [2, 1, 2, 0]);
    let apply = "meta.p = (pair_t){ y = hdr.h.a, x = next(hdr.h.a) };
        hdr.h.b = meta.p.x; hdr.h.c = meta.p.y;";
    ingress("", apply, [1, 0, 0, 0], [2, 2, 1, 0]);
    ingress(
        "",
        "hdr.h.a[3:0] = next(hdr.h.a)[3:0];",
        [0x1f, 0, 0, 0],
        [0x20, 0, 0, 0],
    );
    let table = "table t {
            key = { hdr.h.a : exact; next(hdr.h.a) : exact @name(\"n\"); hdr.h.a : exact @name(\"m\"); }
            actions = { NoAction; }
            const entries = { (1, 2, 2) : NoAction(); }
        }";
    ingress(
        table,
        "if (t.apply().hit) { hdr.h.b = 1; }",
        [1, 0, 0, 0],
        [2, 1, 0, 0],
    );
    let text = "state start {
            packet.extract(hdr.h);
            transition select(hdr.h.a, next(hdr.h.a), hdr.h.a) { (1, 2, 2): one; default: accept; }
        }
        state one { hdr.h.b = 1; transition accept; }";
    assert_eq!(run(&program(text, "", ""), [1, 0, 0, 0]), [2, 1, 0, 0]);
}

#[test]
fn crcs_count_constants() {
    let apply = "hash(hdr.h.b, HashAlgorithm.crc16, 8w0, { 8w1, hdr.h.a }, 16w256);
        hash(hdr.h.c, HashAlgorithm.crc16, 8w0, { hdr.h.a, 8w2 }, 16w256);";
    ingress("", apply, [7, 0, 0, 0], [7, 0x40, 0x83, 0]);
}

#[test]
fn comparisons_hold_at_the_bounds_of_values() {
    let apply = |value: &str, limit: u8| {
        let below = limit - 1;
        format!(
            "hash(hdr.h.b, HashAlgorithm.identity, 8w0, {{ hdr.h.a }}, 8w10);
            if ({value} < {limit}) {{ hdr.h.c = hdr.h.c | 1; }}
            if ({value} <= {below}) {{ hdr.h.c = hdr.h.c | 2; }}
            if ({value} >= {limit}) {{ hdr.h.c = hdr.h.c | 4; }}
            if ({value} > {below}) {{ hdr.h.c = hdr.h.c | 8; }}
            if ({limit} > {value}) {{ hdr.h.c = hdr.h.c | 16; }}
            if ({value} <= {limit}) {{ hdr.h.c = hdr.h.c | 32; }}"
        )
    };
    // The remainder of a hash, and a byte, at the greatest that they can be and below it.
    let remainder = apply("hdr.h.b", 9);
    ingress("", &remainder, [9, 0, 0, 0], [9, 9, 4 + 8 + 32, 0]);
    ingress("", &remainder, [8, 0, 0, 0], [8, 8, 1 + 2 + 16 + 32, 0]);
    let byte = apply("hdr.h.a", 255);
    ingress("", &byte, [255, 0, 0, 0], [255, 5, 4 + 8 + 32, 0]);
    ingress("", &byte, [254, 0, 0, 0], [254, 4, 1 + 2 + 16 + 32, 0]);
}

/// Spec §7.3: the default is `NoError`, with any declaration before it.
#[test]
fn no_error_is_the_default_whatever_is_declared_first() {
    let text = "state start {
            packet.extract(hdr.h);
            transition select(hdr.h.a) { 0: accept; 1: own; 2: more; }
        }
        state own { verify(false, error.B); transition accept; }
        state more { packet.extract(hdr.g); transition accept; }";
    let apply = "error e = std.parser_error;
        error fresh;
        if (e == error.NoError) { hdr.h.b = 1; }
        if (e == error.A) { hdr.h.b = 2; }
        if (e == error.B) { hdr.h.b = 3; }
        if (e == error.NoMatch) { hdr.h.b = 4; }
        if (e == error.PacketTooShort) { hdr.h.b = 5; }
        if (fresh == error.NoError && fresh != error.A) { hdr.h.c = 1; }
        switch (e) { error.A: { hdr.h.d = 1; } error.B: { hdr.h.d = 2; } default: {} }";
    for before in ["error { A, B }", "#include <core.p4>\nerror { A, B }"] {
        let program = program_with(before, text, "", apply);
        assert_eq!(program.errors[0], "NoError", "{before}");
        assert_eq!(run(&program, [0, 0, 0, 0]), [0, 1, 1, 0], "{before}");
        assert_eq!(run(&program, [1, 0, 0, 0]), [1, 3, 1, 2], "{before}");
        assert_eq!(run(&program, [2, 0, 0, 0]), [2, 5, 1, 0], "{before}");
        assert_eq!(run(&program, [3, 0, 0, 0]), [3, 4, 1, 0], "{before}");
    }
}

/// Loops that `hdr.h.a` chooses, one for each block, and a register that tells what ran.
const LOOPS: &str = "
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> n; }
struct headers { h_t h; }
struct metadata { bit<32> n; bit<32> x; }
register<bit<32>>(4) ran;
bit<32> spin(in bit<32> n) {
    bit<32> x = 0;
    for (bit<32> i = 0; i < n; i = i + 1) { x = x + 1; }
    return x;
}
parser Inner(packet_in packet, inout metadata meta) {
    state start { meta.x = spin(meta.n); transition accept; }
}
parser Parse(packet_in packet, out headers hdr, inout metadata meta,
             inout standard_metadata_t std) {
    Inner() inner;
    state start {
        packet.extract(hdr.h);
        meta.n = hdr.h.n == 0 ? 32w4 : (hdr.h.n == 1 ? 32w65535 : 65536);
        transition select(hdr.h.a) { 1: loop; default: accept; }
    }
    state loop { inner.apply(packet, meta); transition accept; }
}
control Verify(inout headers hdr, inout metadata meta) {
    apply { if (hdr.h.a == 2) { meta.x = spin(meta.n); } }
}
control Spin(inout metadata meta) {
    action act(inout bit<32> x) {
        clone(CloneType.I2E, 5);
        @atomic { ran.write(1, 7); x = spin(meta.n); }
        ran.write(2, x);
    }
    table t { actions = { act(meta.x); } const default_action = act(meta.x); }
    apply { t.apply(); }
}
control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    Spin() inner;
    apply {
        std.egress_spec = 2;
        if (hdr.h.a == 3) { inner.apply(meta); }
        ran.write(0, meta.x);
    }
}
control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (hdr.h.a == 4 && std.instance_type == 0) {
            clone(CloneType.E2E, 6); meta.x = spin(meta.n);
        }
    }
}
control Compute(inout headers hdr, inout metadata meta) {
    apply { if (hdr.h.a == 5) { meta.x = spin(meta.n); } }
}
control Deparse(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr);
        if (hdr.h.a == 6) {
            bit<32> x = spin(hdr.h.n == 0 ? 32w4 : (hdr.h.n == 1 ? 32w65535 : 65536));
        }
    }
}
V1Switch(Parse(), Verify(), MyIngress(), MyEgress(), Compute(), Deparse()) main;
";

/// Runs a script on both engines, and compares what they leave and count.
fn script(program: &Program, text: &str) {
    let script = stateplane_stf::parse("test.stf", text).unwrap();
    let interp = Interp::new(program.clone(), Default::default()).unwrap();
    let native = Native::new(program.clone(), Default::default()).unwrap();
    let interp = stateplane_stf::run(&script, interp);
    let interp = interp.unwrap_or_else(|error| panic!("interp: {text}\n{error}"));
    let native = stateplane_stf::run(&script, native);
    let native = native.unwrap_or_else(|error| panic!("native: {text}\n{error}"));
    assert_eq!(interp.counters(), native.counters(), "{text}");
    assert_eq!(interp.engine().state(), native.engine().state(), "{text}");
}

#[test]
fn a_packet_whose_loops_begin_too_many_rounds_is_dropped_and_counted() {
    let program = whole(LOOPS);
    for block in 1..=6 {
        let rest = "0000000000000000000000000000";
        let passes = |n: u8| {
            format!("packet 0 {block:02x} {n:02x} {rest}\nexpect 2 {block:02x} {n:02x} {rest} $\n")
        };
        // 65,535 rounds and the one that finds the end.
        let mut text = format!(
            "{}{}check_dropped loop_limit == 0
            packet 0 {block:02x} 02 {rest}\nexpect_none
            check_dropped loop_limit == 1
            check_dropped ingress == 0
            check_dropped egress == 0\n",
            passes(0),
            passes(1),
        );
        if block == 3 {
            // Earlier writes stay, and nothing follows.
            text += "register_read ran 1 == 7\nregister_read ran 2 == 65535\n";
            text += "check_dropped unknown_mirror_session == 2\n";
        }
        if block == 4 {
            text += "check_dropped unknown_mirror_session == 2\n";
        }
        text += &passes(0);
        script(&program, &text);
    }
}
