//! Tokens that the preprocessor makes of texts.

use proptest::prelude::*;
use stateplane_diagnostics::Diagnostics;

use crate::{FileLoader, LoadError, MemoryLoader, Options, tokenize};

fn run(loader: &dyn FileLoader, options: &Options) -> (String, Vec<String>) {
    let mut diagnostics = Diagnostics::new();
    let (tokens, _) = tokenize(loader, "main", options, &mut diagnostics);
    let text: Vec<_> = tokens[..tokens.len() - 1]
        .iter()
        .map(|t| &*t.text)
        .collect();
    let messages = diagnostics
        .iter()
        .map(|d| format!("{} {}", d.code, d.message))
        .collect();
    (text.join(" "), messages)
}

fn of(text: &str) -> (String, Vec<String>) {
    run(&MemoryLoader::new().with("main", text), &Options::default())
}

#[track_caller]
fn gives(text: &str, expected: &str) {
    let (tokens, messages) = of(text);
    assert!(messages.is_empty(), "{messages:?}");
    assert_eq!(tokens, expected, "{text}");
}

#[track_caller]
fn complains(text: &str, message: &str) {
    let (_, messages) = of(text);
    assert!(
        messages.iter().any(|m| m.contains(message)),
        "{text}: {messages:?}"
    );
}

#[test]
fn tokens_are_told_apart() {
    gives("a/*x*/b//y\nc", "a b c");
    gives("8w0xFF 4s3 1_0 0b11", "8w0xFF 4s3 1_0 0b11");
    gives("a<<=b>>=c>>d>=e", "a <<= b >>= c > > d >= e");
    gives("a|+|b|-|c|+|=d|-|=e", "a |+| b |-| c |+|= d |-|= e");
    gives("a&&&b&&c&d...e..f.g", "a &&& b && c & d ... e .. f . g");
    gives("{#}{ }", "{#} { }");
    gives("x[1+:2]", "x [ 1 +: 2 ]");
    gives("\"a\\\"b\" \"c\nd\"", "\"a\\\"b\" \"c\nd\"");
    gives("@pragma x\n@pragmatic", "@pragma x @ pragmatic");
    gives("\u{feff}a\r\nb", "a b");
    gives("1..3", "1 .. 3");
}

#[test]
fn object_like_macros() {
    gives("#define A 1\nA B A", "1 B 1");
    gives("#define A B\n#define B C\nA", "C");
    gives("#define A A + 1\nA", "A + 1");
    gives("#define A B\n#define B A\nA B", "A B");
    gives("#define A 1\n#undef A\nA", "A");
    gives("#define A\nx A y", "x y");
    gives("#define A 1 \\\n 2\nA", "1 2");
    gives("#define LONG\\\nER 3 // not \\\n here\nLON\\\r\nGER", "3");
    gives("#define bit byte\nbit", "byte");
    gives("#define A (x)\nA", "( x )");
}

#[test]
fn function_like_macros() {
    gives("#define F(x) x + x\nF(1)", "1 + 1");
    gives("#define F(x, y) y x\nF((a, b), c)", "c ( a , b )");
    gives("#define F(x) [x]\nF(F(1))", "[ [ 1 ] ]");
    gives("#define F(x) x\nF", "F");
    gives("#define F(x) x\nF\n(\n1\n)", "1");
    gives("#define F() z\nF()", "z");
    gives("#define F(x) G(x)\n#define G(x) F(x)\nF(1)", "F ( 1 )");
    gives("#define F(x) x ## 1\nF(a)", "a1");
    gives(
        "#define F(x, y) x ## y\nF(a, b) F(, b) F(a, ) F(,)",
        "ab b a",
    );
    gives("#define F(x) #x\nF(a + \"b\")", "\"a + \\\"b\\\"\"");
    gives(
        "#define F(x, ...) x(__VA_ARGS__)\nF(f, 1, 2) F(g)",
        "f ( 1 , 2 ) g ( )",
    );
    gives("#define A F\n#define F(x) x x\nA(1)", "1 1");
    gives("#define W 8\n#define B(w) bit<w>\nB(W) x", "bit < 8 > x");
}

#[test]
fn conditionals() {
    gives("#if 1\na\n#else\nb\n#endif\nc", "a c");
    gives("#if 0\na\n#elif 1\nb\n#elif 1\nc\n#else\nd\n#endif", "b");
    gives("#ifdef A\na\n#endif\n#ifndef A\nb\n#endif", "b");
    gives("#define A\n#ifdef A\na\n#else\nb\n#endif", "a");
    gives("#if 0\n#if 1\na\n#else\nb\n#endif\n#else\nc\n#endif", "c");
    gives("#if 0\n it's \"open\n /* #endif */\n#endif\nx", "x");
    gives("  #  if 1\na\n#endif", "a");
    gives("#if 1\n#if 0\n#endif\na\n#else\nb\n#endif", "a");
}

