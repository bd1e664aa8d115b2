use super::*;
use crate::{parse, verify};

/// A program around the declarations and the ingress body of a test.
const SHELL: &str = "pipeline {
  parser P
  verify_checksum nothing
  ingress I
  egress E
  compute_checksum nothing
  deparser D
  headers: struct headers_t
  metadata: struct meta_t
  standard_metadata: struct standard_metadata_t
}
error {NoError, PacketTooShort, NoMatch, StackOutOfBounds, HeaderTooShort, ParserTimeout, ParserInvalidArgument}
enum colour_t {red, green}
fields h_t {
  a: bit<8>
  b: bit<8>
}
fields u_t {
  x: header h_t
  y: header h_t
}
fields headers_t {
  h: header h_t
  s: header h_t[2]
  u: header_union u_t
}
fields meta_t {
  m: bit<8>
  n: bit<8>
  flag: bool
}
fields standard_metadata_t {
  egress_spec: bit<9>
  mcast_grp: bit<16>
  checksum_error: bit<1>
}
stack 0: header h_t[2]
var P.hdr: struct headers_t
var P.meta: struct meta_t
var P.std: struct standard_metadata_t
var hdr: struct headers_t
var meta: struct meta_t
var std: struct standard_metadata_t
var N.hdr: struct headers_t
var N.meta: struct meta_t
var E.hdr: struct headers_t
var E.meta: struct meta_t
var E.std: struct standard_metadata_t
var D.hdr: struct headers_t
var t: bit<8>
var w: bit<8>
var v: bool
var h: header h_t
var act.x: bit<8>
var act.y: bit<8>
var fn.x: bit<8>
var fn.result: bit<8>
var front: bit<8>
register r: bit<8>[4]
STATEMENTS
parser P(out P.hdr, inout P.meta, inout P.std) {
PARSER
}
control nothing(inout N.hdr, inout N.meta) {
}
control I(inout hdr, inout meta, inout std) {
  locals t, w, v, h
BODY
}
control E(inout E.hdr, inout E.meta, inout E.std) {
}
control D(in D.hdr) {
}
";

const CALLABLES: &str = "function fn(in fn.x) -> fn.result {
  locals fn.result
  fn.result = (fn.x + w)
}
action act(inout act.x, data act.y) {
  act.x = act.y
  meta.m = w
}
table tab {
  key \"k\" exact t
  action act(inout meta.n)
  const default act(8w0)
  size 4
}";

const PARSER: &str = "  start start
  state start {
    goto accept
  }";

fn program(callables: &str, parser: &str, body: &str) -> Program {
    let text = SHELL
        .replace("STATEMENTS", callables)
        .replace("PARSER", parser)
        .replace("BODY", body);
    let program = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&program).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    program
}

/// The program after a pass, which the verifier accepts and the pass leaves as it is.
#[track_caller]
fn after(name: &str, mut program: Program) -> String {
    let pass = PASSES.iter().find(|pass| pass.name == name).unwrap();
    (pass.run)(&mut program);
    let text = program.to_string();
    verify(&program).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    assert_eq!(parse(&text).unwrap(), program);
    text
}

/// Text between two lines of a text.
fn between<'t>(text: &'t str, head: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(head).expect(head);
    rest.split_once(end).expect(end).0
}

/// Checks what a pass makes of statements of the ingress.
#[track_caller]
fn becomes(pass: &str, body: &str, wanted: &str) {
    let body = indented(body);
    let text = after(pass, program(CALLABLES, PARSER, &body));
    let found = between(
        &text,
        "control I(inout hdr, inout meta, inout std) {\n",
        "\n}\n",
    );
    let found: Vec<&str> = found
        .lines()
        .filter(|line| !line.starts_with("  locals "))
        .collect();
    assert_eq!(found.join("\n"), indented(wanted), "{pass} of\n{body}");
}

/// The lines of a text with the indentation that the printer gives them in a control.
fn indented(text: &str) -> String {
    let mut depth = 1;
    let mut out = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        depth -= usize::from(line.starts_with('}'));
        out.push(format!("{}{line}", "  ".repeat(depth)));
        depth += usize::from(line.ends_with('{'));
    }
    out.join("\n")
}

/// Checks what folding makes of an expression of type `bit<8>` or `bool`.
#[track_caller]
fn folds(expr: &str, wanted: &str) {
    let place = match wanted {
        "true" | "false" => "v",
        _ if wanted.contains("==") || wanted.starts_with('!') || wanted == "v" => "v",
        _ => "t",
    };
    becomes(
        "fold",
        &format!("{place} = {expr}"),
        &format!("{place} = {wanted}"),
    );
}

