//! Programs as text.

use stateplane_compile::Source;
use stateplane_diagnostics::{Color, Diagnostics, SourceMap, render_all};
use stateplane_generate::{Choices, generate_from, source};
use stateplane_syntax::{MemoryLoader, Parsed, print, token::TokenKind};

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

fn source_of(text: String) -> Source<MemoryLoader> {
    // A second file, so that programs can include one that includes them.
    let other = "#ifndef OTHER\n#define OTHER(x) x\n#include \"main.p4\"\n#endif\n";
    let loader = MemoryLoader::new()
        .with(source::MAIN_FILE, text)
        .with("other.p4", other);
    Source::new(loader, source::MAIN_FILE)
}

fn rendered(diagnostics: &Diagnostics, sources: &SourceMap) -> String {
    let told = render_all(diagnostics, sources, Color::Never);
    assert_eq!(told.is_empty(), diagnostics.is_empty());
    told
}

/// Tokens end with the end, and diagnostics render.
pub(super) fn preprocess(input: &[u8]) {
    let mut diagnostics = Diagnostics::new();
    let source = source_of(text(input));
    let (tokens, sources) = stateplane_syntax::tokenize(
        source.loader(),
        source.main_file(),
        source.options(),
        &mut diagnostics,
    );
    let last = tokens.last().map(|token| token.kind);
    assert_eq!(last, Some(TokenKind::End));
    rendered(&diagnostics, &sources);
}

fn read(text: String) -> Parsed {
    let source = source_of(text);
    stateplane_syntax::parse(source.loader(), source.main_file(), source.options())
}

/// The text of a tree without errors reads as the same tree.
pub(super) fn parse(input: &[u8]) {
    let parsed = read(text(input));
    let printed = print(&parsed.tree);
    let told = rendered(&parsed.diagnostics, &parsed.sources);
    if parsed.diagnostics.has_errors() {
        return;
    }
    let again = read(printed.clone());
    assert!(
        !again.diagnostics.has_errors(),
        "printed text is refused: {}\n{printed}\n{told}",
        rendered(&again.diagnostics, &again.sources)
    );
    assert_eq!(
        print(&again.tree),
        printed,
        "printed text reads differently"
    );
}

/// A program is accepted and keeps the rules of the IR, or it is refused with a reason.
pub(super) fn check(input: &[u8]) {
    let compiled = source::check(&text(input));
    let told = rendered(&compiled.diagnostics, &compiled.sources);
    match compiled.program {
        None => assert!(
            compiled.diagnostics.has_errors(),
            "refused in silence: {told}"
        ),
        Some(program) => {
            assert!(!compiled.diagnostics.has_errors(), "accepted: {told}");
            if let Err(errors) = stateplane_ir::verify(&program) {
                panic!("the IR breaks its rules: {errors:?}");
            }
            // Loading may refuse what is too large, but does not fail otherwise.
            let _ = stateplane_generate::properties::interpreter(program, 0);
        }
    }
}