#[test]
fn conditions_are_integer_expressions() {
    for (condition, holds) in [
        ("1 + 2 * 3 == 7", true),
        ("(1 + 2) * 3 == 9", true),
        ("0x10 == 16 && 0b11 == 3", true),
        ("!0 && ~0 == -1", true),
        ("1 << 4 == 16 && 256 >> 4 == 16", true),
        ("7 / 2 == 3 && 7 % 2 == 1", true),
        ("1 ? 0 : 1", false),
        ("0 ? 1 / 0 : 1", true),
        ("1 || 1 / 0", true),
        ("UNKNOWN", false),
        ("defined A && defined(A) && !defined(B)", true),
        ("A > 3 && A <= 4", true),
        ("3 & 1 | 4 ^ 4", true),
        ("20180101 >= 20200408", false),
        ("TWICE(2) == 4", true),
    ] {
        let text =
            format!("#define A 4\n#define TWICE(x) x * 2\n#if {condition}\nyes\n#else\nno\n#endif");
        gives(&text, if holds { "yes" } else { "no" });
    }
    complains("#if 1 +\n#endif", "ends where a value is expected");
    complains("#if 1 / 0\n#endif", "divides by zero");
    complains("#if\n#endif", "ends where a value is expected");
    complains("#if 1 2\n#endif", "does not continue");
    complains("#if (1\n#endif", "`)` is missing");
    complains(
        &format!("#if {}1\n#endif", "(".repeat(1000)),
        "nested too deeply",
    );
    complains(
        &format!("#if {}1\n#endif", "!".repeat(1000)),
        "nested too deeply",
    );
}

#[test]
fn directives_out_of_place_are_reported() {
    complains("#endif", "E0005 #endif without #if");
    complains("#else", "E0005 #else without #if");
    complains("#elif 1", "E0005 #elif without #if");
    complains("#if 1", "E0005 conditional has no #endif");
    complains("#if 0", "E0005 conditional has no #endif");
    complains("#if 1\n#else\n#else\n#endif", "E0005 #else after #else");
    complains("#if 0\n#else\n#elif 1\n#endif", "E0005 #elif after #else");
    complains("#error no luck", "E0007 no luck");
    complains("#define", "E0004");
    complains("#define 1 2", "E0004");
    complains("#define F(x", "E0004");
    complains("#define F(x, x) x", "E0004");
    complains("#define F(1) x", "E0004");
    complains("#include x y", "E0004");
    complains("#frobnicate", "W0001");
    complains("#define A 1\n#define A 2", "W0002");
    complains(
        "#define F(x) x\nF(1, 2)",
        "E0008 macro `F` takes 1 arguments, 2 are given",
    );
    complains(
        "#define F(x) x\nF(1",
        "E0008 the call of macro `F` is never closed",
    );
    complains("#if 1\n#endif x", "W0003");
    gives("#define A 1\n#define A 1\nA", "1");
    gives("#pragma x\n#line 7\n# 1 \"f\"\n#\na", "a");
    gives(
        "#line 7\n__LINE__\n# 1 \"f\" 2 3\n__LINE__ __FILE__\n#line 9 // x\n__LINE__ __FILE__",
        "7 1 \"f\" 9 \"f\"",
    );
    complains("#line", "E0004 the directive does not say a line");
    complains("#line x", "E0004 the directive does not say a line");
    complains("#line 1 x", "E0004 the directive does not say a line");
    complains("# 1 \"x", "E0004 the directive does not say a line");
}

#[test]
fn files_are_searched_where_they_should_be() {
    let loader = MemoryLoader::new()
        .with("main", "#include \"a.p4\"\n#include <b.p4>\nmain")
        .with("a.p4", "a #include\n#include \"sub/c.p4\"")
        .with("sub/c.p4", "c\n#include \"d.p4\"")
        .with("sub/d.p4", "d")
        .with("lib/b.p4", "b")
        .with("b.p4", "wrong");
    let options = Options {
        include_dirs: vec!["none".into(), "lib".into()],
        ..Options::default()
    };
    let (tokens, messages) = run(&loader, &options);
    assert_eq!(messages, Vec::<String>::new());
    assert_eq!(tokens, "a # include c d b main");
}

#[test]
fn included_files_keep_their_spans() {
    let loader = MemoryLoader::new()
        .with("main", "\n#include \"a\"\nx")
        .with("a", "y");
    let mut diagnostics = Diagnostics::new();
    let (tokens, sources) = tokenize(&loader, "main", &Options::default(), &mut diagnostics);
    let place = |i: usize| {
        let file = sources.get(tokens[i].span.file).unwrap();
        (
            file.name().to_owned(),
            file.position(tokens[i].span.start).line,
        )
    };
    assert_eq!(place(0), ("a".to_owned(), 1));
    assert_eq!(place(1), ("main".to_owned(), 3));
    assert_eq!(sources.include_chain(tokens[0].span.file).len(), 1);
}

