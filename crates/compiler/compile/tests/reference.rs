//! Messages for the reference compiler's wrong programs, and of how many of its samples is
//! warned as it warns of them.
//!
//! The programs are not part of this repository. Where the environment variable `P4C_TESTDATA`
//! names the folder `testdata` of a copy of p4lang/p4c, the tests run them and compare with
//! `docs/p4c-samples.md`; elsewhere they say that they did not.

use stateplane_compile::file;
use stateplane_diagnostics::{Diagnostic, Diagnostics};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const LISTS: &str = include_str!("../../../../docs/p4c-samples.md");

/// The warnings of both compilers: the reference compiler's, ours, and of how many of the programs
/// with the former, in percent, the latter is told at least.
const WARNINGS: [(&str, &str, usize); 3] = [
    ("uninitialized-use", "W1101", 50),
    ("invalid-header", "W1102", 85),
    ("uninitialized-out-param", "W1103", 85),
];

fn testdata() -> Option<PathBuf> {
    let folder = std::env::var_os("P4C_TESTDATA").map(PathBuf::from);
    if folder.is_none() {
        println!("not run: P4C_TESTDATA does not name a testdata folder of p4lang/p4c");
    }
    folder
}

fn read(path: &str) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    // Some programs have comments in other encodings than UTF-8.
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Diagnostics of each program of a folder of test data, by its name.
fn told(testdata: &Path, folder: &str) -> BTreeMap<String, Diagnostics> {
    let include = testdata.with_file_name("p4include");
    let include = include.to_string_lossy();
    let entries = fs::read_dir(testdata.join(folder)).expect(folder);
    let paths = entries.flatten().map(|entry| entry.path());
    let programs = paths.filter(|path| path.extension().is_some_and(|end| end == "p4"));
    programs
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let source = file(&path.to_string_lossy(), read).include_dirs([include.to_string()]);
            (name.into_owned(), source.compile().diagnostics)
        })
        .collect()
}

/// True if an error says only that something of another architecture, or beyond our limits, is
/// not supported.
fn is_of_architecture(error: &Diagnostic) -> bool {
    matches!(error.code.id(), "E1606" | "E1701" | "E1702")
        || error.message == "the program has no `main`"
}

/// The names listed under a heading of `docs/p4c-samples.md`: the first cell of each row.
fn listed(heading: &str) -> BTreeSet<String> {
    let section = LISTS
        .split("\n## ")
        .find(|section| section.lines().next() == Some(heading))
        .unwrap_or_else(|| panic!("docs/p4c-samples.md has no section `{heading}`"));
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .collect()
}

#[test]
fn wrong_programs_are_told_their_mistake() {
    let Some(testdata) = testdata() else { return };
    let mut untold = BTreeSet::new();
    for (name, diagnostics) in told(&testdata, "p4_16_errors") {
        let mut errors = diagnostics.iter().filter(|told| told.is_error()).peekable();
        if errors.peek().is_some() && errors.all(is_of_architecture) {
            untold.insert(name);
        }
    }
    println!("told only of their architecture: {}", untold.len());
    assert_eq!(
        untold,
        listed("Wrong programs that are told only of their architecture")
    );
}

#[test]
fn samples_are_warned_of_as_by_the_reference_compiler() {
    let Some(testdata) = testdata() else { return };
    let ours = told(&testdata, "p4_16_samples");
    for (theirs, code, least) in WARNINGS {
        // Variables that it makes itself have no place in the source.
        let is_warned = |name: &&String| {
            let path = testdata.join(format!("p4_16_samples_outputs/{name}-stderr"));
            read(&path.to_string_lossy())
                .is_some_and(|text| text.contains(&format!("): [--Wwarn={theirs}] warning")))
        };
        let warned: Vec<&String> = ours.keys().filter(is_warned).collect();
        assert!(!warned.is_empty(), "no program has the warning {theirs}");
        let here = |name: &&&String| ours[**name].iter().any(|told| told.code.id() == code);
        let both = warned.iter().filter(here).count();
        println!("{theirs}: {code} of {both} of {} programs", warned.len());
        assert!(
            100 * both >= least * warned.len(),
            "{code} is told of {both} of {} programs with {theirs}",
            warned.len()
        );
    }
}