/// A text that reads as IR prints as text that reads as the same IR, and the verifier judges it
/// without a panic.
pub(super) fn ir(input: &[u8]) {
    let program = match stateplane_ir::parse(&text(input)) {
        Ok(program) => program,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let printed = program.to_string();
    match stateplane_ir::parse(&printed) {
        Ok(again) => assert_eq!(again.to_string(), printed, "printed IR reads differently"),
        Err(error) => panic!("printed IR is refused: {error}\n{printed}"),
    }
    if stateplane_ir::verify(&program).is_ok() {
        // Loading may refuse what is too large, but does not fail otherwise.
        let _ = stateplane_generate::properties::interpreter(program, 0);
    }
}

/// The program that the bytes decide is accepted.
pub(super) fn generate(input: &[u8]) {
    let generated = generate_from(Choices::from_bytes(input), 4);
    if let Err(refusal) = source::compile(&generated.program) {
        panic!("{refusal}\n{}", generated.program);
    }
}

/// Words of the preprocessor.
pub(super) const DIRECTIVES: &[&str] = &[
    "\n#include \"other.p4\"\n",
    "\n#include <core.p4>\n",
    "\n#include \"main.p4\"\n",
    "\n#define A(x, y) x##y #x A(y, x)\n",
    "\n#define B A(B, B)\n",
    "\n#undef A\n",
    "\n#if defined(A) && (1 + 2 << 70) / 0\n",
    "\n#elif 0x7fffffffffffffff * 2\n",
    "\n#ifdef A\n",
    "\n#ifndef A\n",
    "\n#else\n",
    "\n#endif\n",
    "\n#error e\n",
    "\n#warning w\n",
    "\n#pragma p\n",
    "\n#line 4294967295 \"x\"\n",
    "\n#",
    "\\\n",
    "A(",
    "B",
    ")",
    ",",
    "/*",
    "*/",
    "//",
    "\"",
    "__FILE__",
    "__LINE__",
    "\r\n",
    "\u{feff}",
    "\u{e9}",
    "1 ? 2 : 3",
    "-9223372036854775808",
];

/// Words of the language.
pub(super) const WORDS: &[&str] = &[
    "#include <v1model.p4>\n",
    "header h { bit<8> a; varbit<64> v; } ",
    "header_union u { h a; h b; } ",
    "struct s { h a; h[4] b; tuple<bit<8>, bool> c; } ",
    "enum bit<8> e { x = 1, y = 2 } ",
    "type bit<9> t; ",
    "typedef bit<32> t; ",
    "parser P(packet_in p, out s h) { state start { transition accept; } } ",
    "control C(inout s h)(bit<8> n) { apply { } } ",
    "table t { key = { x : exact; } actions = { a; NoAction; } default_action = NoAction(); } ",
    "const entries = { (1, _) : a(); } ",
    "action a(inout bit<8> x, bit<8> y) { } ",
    "T f<T>(in T x) { return x; } ",
    "extern E<T> { E(bit<32> n); void read(out T t); } ",
    "package K<T>(C c = C()); ",
    "switch (t.apply().action_run) { a: { } default: { } } ",
    "for (bit<8> i in 0 .. 3) { break; } ",
    "for (bit<8> i = 0; i < 3; i = i + 1) { continue; } ",
    "transition select(x, y) { (1 &&& 3, 2 .. 5): a; default: b; } ",
    "value_set<bit<8>>(4) v; ",
    "packet.extract(hdr.s.next); ",
    "packet.lookahead<bit<8>>() ",
    "verify(false, error.NoMatch); ",
    "this ",
    "list<bit<8>> ",
    "{ a = 1, ... } ",
    "{#} ",
    "(bit<8>) ",
    "(int<8>) ",
    "bit<(1 << 20)> ",
    "bit<65536> ",
    "int<0> ",
    "varbit<8> ",
    "0w0 ",
    "1s1 ",
    "65536w1 ",
    "99999999999999999999999999999999 ",
    "1 << 99999 ",
    "-1 ",
    "[7:0] ",
    "[4294967296:0] ",
    "++ ",
    "|+| ",
    "|-| ",
    "&&& ",
    ">> ",
    "<< ",
    "/ 0 ",
    "% 0 ",
    "? : ",
    "... ",
    "_ ",
    "@name(\"\\\"\") ",
    "@field_list(1) ",
    "@atomic ",
    "error ",
    "match_kind { x } ",
    "string ",
    "void ",
    "abstract ",
    "exit; ",
    "return; ",
    "const ",
    "in ",
    "out ",
    "inout ",
    "if (true) ",
    "else ",
    "{ ",
    "} ",
    "( ",
    ") ",
    "< ",
    "> ",
    "; ",
    ", ",
    ". ",
    ": ",
    "= ",
];

/// Words of the IR's text form.
pub(super) const IR_WORDS: &[&str] = &[
    "bit<8>",
    "int<8>",
    "varbit<8>",
    "bool",
    "error",
    "8w1",
    "8s-1",
    "0x",
    "#1",
    "?1",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    "=",
    ";",
    ",",
    ".",
    ":",
    "_",
    "&&&",
    "..",
    "/",
    "\"",
    "\\",
    "if ",
    "else ",
    "switch ",
    "loop ",
    "break",
    "continue",
    "return",
    "exit",
    "block ",
    "atomic ",
    "call ",
    "apply ",
    "state ",
    "select ",
    "accept",
    "reject",
    "table ",
    "action ",
    "control ",
    "parser ",
    "function ",
    "register ",
    "counter ",
    "meter ",
    "header ",
    "struct ",
    "union ",
    "stack ",
    "enum ",
    "var ",
    "in ",
    "out ",
    "inout ",
    "data ",
    "default",
    "true",
    "false",
    "4294967296",
    "99999999999999999999",
    "-",
    "+",
    "++",
    "last",
    "next",
];