#[test]
fn joined_lines_keep_their_places() {
    let text = "#define A \\\n 1\nfirst sec\\\nond\nthird";
    let mut diagnostics = Diagnostics::new();
    let loader = MemoryLoader::new().with("main", text);
    let (tokens, _) = tokenize(&loader, "main", &Options::default(), &mut diagnostics);
    let written: Vec<&str> = tokens[..tokens.len() - 1]
        .iter()
        .map(|token| &text[token.span.start as usize..token.span.end as usize])
        .collect();
    assert_eq!(written, ["first", "sec\\\nond", "third"]);
    assert_eq!(&*tokens[1].text, "second");
}

#[test]
fn tokens_of_a_macro_point_at_its_call() {
    let text = "#define F(x) 1 + x\nF(abc)";
    let mut diagnostics = Diagnostics::new();
    let loader = MemoryLoader::new().with("main", text);
    let (tokens, sources) = tokenize(&loader, "main", &Options::default(), &mut diagnostics);
    let snippets: Vec<_> = tokens.iter().map(|t| sources.snippet(t.span)).collect();
    assert_eq!(snippets, ["F", "F", "abc", ""]);
}

#[test]
fn files_that_cannot_be_had_are_reported() {
    complains("#include \"x\"", "E0001 there is no file `x` to include");
    let (_, messages) = run(&MemoryLoader::new(), &Options::default());
    assert_eq!(messages, ["E0001 there is no file `main`"]);
    struct Broken;
    impl FileLoader for Broken {
        fn load(&self, _: &str) -> Result<std::sync::Arc<str>, LoadError> {
            Err(LoadError::Unreadable("disk on fire".into()))
        }
    }
    let (_, messages) = run(&Broken, &Options::default());
    assert_eq!(messages, ["E0002 cannot read `main`: disk on fire"]);
}

#[test]
fn include_cycles_end() {
    let (tokens, messages) = of("x\n#include \"main\"");
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].starts_with("E0003"), "{messages:?}");
    assert!(tokens.len() < 1000);
    gives("#ifndef G\n#define G\n#include \"main\"\nx\n#endif", "x");
    // Two includes a level would double the work at each level.
    let loader = MemoryLoader::new().with("main", "#include \"main\"\n#include \"main\"\n");
    let (_, messages) = run(&loader, &Options::default());
    assert_eq!(messages.len(), 1, "{messages:?}");
}

#[test]
fn macro_bombs_are_defused() {
    let mut text = String::from("#define A0 x x\n");
    for i in 1..64 {
        text.push_str(&format!("#define A{i} A{} A{}\n", i - 1, i - 1));
    }
    complains(&format!("{text}A63"), "E0009");
    let mut text = String::from("#define A0 x\n");
    for i in 1..5000 {
        text.push_str(&format!("#define A{i} A{}\n", i - 1));
    }
    complains(&format!("{text}A4999"), "E0009");
    let deep = format!("#define F(x) x\n{}1{}", "F(".repeat(3000), ")".repeat(3000));
    complains(&deep, "E0009");
}

#[test]
fn options_predefine() {
    let options = Options {
        defines: vec![("A".into(), "1".into()), ("B".into(), String::new())],
        ..Options::default()
    };
    let loader = MemoryLoader::new().with("main", "A\n#ifdef B\nb\n#endif");
    assert_eq!(run(&loader, &options), ("1 b".to_owned(), vec![]));
}

#[test]
fn places_of_the_text_are_at_hand() {
    gives("__LINE__\n__LINE__ __FILE__", "1 2 \"main\"");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_directives_are_read_without_panic(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60),
    ) {
        let text = pieces.concat();
        let loader = MemoryLoader::new().with("main", text).with("f", "#define A A B\nf A");
        run(&loader, &Options::default());
    }
}

/// Pieces of random texts.
const PIECES: &[&str] = &[
    "\n#if ",
    "\n#ifdef A",
    "\n#ifndef A",
    "\n#elif ",
    "\n#else\n",
    "\n#endif\n",
    "\n#define A ",
    "\n#define F(x) ",
    "\n#define F(x,...) ",
    "\n#undef A",
    "\n#include \"f\"\n",
    "\n#include <",
    "\n#error ",
    "\n#",
    "A",
    "F",
    "(",
    ")",
    ",",
    "x",
    "#x",
    "##",
    "x##x",
    "F(A)",
    "F(F(",
    "1",
    "defined(A)",
    "defined ",
    "==",
    "?",
    ":",
    "&&",
    "\"",
    "/*",
    "*/",
    "//",
    "\\\n",
    "\n",
    " ",
    "é",
];

#[test]
fn a_program_for_another_architecture_is_told_so() {
    for (file, architecture) in [("psa.p4", "PSA"), ("tna.p4", "TNA (Tofino)")] {
        let text = format!("#include <{file}>\n");
        let loader = MemoryLoader::new().with("main", &*text);
        let mut diagnostics = Diagnostics::new();
        let _ = tokenize(&loader, "main", &Options::default(), &mut diagnostics);
        let first = diagnostics.iter().next().expect("a file is missing");
        let said = format!("{first:?}");
        let expected = format!("another architecture, {architecture}: ");
        assert!(said.contains(&expected), "{said}");
    }
}
