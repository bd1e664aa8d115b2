//! Each code of the P4 front end has a text, and its examples keep what they promise.

use stateplane_check::Compiled;
use stateplane_compile::Source;
use stateplane_diagnostics::{Code, Color, render_all};
use stateplane_explain::{Example, Explanation, all, find};
use stateplane_syntax::{FileLoader, LoadError};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The example, and what it may include.
struct Files(Arc<str>);

impl FileLoader for Files {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        match path {
            "example.p4" => Ok(Arc::clone(&self.0)),
            "logo.png" => Err(LoadError::Unreadable("it is not valid UTF-8".into())),
            _ => Err(LoadError::NotFound),
        }
    }
}

fn source(example: &Example) -> Source<Files> {
    Source::new(Files(example.program().expect("P4").into()), "example.p4")
}

/// Compiles an example, or protects or synchronises it where the code is one of those that say why
/// a program cannot be protected or synchronised.
fn read_example(code: &Code, example: &Example) -> Compiled {
    let source = source(example);
    let mut compiled = source.compile();
    if stateplane_protect::codes::ALL.contains(code) {
        let (loader, options) = (source.loader(), source.options());
        let protected = stateplane_protect::protect(loader, source.main_file(), options);
        compiled.program = compiled.program.filter(|_| protected.program.is_some());
        compiled.diagnostics = protected.diagnostics;
        compiled.sources = protected.sources;
    } else if stateplane_synchronise::codes::ALL.contains(code) {
        let (loader, options) = (source.loader(), source.options());
        let selection = stateplane_synchronise::Selection::Annotated;
        let main = source.main_file();
        let made = stateplane_synchronise::synchronise(loader, main, options, selection);
        compiled.program = compiled.program.filter(|_| made.program.is_some());
        compiled.diagnostics = made.diagnostics;
        compiled.sources = made.sources;
    }
    compiled
}

fn front_end() -> impl Iterator<Item = &'static Code> {
    let check = stateplane_check::codes::ALL.iter();
    let protect = stateplane_protect::codes::ALL.iter();
    let syntax = stateplane_syntax::codes::ALL.iter();
    let synchronise = stateplane_synchronise::codes::ALL.iter();
    syntax.chain(check).chain(protect).chain(synchronise)
}

/// True if a code is one of the front end's: `E` or `W` and four digits.
fn is_front_end(code: &str) -> bool {
    let digits = code.strip_prefix(['E', 'W']).unwrap_or_default();
    digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_digit())
}

#[test]
fn every_code_has_a_text_and_every_text_a_code() {
    let codes: BTreeSet<&str> = front_end().map(|code| code.id()).collect();
    let texts: BTreeSet<&str> = all().map(|text| text.code).collect();
    let missing: Vec<_> = codes.difference(&texts).collect();
    assert!(
        missing.is_empty(),
        "add crates/compiler/explain/codes/CODE.md for {missing:?}"
    );
    let stale: Vec<_> = texts
        .difference(&codes)
        .filter(|code| is_front_end(code))
        .collect();
    assert!(stale.is_empty(), "nothing is reported as {stale:?}");
}

#[test]
fn titles_are_the_meanings_of_the_codes() {
    for code in front_end() {
        let text = find(code.id()).unwrap_or_else(|| panic!("{code} has no text"));
        assert_eq!(text.title, code.meaning(), "{code}");
    }
}

/// Compiles one example of each code; what `judge` finds wrong is reported together.
fn every_example(
    pick: fn(&Explanation) -> Option<Example>,
    judge: fn(&Code, &Compiled) -> Option<String>,
) {
    let mut faults = String::new();
    for code in front_end() {
        let text = find(code.id()).unwrap_or_else(|| panic!("{code} has no text"));
        let example = pick(&text).unwrap_or_else(|| panic!("{code} lacks an example"));
        let compiled = read_example(code, &example);
        if let Some(fault) = judge(code, &compiled) {
            let told = render_all(&compiled.diagnostics, &compiled.sources, Color::Never);
            let _ = writeln!(faults, "{code}: {fault}\n{told}");
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn wrong_examples_give_their_code_and_no_other() {
    every_example(
        |text| text.wrong,
        |code, compiled| {
            // A warning beside an error may well have another reason.
            let gravest = compiled.diagnostics.iter().map(|d| d.severity).min();
            let given: BTreeSet<&str> = compiled
                .diagnostics
                .iter()
                .filter(|d| Some(d.severity) == gravest)
                .map(|d| d.code.id())
                .collect();
            (given != BTreeSet::from([code.id()])).then(|| format!("gives {given:?}"))
        },
    );
}

#[test]
fn right_examples_compile_and_are_free_of_the_code() {
    every_example(
        |text| text.right,
        |code, compiled| {
            let shows_it = compiled.diagnostics.iter().any(|d| d.code == *code);
            (shows_it || compiled.program.is_none()).then(|| "the right example".to_owned())
        },
    );
}

/// The examples of P4Info's codes give their code or none.
#[test]
fn examples_of_p4info_give_their_code_or_none() {
    let mut tried = 0;
    for text in all().filter(|text| text.code.starts_with("PI")) {
        let (Some(wrong), Some(right)) = (text.wrong, text.right) else {
            continue;
        };
        let code_of = |example: &Example| {
            let compiled = source(example).compile();
            let told = render_all(&compiled.diagnostics, &compiled.sources, Color::Never);
            let program = compiled.program.unwrap_or_else(|| panic!("{told}"));
            let info = stateplane_p4info::generate(&program, &compiled.interface);
            info.err().map(|error| error.code())
        };
        assert_eq!(code_of(&wrong), Some(text.code));
        assert_eq!(code_of(&right), None, "{}", text.code);
        tried += 1;
    }
    assert!(tried > 0);
}

/// The sources of all crates, but this one's and tests.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let is_left_out = ["explain", "tests", "tests.rs"].map(|name| path.ends_with(name));
        if is_left_out.contains(&true) {
            continue;
        } else if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).expect("a source"));
        }
    }
}

/// The codes that errors of the other crates give: what is a code of the literals behind `before`.
fn declared<'a>(text: &'a str, before: &str) -> BTreeSet<&'a str> {
    let opening = format!("{before}\"");
    let literals = text.match_indices(&opening);
    let codes = literals.filter_map(|(at, _)| Some(text[at + opening.len()..].split_once('"')?.0));
    codes.filter(|code| is_code(code)).collect()
}

/// Capital letters and then digits, as a code has them.
fn is_code(text: &str) -> bool {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let all = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.len() >= 3 && digits.len() < text.len() && all
}

#[test]
fn every_code_of_another_crate_has_a_text_and_every_text_a_code() {
    let mut text = String::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        &mut text,
    );
    // Those of an error of several kinds are arms.
    let arms = declared(&text, "=> ");
    let explained: BTreeSet<&str> = all()
        .map(|text| text.code)
        .filter(|code| !is_front_end(code))
        .collect();
    let missing: Vec<_> = arms.difference(&explained).collect();
    assert!(
        missing.is_empty(),
        "add crates/compiler/explain/codes/CODE.md for {missing:?}"
    );
    let all = declared(&text, "");
    let stale: Vec<_> = explained.difference(&all).collect();
    assert!(stale.is_empty(), "nothing is reported as {stale:?}");
}
