use super::*;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn formatted(text: &str) -> String {
    let out = format(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let again = format(&out).unwrap_or_else(|error| panic!("{error}\n{out}"));
    assert_eq!(again, out, "formatted twice, of\n{text}");
    out
}

#[track_caller]
fn becomes(text: &str, wanted: &str) {
    let wanted = wanted.strip_prefix('\n').unwrap_or(wanted);
    assert_eq!(formatted(text), wanted);
}

#[test]
fn declarations_and_statements() {
    becomes(
        "#include <core.p4>
header  h_t{bit<8>a;varbit<(8*4)>b ;}
control c( inout h_t h ,in bit<8>x )( bit<8> n ){
action drop( ){ exit ; }
 action set(bit<8> v) { h.a=v;
 h.b = h.b; }
table t{key={h.a:exact@name(\"a\");} actions={drop;set( 1 );}
 default_action=drop( );const entries={(1):set(2);}
 }
apply{if(x==1){t.apply( );}
else if (x==2) exit;
else{ h.a=(bit<8>)x+-1 ;}
}}",
        "
#include <core.p4>
header h_t {
    bit<8> a;
    varbit<(8 * 4)> b;
}
control c(inout h_t h, in bit<8> x)(bit<8> n) {
    action drop() { exit; }
    action set(bit<8> v) {
        h.a = v;
        h.b = h.b;
    }
    table t {
        key = { h.a: exact @name(\"a\"); }
        actions = { drop; set(1); }
        default_action = drop();
        const entries = { (1): set(2); }
    }
    apply {
        if (x == 1) {
            t.apply();
        } else if (x == 2)
            exit;
        else {
            h.a = (bit<8>)x + -1;
        }
    }
}
",
    );
}

#[test]
fn what_does_not_fit_is_broken() {
    becomes(
        "parser ParserOfMine(packet_in packet, out headers_t headers, inout metadata_t metadata, inout standard_metadata_t std) { state start { transition accept; } }
const bool a = first_condition_of_all == second_condition_of_all && (third_condition_of_all || fourth_condition);
const bit<32> b = first_summand_of_all + second_summand_of_all + third_summand_of_all + fourth_summand_of_all;
const a_type_with_a_long_name a_constant_with_a_long_name_too = another_name_that_is_not_much_shorter;
",
        "
parser ParserOfMine(
    packet_in packet,
    out headers_t headers,
    inout metadata_t metadata,
    inout standard_metadata_t std
) {
    state start { transition accept; }
}
const bool a = first_condition_of_all == second_condition_of_all
    && (third_condition_of_all || fourth_condition);
const bit<32> b = first_summand_of_all + second_summand_of_all + third_summand_of_all
    + fourth_summand_of_all;
const a_type_with_a_long_name a_constant_with_a_long_name_too =
    another_name_that_is_not_much_shorter;
",
    );
}

#[test]
fn comments_stay_with_what_they_speak_of() {
    becomes(
        "// first


// second
struct s { // of s
    bit<8> a;    // of a
    /* before b */ bit<8> b;

    /* several
     * lines
       */
    bit<8> c; /* end */ }
enum e { x, // of x
   y // of y
}
control c() {
    apply {
        if (a) { // why
            b();
        } // of if
        // otherwise
        else {
        }
        f(1, // one
          2);
    }
}
// last",
        "
// first

// second
struct s { // of s
    bit<8> a; // of a
    /* before b */ bit<8> b;

    /* several
     * lines
     */
    bit<8> c; /* end */
}
enum e {
    x, // of x
    y // of y
}
control c() {
    apply {
        if (a) { // why
            b();
        } // of if
        // otherwise
        else { }
        f(
            1, // one
            2
        );
    }
}
// last
",
    );
}

#[test]
fn directives_stay_where_they_are() {
    becomes(
        "#ifndef A
  #define A(x) \\
     x ;
struct s {
        #if B
  bit<8> b;
 #else
  bit<9> b;
        #endif
}
const bit<8> c =
#ifdef B
  1
#else
  2
#endif
;
MACRO( s )
ANOTHER
@pragma  a  b
control d();
#endif // A",
        "
#ifndef A
#define A(x) \\
     x ;
struct s {
#if B
    bit<8> b;
#else
    bit<9> b;
#endif
}
const bit<8> c =
#ifdef B
1
#else
2
#endif
;
MACRO(s)
ANOTHER
@pragma  a  b
control d();
#endif // A
",
    );
}

#[test]
fn a_declaration_that_a_conditional_cuts_is_left_alone() {
    let cut = "#ifdef A
control c( in  bit<8> x ) {
#else
control c( in  bit<9> x ) {
#endif
    apply   { }
}
";
    becomes(
        &format!("const bit<8> a=1;\n{cut}const bit<8> b=2;"),
        &format!("const bit<8> a = 1;\n{cut}const bit<8> b = 2;\n"),
    );
    let inside = "control c() {
    apply   {
#if A
        if (a)  {
#endif
            b();
#if A
        }
#endif
    }
}
";
    becomes(
        &format!("#if B\n{inside}#endif\nstruct s {{bit a;}}"),
        &format!("#if B\n{inside}#endif\nstruct s {{ bit a; }}\n"),
    );
}

#[test]
fn angle_brackets_compare_shift_and_hold_types() {
    becomes(
        "const bool a = b<c;const bool d=e > f;const int g = h>>2;const int i = j<<2;
register<bit<32>>(1)r;a<b<c>> d;const bool k = f<bit<8>>(x)<y;
const bool l = m(n < o, p > q);",
        "
const bool a = b < c;
const bool d = e > f;
const int g = h >> 2;
const int i = j << 2;
register<bit<32>>(1) r;
a<b<c>> d;
const bool k = f<bit<8>>(x) < y;
const bool l = m(n < o, p > q);
",
    );
}

#[test]
fn annotations_and_arguments_that_become_strings_are_left_alone() {
    becomes(
        "#define TEXT(x) #x
@name( \"a\" )   @foo[a=1,b  = 2]
@bar
const string s=TEXT( a+b );",
        "
#define TEXT(x) #x
@name( \"a\" ) @foo[a=1,b  = 2]
@bar
const string s = TEXT( a+b );
",
    );
}

#[test]
fn hints_stand_before_the_brace() {
    becomes(
        "control c() { apply { if (a) @unlikely
{ x = 1; } else @likely @hot(2) { x = 2; } for (; ;) @likely { y(); } } }",
        "
control c() {
    apply {
        if (a) @unlikely {
            x = 1;
        } else @likely @hot(2) {
            x = 2;
        }
        for (; ;) @likely {
            y();
        }
    }
}
",
    );
}

#[test]
fn lists_in_braces_keep_their_form() {
    becomes(
        "const t a = {1,2};const t b = {
1,2};const t c = (t){ };const t d = {a = 1,b={2,3},...};
enum bit<8> e { x=1,y = 2 }
enum f { x,
y }",
        "
const t a = { 1, 2 };
const t b = {
    1,
    2
};
const t c = (t) { };
const t d = { a = 1, b = { 2, 3 }, ... };
enum bit<8> e { x = 1, y = 2 }
enum f { x, y }
",
    );
}

#[test]
fn what_is_in_the_way_is_told() {
    let place = |text| {
        let error = format(text).unwrap_err();
        (error.line, error.column, error.message)
    };
    assert_eq!(
        place("a;\n  \"b"),
        (2, 3, "a string or comment is never closed")
    );
    assert_eq!(place("/* a"), (1, 1, "a string or comment is never closed"));
    assert_eq!(
        place("f(a;\n)}"),
        (2, 2, "a closing bracket has no opening one")
    );
    assert_eq!(
        place("x { ( }"),
        (1, 7, "a closing bracket has no opening one")
    );
    assert_eq!(
        place("x {"),
        (1, 3, "an opening bracket has no closing one")
    );
    assert_eq!(
        place("a $"),
        (1, 3, "a character is not part of any P4 token")
    );
    let deep = "(".repeat(100_000);
    assert_eq!(place(&deep), (1, 201, "brackets are nested too deeply"));
}

#[test]
fn annotations_hold_any_characters() {
    let text = "@note(it's (5 $) off)\nconst bit<8> a = 1;\n";
    assert!(super::format(text).is_ok());
    assert!(super::format("@note(1) $").is_err());
    assert!(super::format("f(it's)").is_err());
}

#[test]
fn lines_that_a_backslash_joins_stay_joined() {
    becomes(
        "struct s{bit<8>a;// one \\
still one
bit<8>\\
b;}",
        "
struct s {
    bit<8> a; // one \\
still one
    bit<8> b;
}
",
    );
    let cut = format("a /\\\n* c */ b;").unwrap_err();
    assert_eq!(
        cut.message,
        "a comment is cut by a backslash at the end of a line"
    );
}

#[test]
fn empty_files_stay_empty() {
    becomes("", "");
    becomes("\n \n", "");
    becomes("\r\n// a\r\n\r\n\r\n// b\r\n", "// a\n\n// b\n");
}

fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../../..").canonicalize().unwrap()
}

fn programs() -> Vec<PathBuf> {
    fn visit(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "p4") {
                found.push(path);
            }
        }
    }
    let root = repository();
    let mut found = Vec::new();
    for folder in ["p4", "apps", "crates", "docs"] {
        visit(&root.join(folder), &mut found);
    }
    found.sort();
    found
}

