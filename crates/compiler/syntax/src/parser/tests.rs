//! One test or more for each production, by what [`print`](crate::print) makes of it, and
//! for what is reported where text is not of the grammar.

use crate::tree::{Declaration, StmtKind, TransitionKind};
use crate::{MemoryLoader, Options, Parsed, print};

fn parse(text: &str) -> Parsed {
    crate::parse(
        &MemoryLoader::new().with("t", text),
        "t",
        &Options::default(),
    )
}

#[track_caller]
fn good(text: &str) -> String {
    let parsed = parse(text);
    let messages: Vec<_> = parsed.diagnostics.iter().map(|d| &d.message).collect();
    assert!(messages.is_empty(), "{text}: {messages:?}");
    let printed = print(&parsed.tree);
    let again = parse(&printed);
    assert!(
        again.diagnostics.is_empty(),
        "printed text is refused:\n{printed}"
    );
    assert_eq!(
        print(&again.tree),
        printed,
        "printed text reads differently"
    );
    printed
}

#[track_caller]
fn same(text: &str) {
    assert_eq!(good(text).trim_end(), text);
}

/// An expression, with names `a` to `z`, a type `T`, a generic function `f`.
#[track_caller]
fn expr(text: &str, expected: &str) {
    let prelude = "struct T { bit<8> m; }\nextern bit<8> f<X>(in X x);\n";
    let printed = good(&format!("{prelude}const bit<8> z = {text};"));
    let (_, value) = printed.rsplit_once("z = ").unwrap();
    assert_eq!(value.trim_end(), format!("{expected};"), "{text}");
}

/// The messages for a text that is refused, in order of place.
#[track_caller]
fn bad(text: &str) -> Vec<String> {
    let parsed = parse(text);
    assert!(parsed.diagnostics.has_errors(), "accepted: {text}");
    parsed
        .diagnostics
        .sorted()
        .iter()
        .map(|d| format!("{} {}", d.code, d.message))
        .collect()
}

#[track_caller]
fn statement(text: &str, expected: &str) {
    let printed = good(&format!("struct T {{}}\naction g() {{\n{text}\n}}"));
    let body = printed.split_once("action g() {\n").unwrap().1;
    let lines: Vec<_> = body.lines().map(|l| l.trim()).collect();
    assert_eq!(lines[..lines.len() - 1].join(" "), expected);
}

#[test]
fn precedence_and_associativity() {
    expr("a + b * c", "a + (b * c)");
    expr("a * b + c", "(a * b) + c");
    expr("a - b - c", "a - b - c");
    expr("a - (b - c)", "a - (b - c)");
    expr("a ++ b + c", "(a ++ b) + c");
    expr("a |+| b |-| c", "(a |+| b) |-| c");
    expr("a << b + c", "a << (b + c)");
    expr("a >> b >> c", "a >> b >> c");
    expr("a & b ^ c | d", "((a & b) ^ c) | d");
    expr("a | b < c", "(a | b) < c");
    expr("a < b == c < d", "(a < b) == (c < d)");
    expr("a == b && c != d || e", "((a == b) && (c != d)) || e");
    expr("!a && ~b == -c", "(!a) && ((~b) == (-c))");
    expr("a / b % c", "(a / b) % c");
    expr("a <= b >= c > d", "((a <= b) >= c) > d");
}

#[test]
fn conditional_associates_as_in_the_reference_compiler() {
    expr("a ? b : c", "a ? b : c");
    expr("a ? b : c ? d : e", "(a ? b : c) ? d : e");
    expr("a ? b ? c : d : e", "a ? (b ? c : d) : e");
    expr("a || b ? c : d + e", "(a || b) ? c : (d + e)");
}

