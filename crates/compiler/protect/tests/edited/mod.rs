//! Golden files of a crate that edits programs: `programs/NAME.p4` gives `programs/NAME.MADE.p4`,
//! `refused/NAME.p4` the diagnostics in `refused/NAME.txt`.

use stateplane_diagnostics::{Color, render_all};
use stateplane_protect::edited::Edited;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder of the crate's tests.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

/// A file of the crate's tests, by its path below their folder.
pub fn read(path: &str) -> Option<String> {
    fs::read_to_string(folder("").join(path)).ok()
}

/// Diagnostics as text.
pub fn told<T>(edited: &Edited<T>) -> String {
    render_all(&edited.diagnostics, &edited.sources, Color::Never)
}

/// Compares a text with a golden file, or writes it if `UPDATE_GOLDEN` is set.
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

/// Names of the programs in a folder, those apart that others include or that were `made`.
pub fn programs(name: &str, made: &str) -> Vec<String> {
    let entries = fs::read_dir(folder(name)).expect("a folder").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter_map(|file| Some(file.strip_suffix(".p4")?.to_owned()))
        .filter(|file| file != "common" && !file.ends_with(&format!(".{made}")))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no programs in {name}");
    names
}

/// Edits all programs of the folder `programs` by `edit`, which takes a path; the texts are those
/// of the golden files.
pub fn programs_are_edited<T>(made: &str, edit: impl Fn(&str) -> Edited<T>) {
    let mut failures = Vec::new();
    for name in programs("programs", made) {
        let edited = edit(&format!("programs/{name}.p4"));
        let told = told(&edited);
        let Some((text, _)) = edited.program else {
            failures.push(format!("{name} is refused:\n{told}"));
            continue;
        };
        let path = folder("programs").join(format!("{name}.{made}.p4"));
        failures.extend(golden(&path, &text).err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Edits all programs of the folder `refused` by `edit`; the diagnostics are those of the golden
/// files.
pub fn programs_are_refused<T>(made: &str, edit: impl Fn(&str) -> Edited<T>) {
    let mut failures = Vec::new();
    for name in programs("refused", made) {
        let edited = edit(&format!("refused/{name}.p4"));
        if edited.program.is_some() {
            failures.push(format!("{name} is not refused"));
        }
        let path = folder("refused").join(format!("{name}.txt"));
        failures.extend(golden(&path, &told(&edited)).err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The text with damage, at each of the separators between two words of it: a separator left out,
/// letters doubled, brackets put in.
pub fn damaged(text: &str, from: &str, to: &str, separators: &str) -> Vec<String> {
    let begin = text.find(from).expect("the begin");
    let end = text.find(to).expect("the end");
    let places = text[begin..end].match_indices(|c: char| separators.contains(c));
    let damaged = places.enumerate().map(|(step, (at, _))| {
        let at = begin + at;
        match step % 3 {
            0 => format!("{}{}", &text[..at], &text[at + 1..]),
            1 => format!("{}{}", &text[..at], &text[at.saturating_sub(7)..]),
            _ => format!("{},{{={}", &text[..at], &text[at..]),
        }
    });
    damaged.collect()
}
