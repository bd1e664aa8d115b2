//! Programs damaged at random, and programs that are as deep or as big as the parser
//! lets them be: the check ends with diagnostics or a verified program, and never panics.

use proptest::prelude::*;
use stateplane_check::{Compiled, compile};
use stateplane_syntax::{MemoryLoader, Options};
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn compile_text(text: &str) -> Compiled {
    let loader = MemoryLoader::new()
        .with("include/core.p4", read("../../../p4/include/core.p4"))
        .with("include/v1model.p4", read("../../../p4/include/v1model.p4"))
        .with("include/shell.p4", read("tests/include/shell.p4"))
        .with("main.p4", text);
    let options = Options {
        include_dirs: vec!["include".to_owned()],
        ..Options::default()
    };
    compile(&loader, "main.p4", &options)
}

fn golden() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "p4"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

/// Words, numbers and single other characters, each with the space before it.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut word = false;
    for (at, c) in text.char_indices() {
        let in_word = c.is_alphanumeric() || c == '_';
        if at > start && !(word && in_word) && !text[start..at].chars().all(char::is_whitespace) {
            pieces.push(&text[start..at]);
            start = at;
        }
        word = in_word;
    }
    pieces.push(&text[start..]);
    pieces
}

fn judge(text: &str) {
    let compiled = compile_text(text);
    match compiled.program {
        Some(program) => stateplane_ir::verify(&program).unwrap(),
        None => assert!(compiled.diagnostics.has_errors(), "refused in silence"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn damaged_programs_do_no_harm(
        which in any::<prop::sample::Index>(),
        damages in prop::collection::vec(
            (0..4u8, any::<prop::sample::Index>(), any::<prop::sample::Index>()),
            1..4,
        ),
    ) {
        let programs = golden();
        let program = which.get(&programs);
        let original = pieces(program);
        let mut damaged = original.clone();
        for (kind, at, other) in damages {
            let at = at.index(damaged.len());
            match kind {
                0 => {
                    damaged.remove(at);
                }
                1 => {
                    let copy = original[other.index(original.len())];
                    damaged.insert(at, copy);
                }
                2 => damaged[at] = original[other.index(original.len())],
                _ => {
                    let other = other.index(damaged.len());
                    damaged.swap(at, other);
                }
            }
            if damaged.is_empty() {
                break;
            }
        }
        judge(&damaged.concat());
    }
}

fn control(body: &str) -> String {
    format!(
        "#include \"shell.p4\"\ncontrol C(inout headers_t hdr, inout metadata_t meta, inout \
         standard_metadata_t std) {{ apply {{ {body} }} }}\nSWITCH(EmptyParser, C);\n"
    )
}

#[test]
fn deep_programs_do_not_overflow_the_stack() {
    for depth in [10, 90, 190, 400] {
        let open = "(".repeat(depth);
        let close = ")".repeat(depth);
        judge(&control(&format!("meta.x = {open}meta.x{close};")));
        let sum = "1 + ".repeat(depth);
        judge(&control(&format!("meta.x = {sum}meta.x;")));
        let negated = "~".repeat(depth);
        judge(&control(&format!("meta.x = {negated}meta.x;")));
        let chosen = "meta.flag ? 8w1 : ".repeat(depth);
        judge(&control(&format!("meta.x = {chosen}2;")));
        let nested = "if (meta.flag) { ".repeat(depth);
        let ends = "} ".repeat(depth);
        judge(&control(&format!("{nested} meta.x = 1; {ends}")));
        let lists = "{".repeat(depth);
        let list_ends = "}".repeat(depth);
        judge(&control(&format!("log_msg(\"a\", {lists}8w1{list_ends});")));
    }
}

#[test]
fn long_chains_of_instances_do_not_overflow_the_stack() {
    let mut text = "#include \"shell.p4\"\ncontrol C0() { apply {} }\n".to_owned();
    for level in 1..400 {
        let below = level - 1;
        text += &format!("control C{level}() {{ C{below}() c; apply {{ c.apply(); }} }}\n");
    }
    text += "SWITCH(EmptyParser, NoIngress);\n";
    let compiled = compile_text(&text);
    assert!(compiled.program.is_none());
    assert!(compiled.diagnostics.iter().all(|d| d.code.id() == "E1608"));
}

#[test]
fn long_chains_of_generic_functions_do_not_overflow_the_stack() {
    let mut text = "#include \"shell.p4\"\nT f0<T>(in T x) { return x; }\n".to_owned();
    for level in 1..200 {
        let below = level - 1;
        text += &format!("T f{level}<T>(in T x) {{ return f{below}(x); }}\n");
    }
    text += "SWITCH(EmptyParser, NoIngress);\n";
    let compiled = compile_text(&text);
    assert!(compiled.program.is_none());
    assert!(compiled.diagnostics.iter().all(|d| d.code.id() == "E1608"));
}

#[test]
fn deep_bodies_in_chains_do_not_overflow_the_stack() {
    for depth in [60, 150, 190] {
        let mut text =
            "#include \"shell.p4\"\ncontrol C0(in bool b) { apply {} }\nT f0<T>(in T x) { return x; }\n"
                .to_owned();
        let (ifs, ends) = ("if (b) { ".repeat(depth), "} ".repeat(depth));
        let (open, close) = ("(1 + ".repeat(depth), ")".repeat(depth));
        for level in 1..40 {
            let below = level - 1;
            text += &format!(
                "control C{level}(in bool b) {{ apply {{ {ifs} C{below}.apply(b); {ends} }} }}\n\
                 T f{level}<T>(in T x) {{ return {open}f{below}(x){close}; }}\n"
            );
        }
        text += "control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) \
                 { apply { C39.apply(meta.flag); meta.x = f39(meta.x); } }\nSWITCH(EmptyParser, C);\n";
        judge(&text);
    }
}

#[test]
fn types_that_double_are_refused() {
    let mut text = "#include \"shell.p4\"\nstruct s0 {}\n".to_owned();
    for level in 1..40 {
        let below = level - 1;
        text += &format!("struct s{level} {{ s{below} a; s{below} b; }}\n");
    }
    text += "SWITCH(EmptyParser, NoIngress);\n";
    let compiled = compile_text(&text);
    assert!(compiled.program.is_none());
    assert!(compiled.diagnostics.iter().any(|d| d.code.id() == "E1115"));
}