#[test]
fn casts_bind_like_prefix_operators() {
    expr("(bit<8>) a + b", "((bit<8>)a) + b");
    expr("(T) a.b[1]", "(T)a.b[1]");
    expr("(bit<8>)(int<8>) a", "(bit<8>)((int<8>)a)");
    expr("(a) + b", "a + b");
    expr("(T.x)", "T.x");
    expr("(T)(a)", "(T)a");
    expr("(bool) !a", "(bool)(!a)");
    expr("(tuple<bit<8>, T>) {a, b}", "(tuple<bit<8>, T>){a, b}");
}

#[test]
fn postfix_operators() {
    expr("a.b.c", "a.b.c");
    expr("a[1][7:0]", "a[1][7:0]");
    expr("a[b+:4]", "a[b+:4]");
    expr("-a[3:0]", "-a[3:0]");
    expr("a.apply().hit", "a.apply().hit");
    expr(".a + .b", ".a + .b");
    expr("this.m()", "this.m()");
    expr("error.NoError", "error.NoError");
    expr("a.key.state.type.list", "a.key.state.type.list");
}

#[test]
fn angle_brackets_close_or_compare_or_shift() {
    expr("f<bit<8>>(a)", "f<bit<8>>(a)");
    expr("f<tuple<bit<8>, T>>(a)", "f<tuple<bit<8>, T>>(a)");
    expr("a.f<T>(b)", "a.f<T>(b)");
    expr("f<_>(a)", "f<_>(a)");
    expr("a < b", "a < b");
    expr("a < T.m", "a < T.m");
    expr("a < (bit<8>) b", "a < ((bit<8>)b)");
    expr("a < b && c > d", "(a < b) && (c > d)");
    expr("a >> 2", "a >> 2");
    expr("a > (b)", "a > b");
    expr("(bit<(1 >> 2)>) a", "(bit<(1 >> 2)>)a");
    same("const bit<(8 * 2)> x = 1;");
    same("struct S {\n    tuple<bit<8>, tuple<bit<4>>> x;\n}");
    assert_eq!(good("const bit<A+1> x = 1;"), "const bit<(A + 1)> x = 1;\n");
}

#[test]
fn calls_and_constructions() {
    expr("f(a, b = 1, c = _, _)", "f(a, b = 1, c = _, _)");
    expr("T(1)", "T(1)");
    expr("T<bit<8>>(1)", "T<bit<8>>(1)");
    expr(".T(1)", ".T(1)");
    expr("f(a > b)", "f(a > b)");
}

#[test]
fn lists_and_literals() {
    expr("{}", "{}");
    expr("{a, b + 1, {c}}", "{a, b + 1, {c}}");
    expr("{a, b,}", "{a, b}");
    expr("{a = 1, b = {2}}", "{a = 1, b = {2}}");
    expr("{a = 1, ...}", "{a = 1, ...}");
    expr("{a, ...}", "{a, ...}");
    expr("...", "...");
    expr("{#}", "{#}");
    expr(
        "8w0xFF + 4s7 + 0b101 + 1_000",
        "8w0xff + 4s7 + 0b101 + 1000",
    );
    expr("\"a\\\"b\"", "\"a\\\"b\"");
    expr("true == false", "true == false");
}

#[test]
fn types() {
    same("typedef bit<8> A;");
    same("typedef bit A;");
    same("typedef int A;");
    same("typedef int<8> A;");
    same("typedef varbit<320> A;");
    same("typedef bool[4] A;");
    same("typedef tuple<bool, error> A;");
    same("typedef list<match_kind> A;");
    same("typedef string A;");
    same("typedef .B<C, _> A;");
    same("type bit<9> PortId;");
    same("typedef struct S {\n    bool b;\n} A;");
    same("typedef enum E {\n    x,\n} A;");
    assert_eq!(
        good("struct S { bit<8> a[2][3]; }"),
        "struct S {\n    bit<8>[2][3] a;\n}\n"
    );
    same("header H {\n    @a bit<8> x;\n}");
    same("header_union U {\n    H h;\n}");
    same("struct G<T, U> {\n    T t;\n}");
    same("enum E {\n    a,\n    b,\n}");
    same("enum bit<8> E {\n    a = 1,\n    b = 2,\n}");
    same("error {A, B}");
    same("match_kind {exact, lpm}");
    assert_eq!(good("match_kind { a, }"), "match_kind {a}\n");
}