#[test]
fn the_repository_s_programs_keep_their_form_when_formatted_again() {
    let mut count = 0;
    for path in programs() {
        let text = std::fs::read_to_string(&path).unwrap();
        if format(&text).is_ok() {
            formatted(&text);
            count += 1;
        }
    }
    assert!(count > 50, "{count} programs");
}

#[test]
fn the_programs_we_ship_are_formatted() {
    for path in programs() {
        if path.starts_with(repository().join("crates")) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            formatted(&text) == text,
            "run `stateplane fmt {}`",
            path.display()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Programs with words taken out, doubled and exchanged, and lines joined and broken.
    #[test]
    fn damaged_programs_do_no_harm(
        program in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<u32>(), any::<u32>(), 0..6_u8), 0..6),
    ) {
        let programs = programs();
        let text = std::fs::read_to_string(program.get(&programs)).unwrap();
        let mut words: Vec<&str> = text.split_inclusive([' ', '\n', '(', ';', '{']).collect();
        prop_assume!(!words.is_empty());
        for (at, from, how) in damage {
            let at = at as usize % words.len();
            let from = from as usize % words.len();
            match how {
                0 if words.len() > 1 => { words.remove(at); }
                1 => words.insert(at, words[from]),
                2 => words.swap(at, from),
                3 => words.insert(at, "\n"),
                4 => words.insert(at, "/* c */"),
                _ => words.insert(at, "// c\n"),
            }
        }
        let text = words.concat();
        if let Ok(out) = format(&text) {
            prop_assert_eq!(format(&out), Ok(out.clone()), "of\n{}", text);
        }
    }

    #[test]
    fn any_text_does_no_harm(text in "([a-z<>(){};:,=@#/*\"\n ]|if|else|enum){0,60}") {
        if let Ok(out) = format(&text) {
            let again = format(&out);
            prop_assert!(again.is_ok(), "{:?} of {:?}", again, out);
        }
    }
}