#[test]
fn blocks_are_flattened() {
    becomes(
        "flatten",
        "block {
            t = 8w1
            block {
                t = 8w2
            }
            block {
            }
        }
        if v {
            block {
                t = 8w3
            }
        }
        atomic {
            block {
                t = 8w4
            }
        }
        atomic {
        }",
        "t = 8w1
        t = 8w2
        if v {
            t = 8w3
        }
        atomic {
            t = 8w4
        }",
    );
}

#[test]
fn constants_are_folded() {
    folds("(8w250 + 8w10)", "8w4");
    folds("(8w1 - 8w2)", "8w0xff");
    folds("(8w250 |+| 8w10)", "8w0xff");
    folds("(8w1 |-| 8w2)", "8w0");
    folds("(8w7 / 8w0)", "8w0");
    folds("(8w7 % 8w4)", "8w3");
    folds("(8w0x81 << 32w1)", "8w2");
    folds("(8w0x81 >> 32w8)", "8w0");
    folds("(bit<8>)((8s-127 >> 32w1))", "8w0xc0");
    folds("(bit<8>)((8s-128 |-| 8s1))", "8w0x80");
    folds("(bit<8>)((8s127 |+| 8s1))", "8w0x7f");
    folds("(bit<8>)(-(8s-128))", "8w0x80");
    folds("~(8w0xf)", "8w0xf0");
    folds("(4w0xa ++ 4w0xb)", "8w0xab");
    folds("(bit<8>)(4s-1)", "8w0xff");
    folds("(bit<8>)(16w0x1234)", "8w0x34");
    folds("(16w0x1234)[11:4]", "8w0x23");
    folds("(8s-1 < 8s0)", "true");
    folds("(8w0xff < 8w0)", "false");
    folds("(bool)(1w1)", "true");
    folds("(true ? t : w)", "t");
    folds("default(bit<8>)", "8w0");
    folds("(error::NoMatch != error::NoError)", "true");
    folds("(colour_t::red == colour_t::green)", "false");
    folds("(!(true) || (false == false))", "true");
}

#[test]
fn operations_that_change_nothing_go() {
    folds("(t + 8w0)", "t");
    folds("(8w0 | t)", "t");
    folds("(t & 8w0xff)", "t");
    folds("(t & 8w0)", "8w0");
    folds("(t * 8w1)", "t");
    folds("(t << 3w0)", "t");
    folds("~(~(t))", "t");
    folds("(bit<8>)(t)", "t");
    folds("(t)[7:0]", "t");
    folds(
        "(bit<8>)((((hdr.h.a ++ hdr.h.b))[14:3])[11:4])",
        "((hdr.h.a ++ hdr.h.b))[14:7]",
    );
}

#[test]
fn conditions_are_folded() {
    folds("(v && true)", "v");
    folds("(false && v)", "false");
    folds("(v || true)", "true");
    folds("(v == true)", "v");
    folds("(v != true)", "!(v)");
    folds("(v ? true : false)", "v");
    folds("!((t != w))", "(t == w)");
    folds("!(!(v))", "v");
}

#[test]
fn what_may_end_a_parser_is_computed() {
    let body = "    P.meta.flag = ((P.hdr.s.last.a == 8w0) && false)
    P.meta.m = (P.hdr.s.last.a & 8w0)
    P.meta.n = (P.meta.m & 8w0)
    if (P.hdr.s.last.a == 8w0) {
    }
    front = P.hdr.s.last.a
    front = P.meta.n
    front = 8w1";
    let parser =
        format!("  locals front\n  start start\n  state start {{\n{body}\n    goto accept\n  }}");
    let mut program = program(CALLABLES, &parser, "");
    optimise(&mut program);
    let text = program.to_string();
    let wanted = "
    P.meta.flag = ((P.hdr.s.last.a == 8w0) && false)
    P.meta.m = (P.hdr.s.last.a & 8w0)
    P.meta.n = 8w0
    if (P.hdr.s.last.a == 8w0) {
    }
    front = P.hdr.s.last.a
    goto";
    assert_eq!(between(&text, "state start {", " accept"), wanted);
}