#[test]
fn containers() {
    same("parser P<H>(packet_in p, out H h);");
    same("control C<H>(inout H h);");
    same("package S<H>(P<H> p, C<H> c = D());");
    same("action a(in bit<8> x, @y bit<8> z) {\n}");
    same("bit<8> f(in bit<8> x) {\n    return x;\n}");
    same("T f<T>(in T x) {\n    return x;\n}");
    same("void f() {\n}");
    same("extern void f<T>(in T x);");
    same("extern T f<T>();");
    same(
        "extern E<T> {\n    E(bit<32> size);\n    @pure T read(in bit<32> i = 0);\n    abstract void h(inout T x);\n}",
    );
    assert_eq!(good("extern E; ; extern E {}"), "extern E {\n}\n");
    same("S(A(), B<bit<8>>(1)) main;");
    same("@x E<bit<8>>(1) e = {\n    void h(inout bit<8> x) {\n    }\n    F() g;\n};");
    same(
        "control C()(bit<8> n) {\n    const bit<8> k = 1;\n    bit<8> v = k;\n    E(1) e;\n    action a() {\n    }\n    apply {\n    }\n}",
    );
    same("control C() {\n    apply @atomic {\n    }\n}");
}

#[test]
fn parsers_and_keysets() {
    same(
        "parser P(packet_in p)(bit<8> n) {\n    value_set<bit<8>>(4) vs;\n    @a state start {\n        p.advance(8);\n        transition select (h.a, h.b) {\n            (1, 2): x;\n            (3 &&& 7, 1 .. 9): y;\n            (_, default): start;\n            vs: accept;\n            default: reject;\n        }\n    }\n    state x {\n        transition accept;\n    }\n    state y {\n    }\n}",
    );
    let printed = good(
        "parser P() { state start { transition select(a) { (1) + 2: x; (1): y; (bit<8>) 3: z; } } }",
    );
    assert!(printed.contains("1 + 2: x;\n"), "{printed}");
    assert!(printed.contains("(1): y;\n"), "{printed}");
    assert!(printed.contains("(bit<8>)3: z;\n"), "{printed}");
}

#[test]
fn statements() {
    statement(";", ";");
    statement("a = 1; a.b[3:0] = c;", "a = 1; a.b[3:0] = c;");
    statement("(a) = 1;", "a = 1;");
    statement(
        "a += 1; a -= 1; a *= 1; a /= 1; a %= 1; a &= 1; a |= 1; a ^= 1; a <<= 1; a >>= 1; a |+|= 1; a |-|= 1;",
        "a += 1; a -= 1; a *= 1; a /= 1; a %= 1; a &= 1; a |= 1; a ^= 1; a <<= 1; a >>= 1; a |+|= 1; a |-|= 1;",
    );
    statement(
        "f(); a.b.f(1); f<T, _>(x); T.apply(); .f();",
        "f(); a.b.f(1); f<T, _>(x); T.apply(); .f();",
    );
    statement("T<bit<8>>.apply();", "T<bit<8>>.apply();");
    statement(
        "if (a) b = 1; else if (c) d = 1; else ;",
        "if (a) b = 1; else if (c) d = 1; else ;",
    );
    statement(
        "if (a) { if (b) f(); } else g();",
        "if (a) { if (b) f(); } else g();",
    );
    statement(
        "if (a) if (b) f(); else g();",
        "if (a) if (b) f(); else g();",
    );
    statement("return; return a + 1; exit;", "return; return a + 1; exit;");
    statement("@atomic { @x { } }", "@atomic { @x { } }");
    statement(
        "switch (t.apply().action_run) { a: b: { f(); } 1 + 2: { } default: { } }",
        "switch (t.apply().action_run) { a: b: { f(); } 1 + 2: { } default: { } }",
    );
    statement(
        "@u for (bit<8> i = 0, j = 1; i < 8; i += 1, f()) { break; continue; }",
        "@u for (bit<8> i = 0, j = 1; i < 8; i += 1, f()) { break; continue; }",
    );
    statement("for (; a; ) ;", "for (; a; ) ;");
    statement(
        "for (@x bit<8> i in 1 .. 8) f(i);",
        "for (@x bit<8> i in 1 .. 8) f(i);",
    );
    statement("for (T i in hs) f(i);", "for (T i in hs) f(i);");
    statement(
        "bit<8> a; T b = {1}; T[3] c; const bit<8> d = 1;",
        "bit<8> a; T b = {1}; T[3] c; const bit<8> d = 1;",
    );
    statement(
        "key = 1; apply = state + type; list = 2;",
        "key = 1; apply = state + type; list = 2;",
    );
    statement("Undeclared v;", "Undeclared v;");
}

