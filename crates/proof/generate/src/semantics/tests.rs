use super::*;
use crate::session::{Arrival, LIMITS};
use stateplane_switch::SwitchConfig;

/// Comparisons that making a difference smaller may take.
const ATTEMPTS: usize = 5000;

/// Programs of which one at least shows each mistake; the rarest needs an `exit` in a control that
/// another one applies.
const MISTAKES_SHOW_IN: u64 = 1000;

#[test]
fn programs_mean_what_the_specification_says() {
    let mut total = Judged::default();
    for seed in 0..250 {
        match check(seed, 8, ATTEMPTS) {
            Ok(judged) => total += judged,
            Err(mismatch) => panic!("seed {seed}: {mismatch}"),
        }
    }
    // Packets of which little is known would show little.
    assert!(total.open * 3 < total.packets, "{total}");
    assert!(total.open_bytes * 20 < total.bytes, "{total}");
}

/// The comparison sees a mistake in any rule of the language.
#[test]
fn mistakes_of_an_evaluator_are_found() {
    let mut hidden = Fault::ALL.to_vec();
    for seed in 0..MISTAKES_SHOW_IN {
        let Generated { program, session } = generate(seed, 12);
        let observed =
            observe(&program, &session).unwrap_or_else(|refusal| panic!("seed {seed}: {refusal}"));
        hidden.retain(|fault| {
            !judge(&observed, &session, Some(*fault)).is_err_and(|difference| difference.frames > 0)
        });
        if hidden.is_empty() {
            return;
        }
    }
    panic!("no difference shows {hidden:?}");
}

