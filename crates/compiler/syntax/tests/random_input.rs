//! Random programs: any input gives a tree without a panic, and the text of a tree without errors
//! reads as the same tree.

use proptest::prelude::*;
use stateplane_diagnostics::{Color, render_all};
use stateplane_syntax::{MemoryLoader, Options, Parsed, parse, print};

fn read(text: &str) -> Parsed {
    parse(
        &MemoryLoader::new().with("t", text),
        "t",
        &Options::default(),
    )
}

/// Everything that can be done with what was read.
fn use_up(parsed: &Parsed) {
    let printed = print(&parsed.tree);
    let told = render_all(&parsed.diagnostics, &parsed.sources, Color::Ansi);
    assert_eq!(told.is_empty(), parsed.diagnostics.is_empty());
    if parsed.diagnostics.has_errors() {
        return;
    }
    let again = read(&printed);
    assert!(
        again.diagnostics.is_empty(),
        "printed text is refused:\n{printed}"
    );
    assert_eq!(
        print(&again.tree),
        printed,
        "printed text reads differently"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        use_up(&read(&String::from_utf8_lossy(&bytes)));
    }

    #[test]
    fn any_tokens(tokens in prop::collection::vec(prop::sample::select(TOKENS), 0..150)) {
        use_up(&read(&tokens.join(" ")));
    }

    #[test]
    fn a_good_program_with_tokens_lost_or_doubled(
        edits in prop::collection::vec((0_usize..400, any::<bool>()), 1..6),
    ) {
        let mut tokens: Vec<&str> =
            SAMPLE.split_inclusive([' ', '\n', '(', ';', '{', '<']).collect();
        for (at, double) in edits {
            let at = at % tokens.len();
            if double {
                tokens.insert(at, tokens[at]);
            } else {
                tokens.remove(at);
            }
        }
        use_up(&read(&tokens.concat()));
    }
}

#[test]
fn the_sample_is_good() {
    let parsed = read(SAMPLE);
    assert!(parsed.diagnostics.is_empty());
    use_up(&parsed);
}

const SAMPLE: &str = "\
header H { bit<8> a; varbit<64> v; }
struct S<T> { H h; T[4] s; }
enum bit<8> E { x = 1, y = 2 }
extern R<T> { R(bit<32> n); void read(out T t, in bit<32> i); }
parser P(packet_in b, out S<H> s) {
    state start {
        b.extract(s.h);
        transition select(s.h.a, b.lookahead<bit<8>>()) { (1 &&& 3, _): next; default: accept; }
    }
    state next { transition reject; }
}
control C(inout S<H> s)(bit<8> n) {
    R<bit<8>>(1024) r;
    action a(bit<8> k) { r.read(s.h.a, (bit<32>) k); s.h.a = s.h.a + k << 2; }
    table t {
        key = { s.h.a : exact; }
        actions = { a; NoAction; }
        entries = { const priority = 1 : 3 : a(1); (_) : NoAction(); }
        default_action = NoAction();
    }
    apply {
        if (s.h.isValid() && t.apply().hit) { exit; } else return;
        switch (t.apply().action_run) { a: { } default: { s = { h = {#}, ... }; } }
        for (bit<8> i in 1 .. 3) { a(i); continue; }
    }
}
Main(P(), C(8w3)) main;
";

/// Tokens of random programs: mostly those that open, close or begin something.
const TOKENS: &[&str] = &[
    "action",
    "actions",
    "apply",
    "bit",
    "bool",
    "break",
    "const",
    "control",
    "default",
    "else",
    "entries",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "for",
    "header",
    "if",
    "in",
    "inout",
    "int",
    "key",
    "list",
    "match_kind",
    "out",
    "package",
    "parser",
    "priority",
    "return",
    "select",
    "state",
    "struct",
    "switch",
    "table",
    "this",
    "transition",
    "true",
    "tuple",
    "type",
    "typedef",
    "value_set",
    "varbit",
    "void",
    "_",
    "x",
    "y",
    "T",
    "1",
    "8w3",
    "\"s\"",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ">>",
    "<<",
    "(",
    ")",
    "{",
    "}",
    "<",
    ">",
    ";",
    ";",
    ";",
    ",",
    ".",
    ":",
    "=",
    "==",
    "+",
    "-",
    "&&&",
    "..",
    "...",
    "{#}",
    "?",
    "@a",
    "@pragma p",
    "!",
    "+=",
    "|+|",
    "++",
    "\n#if 1\n",
    "\n#endif\n",
    "\n#define x(y) y y\n",
    "\n#else\n",
    "$",
    "'",
];