#[test]
fn tables() {
    same(
        "control C() {\n    @n(\"x\") table t {\n        key = {\n            h.a : exact;\n            h.b & 15 : ternary @name(\"b\");\n        }\n        actions = {\n            a;\n            @defaultonly .NoAction;\n            b(x);\n        }\n        const default_action = a();\n        @hidden size = 1024;\n        const entries = {\n            1 : a();\n            (2, _) : b(1) @n;\n            const priority = (10): (3 &&& 1, 4 .. 5) : a;\n            default : a;\n        }\n        implementation = E(1);\n    }\n    apply {\n    }\n}",
    );
    let printed =
        good("control C() { table t { actions = {} entries = { priority = 3: 1: a; } } apply {} }");
    assert!(printed.contains("priority = (3): 1 : a;"), "{printed}");
}

#[test]
fn annotations() {
    same("@a @b() @c(1 + ( x ) \"s\" ; }) @d[1, a] @e[x = 1, y = \"z\"] const bit<8> k = 1;");
    same("@action @table const bit<8> k = 1;");
    assert_eq!(
        good("@pragma p q \"r\" 1\nconst bit<8> k = 1;"),
        "@p(q \"r\" 1) const bit<8> k = 1;\n"
    );
    assert_eq!(
        good("@a(it's) const bit<8> k = 1;"),
        "@a(it ' s) const bit<8> k = 1;\n"
    );
    let parsed =
        parse("@name(\"x\") @field_list(1, 8w2) @name[\"y\"] @z(1 2) @w const bit<8> k = 1;");
    let Declaration::Const(constant) = &parsed.tree.declarations[0] else {
        panic!("not a constant")
    };
    let a = &constant.annotations;
    assert_eq!(a[0].string().as_deref(), Some("x"));
    assert_eq!(a[0].numbers(), None);
    let numbers: Vec<_> = a[1]
        .numbers()
        .unwrap()
        .iter()
        .map(|n| n.value.to_string())
        .collect();
    assert_eq!(numbers, ["1", "2"]);
    assert_eq!(a[2].string().as_deref(), Some("y"));
    assert_eq!(a[3].numbers(), None);
    assert_eq!((a[4].string(), a[4].numbers()), (None, None));
}

#[test]
fn a_name_is_a_type_only_where_a_type_is_in_scope() {
    // `T` is a parameter in the action, so `T(1)` calls it.
    let printed = good("struct T {}\naction g(bit<8> T) { x = T < 1; T = 2; }\nconst T t = {};");
    assert!(printed.contains("x = T < 1;"), "{printed}");
    // A type parameter is a type inside only.
    good("extern E<K> { void m(in K k); }\nconst bool b = K < L;");
    good("control C<K>(in K k);\nconst bool b = K < L;");
}