#[test]
fn branches_on_constants_are_chosen() {
    becomes(
        "branches",
        "if true {
            t = 8w1
        }
        else {
            t = 8w2
        }
        if false {
            t = 8w3
        }
        if v {
        }
        if v {
        }
        else {
            t = 8w4
        }
        switch 8w2 {
            case 1 {
                t = 8w5
            }
            case 2, 3 {
                t = 8w6
            }
        }
        switch t {
            default {
                t = 8w7
            }
        }
        switch t {
            case 1 {
            }
        }",
        "t = 8w1
        if !(v) {
            t = 8w4
        }
        t = 8w6
        t = 8w7",
    );
}

#[test]
fn what_is_never_reached_goes() {
    becomes(
        "branches",
        "loop {
            if v {
                break
                t = 8w1
            }
            else {
                continue
            }
            t = 8w2
        }
        if v {
            return
        }
        else {
            t = 8w3
            exit
        }
        t = 8w4",
        "loop {
            if v {
                break
            }
            else {
                continue
            }
        }
        if v {
            return
        }
        else {
            t = 8w3
            exit
        }",
    );
}

#[test]
fn copies_are_read_where_they_come_from() {
    becomes(
        "copies",
        "t = meta.m
        meta.n = t
        meta.m = t
        meta.n = t
        w = 8w7
        hdr.s[w].a = w
        h = hdr.h
        meta.n = h.a
        hdr.s[1w0] = hdr.h
        meta.flag = h.isValid()
        emit(h)",
        "t = meta.m
        meta.n = meta.m
        meta.m = meta.m
        meta.n = t
        w = 8w7
        hdr.s[8w7].a = 8w7
        h = hdr.h
        meta.n = hdr.h.a
        hdr.s[1w0] = hdr.h
        meta.flag = hdr.h.isValid()
        emit(hdr.h)",
    );
}

#[test]
fn a_write_ends_a_copy() {
    becomes(
        "copies",
        "t = meta.m
        meta.m = 8w1
        meta.n = t
        h = hdr.u.x
        hdr.u.y.setValid()
        emit(h)
        h = hdr.h
        hdr.h.setInvalid()
        emit(h)
        w = meta.m
        apply tab
        meta.n = w
        w = hdr.h.a
        apply tab
        meta.n = w
        t = hdr.h.a
        mark_to_drop(std)
        meta.n = t",
        "t = meta.m
        meta.m = 8w1
        meta.n = t
        h = hdr.u.x
        hdr.u.y.setValid()
        emit(h)
        h = hdr.h
        hdr.h.setInvalid()
        emit(h)
        w = meta.m
        apply tab
        meta.n = w
        w = hdr.h.a
        apply tab
        meta.n = hdr.h.a
        t = hdr.h.a
        mark_to_drop(std)
        meta.n = hdr.h.a",
    );
}

#[test]
fn copies_hold_where_all_ways_agree() {
    becomes(
        "copies",
        "t = 8w1
        w = 8w1
        if v {
            t = 8w2
            w = 8w3
        }
        else {
            t = 8w2
        }
        meta.m = t
        meta.n = w
        if v {
            t = 8w4
            exit
        }
        meta.m = t
        loop {
            if (t == w) {
                break
            }
            w = t
        }
        meta.m = t
        meta.n = w",
        "t = 8w1
        w = 8w1
        if v {
            t = 8w2
            w = 8w3
        }
        else {
            t = 8w2
        }
        meta.m = 8w2
        meta.n = w
        if v {
            t = 8w4
            exit
        }
        meta.m = 8w2
        loop {
            if (8w2 == w) {
                break
            }
            w = 8w2
        }
        meta.m = 8w2
        meta.n = w",
    );
}

#[test]
fn what_is_read_once_is_computed_there() {
    becomes(
        "copies",
        "t = (meta.m + meta.n)
        meta.m = (t << 8w1)
        v = hdr.h.isValid()
        hdr.h.setInvalid()
        meta.flag = v",
        "t = (meta.m + meta.n)
        meta.m = (t << 8w1)
        v = hdr.h.isValid()
        hdr.h.setInvalid()
        meta.flag = v",
    );
    let body = "  v = (meta.m == 8w1)\n  meta.m = 8w2\n  meta.flag = v";
    let text = after("copies", program("", PARSER, body));
    assert!(text.contains("  meta.flag = v\n"), "{text}");
    let body = "  v = (meta.m == 8w1)\n  meta.n = 8w2\n  meta.flag = v";
    let text = after("copies", program("", PARSER, body));
    assert!(text.contains("  meta.flag = (meta.m == 8w1)\n"), "{text}");
}

