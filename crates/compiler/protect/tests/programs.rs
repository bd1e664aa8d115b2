//! Goldens of programs: `programs/NAME.p4` gives `programs/NAME.protected.p4`, `refused/NAME.p4`
//! the diagnostics in `refused/NAME.txt`. `UPDATE_GOLDEN=1` writes both anew.
//! `crates/proof/sim/tests/protect.rs` runs the results.

#![allow(clippy::disallowed_methods)]

use stateplane_compile::{Source, file};
use stateplane_diagnostics::{Color, render_all};
use stateplane_protect::{Protected, protect};
use stateplane_syntax::FileLoader;
use std::fs;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

/// A file of this folder, by its path below it.
fn read(path: &str) -> Option<String> {
    fs::read_to_string(folder("").join(path)).ok()
}

fn protected<L: FileLoader>(source: &Source<L>) -> Protected {
    protect(source.loader(), source.main_file(), source.options())
}

fn protect_file(path: &str) -> Protected {
    protected(&file(path, read))
}

fn told(protected: &Protected) -> String {
    render_all(&protected.diagnostics, &protected.sources, Color::Never)
}

/// Compares a text with a golden file, or writes it.
fn golden(path: &Path, text: &str) -> Result<(), String> {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return fs::write(path, text).map_err(|error| error.to_string());
    }
    match fs::read_to_string(path) {
        Ok(expected) if expected == text => Ok(()),
        Ok(_) => Err(format!("{}: differs:\n{text}", path.display())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Names of the programs in a folder, those apart that others include or that were made.
fn programs(name: &str) -> Vec<String> {
    let entries = fs::read_dir(folder(name)).expect("a folder").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter_map(|file| Some(file.strip_suffix(".p4")?.to_owned()))
        .filter(|file| file != "common" && !file.ends_with(".protected"))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no programs in {name}");
    names
}

#[test]
fn programs_are_protected() {
    let mut failures = Vec::new();
    for name in programs("programs") {
        let protected = protect_file(&format!("programs/{name}.p4"));
        let told = told(&protected);
        let Some((text, _)) = protected.program else {
            failures.push(format!("{name} is refused:\n{told}"));
            continue;
        };
        let path = folder("programs").join(format!("{name}.protected.p4"));
        failures.extend(golden(&path, &text).err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn what_cannot_be_protected_is_refused_with_the_reason() {
    let mut failures = Vec::new();
    for name in programs("refused") {
        let protected = protect_file(&format!("refused/{name}.p4"));
        let told = told(&protected);
        if protected.program.is_some() {
            failures.push(format!("{name} is not refused"));
        }
        let path = folder("refused").join(format!("{name}.txt"));
        failures.extend(golden(&path, &told).err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Text that is cut, doubled or mixed up anywhere gives diagnostics or a program, and no
/// panic.
#[test]
fn damaged_programs_do_no_harm() {
    let text = fs::read_to_string(folder("programs/connections.p4")).expect("a program");
    let begin = text.find("@replicated").expect("an annotation");
    let end = text.find("apply {").expect("a body");
    let words: Vec<(usize, &str)> = text[begin..end]
        .match_indices(|c: char| " ,({})=;".contains(c))
        .collect();
    for (step, (at, _)) in words.iter().enumerate() {
        let at = begin + at;
        let damaged = match step % 3 {
            0 => format!("{}{}", &text[..at], &text[at + 1..]),
            1 => format!("{}{}", &text[..at], &text[at.saturating_sub(7)..]),
            _ => format!("{},{{={}", &text[..at], &text[at..]),
        };
        let main = "programs/damaged.p4";
        let read = |path: &str| {
            (path == main)
                .then(|| damaged.clone())
                .or_else(|| read(path))
        };
        let protected = protected(&file(main, read));
        assert!(protected.program.is_some() || protected.diagnostics.has_errors());
    }
}