#[test]
fn spans_cover_what_was_written() {
    let text = "const bit<8> x = (a + b) * c;";
    let parsed = parse(text);
    let Declaration::Const(constant) = &parsed.tree.declarations[0] else {
        panic!("not a constant")
    };
    assert_eq!(parsed.sources.snippet(constant.span), text);
    assert_eq!(parsed.sources.snippet(constant.value.span), "(a + b) * c");
    assert_eq!(parsed.sources.snippet(constant.ty.span), "bit<8>");
    assert_eq!(parsed.sources.snippet(constant.name.span), "x");
}

#[test]
fn one_mistake_costs_one_diagnostic_and_the_rest_is_read() {
    let text = "control C() {\n    action a() {\n        x = = 1;\n        y = 2;\n    }\n    table t { key = { h.a exact; h.b : lpm; } }\n    apply { t.apply(); }\n}\nconst bit<8> k = { # };\nconst bit<8> l = 1;";
    assert_eq!(
        bad(text),
        [
            "E0201 expected an expression, found `=`",
            "E0201 expected `:`, found `exact`",
            "E0201 expected an expression, found `#`",
        ]
    );
    let printed = print(&parse(text).tree);
    assert!(
        printed.contains("y = 2;") && printed.contains("h.b : lpm;"),
        "{printed}"
    );
    assert!(
        printed.contains("t.apply();") && printed.contains("l = 1;"),
        "{printed}"
    );
}

#[test]
fn a_missing_semicolon_at_the_end_of_a_line_is_supplied() {
    let text = "action a() {\n    x = 1\n    y = 2;\n}";
    assert_eq!(bad(text), ["E0201 expected `;`"]);
    let parsed = parse(text);
    let Declaration::Action(action) = &parsed.tree.declarations[0] else {
        panic!("not an action")
    };
    assert_eq!(action.body.statements.len(), 2);
    assert!(
        action
            .body
            .statements
            .iter()
            .all(|s| matches!(s.kind, StmtKind::Assign { .. }))
    );
}

#[test]
fn unreadable_parts_leave_malformed_nodes() {
    let parsed = parse("parser P() { state start { 1 + ; x = 1; transition 5; } state s { } }");
    let Declaration::Parser(parser) = &parsed.tree.declarations[0] else {
        panic!("not a parser")
    };
    assert_eq!(parser.states.len(), 2);
    let start = &parser.states[0];
    assert_eq!(start.statements[0].kind, StmtKind::Malformed);
    assert!(matches!(start.statements[1].kind, StmtKind::Assign { .. }));
    assert_eq!(
        start.transition.as_ref().map(|t| &t.kind),
        Some(&TransitionKind::Malformed)
    );
}