#[test]
fn arguments_are_read_where_they_come_from() {
    becomes(
        "copies",
        "t = meta.m
        call function fn(in t) -> t
        meta.n = t
        t = act.x
        call action act(inout meta.n, in t)
        w = 8w3
        call function fn(in 8w1) -> t",
        "t = meta.m
        call function fn(in meta.m) -> t
        meta.n = t
        t = act.x
        call action act(inout meta.n, in t)
        w = 8w3
        call function fn(in 8w1) -> t",
    );
}

#[test]
fn dead_assignments_go() {
    becomes(
        "dead_assignments",
        "t = 8w1
        t = 8w2
        meta.m = t
        t = 8w3
        v = (meta.n == 8w4)
        h.setValid()
        h.a = meta.m
        register_read r[32w0] -> t
        hash crc16(base 8w0, max 8w4, {meta.m}) -> t
        if v {
            h = hdr.h
        }",
        "t = 8w2
        meta.m = t
        v = (meta.n == 8w4)
        if v {
        }",
    );
}

#[test]
fn what_something_reads_stays() {
    becomes(
        "dead_assignments",
        "w = 8w1
        call function fn(in 8w1) -> t
        w = 8w2
        t = 8w3
        apply tab hit -> v
        hash random(base 8w0, max 8w4, {meta.m}) -> t
        meta.m = 8w4
        loop {
            if v {
                break
            }
            v = (t == 8w5)
            t = 8w6
        }
        random(8w0, 8w9) -> t",
        "w = 8w1
        call function fn(in 8w1)
        w = 8w2
        t = 8w3
        apply tab hit -> v
        hash random(base 8w0, max 8w4, {meta.m}) -> t
        meta.m = 8w4
        loop {
            if v {
                break
            }
            v = (t == 8w5)
            t = 8w6
        }
        random(8w0, 8w9) -> t",
    );
}

#[test]
fn results_that_nothing_reads_are_not_given() {
    becomes(
        "dead_assignments",
        "t = 8w1
        w = 8w1
        apply tab hit -> v",
        "t = 8w1
        w = 8w1
        apply tab",
    );
}

#[test]
fn states_are_one_flow() {
    let parser = "  locals front, t
  start start
  state start {
    front = 8w1
    t = 8w2
    select (P.meta.m) {
      (0x1) => start
      (_) => next
    }
  }
  state next {
    select (front) {
      (0x1) => next
      (_) => accept
    }
  }";
    let body = "  meta.m = 8w0";
    let program = program("", parser, body);
    let parser_of = |text: &str| between(text, "inout P.std) {\n", "\n}\n").to_owned();
    // `t` is a local of the ingress too, which may not see what the parser leaves.
    let text = parser_of(&after("dead_assignments", program.clone()));
    assert_eq!(text, parser);
    let text = parser_of(&after("resets", program));
    assert_eq!(text, parser.replace("locals front, t", "locals t"));
}

#[test]
fn variables_that_are_set_first_are_not_reset() {
    let body = "  t = 8w1
  if v {
    w = t
  }
  meta.m = w
  h.a = 8w1
  emit(h)";
    let text = after("resets", program("", PARSER, body));
    assert!(text.contains("\n  locals w, v, h\n  t = 8w1\n"), "{text}");
}

#[test]
fn what_is_not_used_goes() {
    let callables = format!(
        "{CALLABLES}
action lonely() {{
  call function only(in 8w1)
}}
function only(in front) {{
}}"
    );
    let text = after("unused", program(&callables, PARSER, "  apply tab"));
    for gone in [
        "lonely",
        "only",
        "function fn",
        "front",
        "var t#",
        "var v",
        "var fn.x",
    ] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
    for kept in ["action act(", "table tab", "register r", "control nothing("] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert!(text.contains("\n  locals t, w\n"), "{text}");
}

#[test]
fn the_sample_stays_sound() {
    let mut program = crate::sample::program();
    for pass in &PASSES {
        (pass.run)(&mut program);
        assert_eq!(verify(&program), Ok(()), "after {}", pass.name);
    }
    optimise(&mut program);
    assert_eq!(verify(&program), Ok(()));
    let before = program.clone();
    optimise(&mut program);
    assert_eq!(program, before);
}

#[test]
fn names_of_passes_differ() {
    for (index, pass) in PASSES.iter().enumerate() {
        assert!(!pass.about.is_empty());
        assert!(PASSES[..index].iter().all(|other| other.name != pass.name));
    }
}