/// A program whose ingress has these declarations and statements, and sends
/// `hdr.shown`.
fn program(before: &str, declarations: &str, statements: &str) -> String {
    format!(
        "{before}
header shown_t {{ bit<8> a; bit<8> b; bit<8> c; bit<8> d; }}
header item_t {{ bit<8> z; }}
struct headers_t {{ shown_t shown; item_t[2] items; }}
struct meta_t {{ error e; }}
bit<8> set(inout bit<8> z) {{ z = 3; return 1; }}
bit<8> add(inout bit<8> x, in bit<8> z) {{ x = x + z; return 4; }}
void number(out bit<8> x, out bit<8> y) {{ x = 1; y = 2; }}
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    state start {{ transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control Add(inout bit<8> x, in bit<8> z) {{ apply {{ x = x + z; exit; }} }}
control Number(out bit<8> x, out bit<8> y) {{ apply {{ x = 1; y = 2; return; }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    {declarations}
    apply {{
        hdr.shown = {{ 0, 0, 0, 0 }};
        hdr.items = {{ {{ 10 }}, {{ 20 }} }};
        {statements}
    }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    )
}

/// Asserts that evaluator and interpreter both send these bytes: `hdr.shown`, and what is
/// valid of `hdr.items`.
fn means(before: &str, declarations: &str, statements: &str, expected: &[u8]) {
    let program = program(before, declarations, statements);
    let session = Session {
        seed: 0,
        config: SwitchConfig {
            ports: vec![0],
            limits: LIMITS,
            ..SwitchConfig::default()
        },
        writes: Vec::new(),
        updates: Vec::new(),
        arrivals: vec![Arrival {
            at: 1,
            port: 0,
            frame: vec![0xee; MIN_FRAME],
        }],
    };
    let judged = check_program(&program, &session, None, 0);
    let judged = judged.unwrap_or_else(|mismatch| panic!("{mismatch}"));
    let length = (expected.len() + MIN_FRAME) as u64;
    assert_eq!((judged.sent, judged.bytes), (1, length), "{program}");
    let observed = observe(&program, &session).unwrap_or_else(|refusal| panic!("{refusal}"));
    let sent = &observed.sent[0][0].frame[..expected.len()];
    assert_eq!(sent, expected, "{program}");
}

const V1MODEL: &str = "#include <v1model.p4>";

/// §6.8: an argument is read before the calls of those behind it, and stays where it was.
#[test]
fn arguments_are_copied_in_from_left_to_right() {
    let call = "hdr.shown.b = add(hdr.shown.a, set(hdr.shown.a));";
    means(V1MODEL, "", call, &[1, 4, 0, 0, 10, 20]);
    let call = "add(hdr.items[hdr.shown.a & 1].z, set(hdr.shown.a));";
    means(V1MODEL, "", call, &[3, 0, 0, 0, 11, 20]);
    let action = "action act(inout bit<8> x, in bit<8> z) { x = x + z; return; }";
    let call = "act(hdr.shown.a, set(hdr.shown.a));";
    means(V1MODEL, action, call, &[1, 0, 0, 0, 10, 20]);
    let call = "added.apply(hdr.shown.a, set(hdr.shown.a)); hdr.shown.d = 9;";
    means(V1MODEL, "Add() added;", call, &[1, 0, 0, 0, 10, 20]);
    let table = "action act(inout bit<8> x, in bit<8> z) { x = x + z; }
        table t { actions = { act(hdr.shown.a, set(hdr.shown.a)); }
            default_action = act(hdr.shown.a, set(hdr.shown.a)); }";
    means(V1MODEL, table, "t.apply();", &[1, 0, 0, 0, 10, 20]);
    let table = "action act() { hdr.shown.a = 7; } table t { actions = { act; }
            default_action = act(); }";
    let call = "add(hdr.shown.a, t.apply().hit ? 8w1 : 8w2);";
    means(V1MODEL, table, call, &[2, 0, 0, 0, 10, 20]);
}

/// §6.8: parameters are copied out in the order of the arguments, by name too.
#[test]
fn parameters_are_copied_out_from_left_to_right() {
    let call = "number(hdr.shown.a, hdr.shown.a); number(y = hdr.shown.b, x = hdr.shown.b);";
    means(V1MODEL, "", call, &[2, 1, 0, 0, 10, 20]);
    let call = "numbers.apply(y = hdr.shown.a, x = hdr.shown.a);";
    means(V1MODEL, "Number() numbers;", call, &[1, 0, 0, 0, 10, 20]);
    let action = "action act(out bit<8> x, out bit<8> y) { x = 1; y = 2; exit; }";
    let call = "act(y = hdr.shown.c, x = hdr.shown.c);";
    means(V1MODEL, action, call, &[0, 0, 1, 0, 10, 20]);
}

/// §7.3: `NoError` is the default of errors, whichever is declared first.
#[test]
fn no_error_is_the_default_error() {
    let before = "error { First, Second }\n#include <v1model.p4>";
    let shown = "error e = ...;
        hdr.shown.a = std.parser_error == error.NoError ? 8w1 : 8w2;
        hdr.shown.b = meta.e == error.NoError ? 8w1 : 8w2;
        hdr.shown.c = e == error.NoError ? 8w1 : 8w2;";
    means(before, "", shown, &[1, 1, 1, 0, 10, 20]);
}

/// §8.2 and §12.1: the left operand and the place of an assignment come first.
#[test]
fn expressions_are_evaluated_from_left_to_right() {
    let sum = "hdr.shown.b = hdr.shown.a + set(hdr.shown.a) + hdr.shown.a;";
    means(V1MODEL, "", sum, &[3, 4, 0, 0, 10, 20]);
    let assignment = "hdr.items[hdr.shown.a & 1].z = set(hdr.shown.a);";
    means(V1MODEL, "", assignment, &[3, 0, 0, 0, 1, 20]);
    let truth =
        "bool t = hdr.shown.a == 9 && set(hdr.shown.a) == 1; t = t || set(hdr.shown.b) == 1;
        hdr.shown.c = t ? 8w5 : 8w6;";
    means(V1MODEL, "", truth, &[0, 3, 5, 0, 10, 20]);
    let record =
        "hdr.shown = { d = set(hdr.shown.a), c = hdr.shown.a, b = 8, a = hdr.shown.a + 1 };";
    means(V1MODEL, "", record, &[4, 8, 3, 1, 10, 20]);
}

/// §8.25: an element outside its stack is written without effect, and what is read of it
/// is open.
#[test]
fn what_the_specification_leaves_open_is_not_judged() {
    let outside = "bit<8> index = hdr.shown.a + 2; hdr.items[index].z = 1;";
    means(V1MODEL, "", outside, &[0, 0, 0, 0, 10, 20]);
    let text = program(
        V1MODEL,
        "bit<8> none;",
        "hdr.shown.a = none; hdr.shown.b = 1; if (none == hdr.shown.c) { hdr.shown.d = 1; }",
    );
    let parsed = source::read(&text).unwrap();
    let mut evaluator = Evaluator::new(&parsed.tree).unwrap();
    let open = evaluator.process(0, &[0; MIN_FRAME]);
    assert_eq!(open, Outcome::Open("a condition"));
    let text = program(
        V1MODEL,
        "bit<8> none;",
        "hdr.shown.a = none; hdr.shown.b = 1;",
    );
    let parsed = source::read(&text).unwrap();
    let mut evaluator = Evaluator::new(&parsed.tree).unwrap();
    let Outcome::Sent { bytes, known, .. } = evaluator.process(0, &[0; MIN_FRAME]) else {
        panic!("a frame is sent");
    };
    assert_eq!(bytes[1..6], [1, 0, 0, 10, 20]);
    assert_eq!(known[..6], [0, 0xff, 0xff, 0xff, 0xff, 0xff]);
}