#[test]
fn refusals_name_the_matter() {
    let first = |text| bad(text).remove(0);
    assert_eq!(
        first("bit<8> x;"),
        "E0203 a variable cannot be declared outside a parser, control, action or function"
    );
    assert_eq!(
        first("table t { }"),
        "E0203 `table` cannot stand outside a control"
    );
    assert_eq!(
        first("if (a) {}"),
        "E0203 `if` cannot stand outside a parser, control, action or function"
    );
    assert_eq!(
        first("control C() { }"),
        "E0204 control `C` has no `apply` block"
    );
    assert_eq!(first("parser P() { }"), "E0204 parser `P` has no states");
    assert_eq!(
        first("control C() { apply {} action a() {} }"),
        "E0203 nothing can follow the `apply` block of a control"
    );
    assert_eq!(
        first("parser P() { state s { return; } }"),
        "E0203 a parser state cannot have a `return` statement"
    );
    assert_eq!(
        first("parser P() { state s { transition accept; x = 1; } }"),
        "E0201 a state ends with its transition; nothing can follow it"
    );
    assert_eq!(
        first("struct S {} action a() { S() s; }"),
        "E0203 an instance cannot be declared among statements"
    );
    assert_eq!(
        first("action a() { f()(); }"),
        "E0201 a statement cannot call what another call returns"
    );
    assert_eq!(
        first("action a() { else x = 1; }"),
        "E0201 `else` without `if`"
    );
    assert_eq!(
        first("action a() { @x y = 1; }"),
        "E0203 this statement cannot have annotations"
    );
    assert_eq!(
        first("action table() { }"),
        "E0201 expected a name, found the keyword `table`"
    );
    assert_eq!(
        first("enum E { a = 1 }"),
        "E0201 only an enumeration with an underlying type can give values to its members"
    );
    assert_eq!(
        first("extern E { m(); }"),
        "E0201 method `m` has no return type"
    );
    assert_eq!(
        first("action a() { x = 1; "),
        "E0205 the program ends where `}` is expected"
    );
    assert_eq!(
        first("const bit<8> x = 12ab;"),
        "E0104 `12ab` is not a number"
    );
    assert_eq!(
        first("const bit<8> x = 99999999w1;"),
        "E0105 number literal is wider than 65536 bits"
    );
    assert_eq!(
        first("const bit<8> x = $;"),
        "E0101 character '$' is not part of any P4 token"
    );
    assert_eq!(
        first("const string s = \"open;"),
        "E0102 string literal is never closed"
    );
    assert_eq!(first("/* open"), "E0103 comment is never closed");
    assert_eq!(first("error { A, }"), "E0201 expected a name, found `}`");
    assert_eq!(first("}"), "E0201 `}` closes nothing");
    assert_eq!(
        first("control C() { table t { const key = {} } apply {} }"),
        "E0203 property `key` cannot be `const`"
    );
}

#[test]
fn nesting_is_bounded_whatever_its_form() {
    let n = 100_000;
    let nested = [
        format!("const int x = {}1{};", "(".repeat(n), ")".repeat(n)),
        format!("const int x = {}1;", "-".repeat(n)),
        format!("const int x = {}1;", "(bit<8>)".repeat(n)),
        format!("const int x = 1{};", " + 1".repeat(n)),
        format!("const int x = a{};", ".b".repeat(n)),
        format!("const int x = a{};", "[1]".repeat(n)),
        format!("const int x = a{};", " ? b : c".repeat(n)),
        format!("const int x = {}{};", "{".repeat(n), "}".repeat(n)),
        format!("const int x = {}{};", "{a = ".repeat(n), "}".repeat(n)),
        format!("const int x = {};", "f<bit<(".repeat(n)),
        format!("const {} x = 1;", "tuple<".repeat(n)),
        format!("const bool{} x = 1;", "[1]".repeat(n)),
        format!("struct S {{ bool x{}; }}", "[1]".repeat(n)),
        format!("action a() {{ {} }}", "{".repeat(n)),
        format!("action a() {{ {} ; }}", "if (a) ".repeat(n)),
        format!("action a() {{ if (a) ; {} ; }}", "else if (a) ;".repeat(n)),
        format!("action a() {{ {} ; }}", "for (;a;) ".repeat(n)),
        format!("E() e = {{ {}", "E() e = {".repeat(n)),
        format!("@a{} const int x = 1;", "(".repeat(n)),
    ];
    for text in &nested {
        let messages = bad(text);
        assert!(messages.len() <= 2, "{} …: {messages:?}", &text[..40]);
    }
    // Width alone is no nesting.
    good(&format!("const int x = {{{}}};", "1 + 2, ".repeat(1000)));
    good(&format!(
        "action a() {{ {} }}",
        "x = a.b.c + 1; bool y[3];".repeat(1000)
    ));
}

#[test]
fn attempts_inside_attempts_do_not_multiply() {
    let n = 60;
    let mut text = String::from("struct T {}\nconst int x = ");
    text.push_str(&"a < T<bit<(b < ".repeat(n / 3));
    text.push_str(&"(T<bit<(".repeat(n / 3));
    text.push(';');
    bad(&text);
}
