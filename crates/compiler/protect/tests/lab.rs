//! The program that `stateplane lab run count-min` protects anew each time, and what the lab's
//! files say for it by hand: the class of its records, and the walk over its arrays.

#![allow(clippy::disallowed_methods)]

use stateplane_protect::protect;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab/apps/count-min")
}

/// The tables that stand in the protected program's front, without the comment's signs, from
/// the line `first` to an empty one.
fn in_front(text: &str, first: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("//"));
    lines
        .map(str::trim)
        .skip_while(|line| *line != first)
        .take_while(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The lines of a file of the lab that say something, for the switch of number 1.
fn in_file(name: &str) -> Vec<String> {
    let text = fs::read_to_string(folder().join(name)).expect("a file of the lab");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let filled = lines.map(|line| line.replace("${id}", "1"));
    filled.filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_lab_has_what_the_protected_program_asks_for() {
    let read = |path: &str| fs::read_to_string(folder().join(path)).ok();
    let source = stateplane_compile::file("count_min.p4", read);
    let protected = protect(source.loader(), source.main_file(), source.options());
    let (text, _) = protected.program.expect("the program can be protected");
    let told: toml::Table =
        toml::from_str(&in_front(&text, "[[replication.class]]").join("\n")).unwrap();
    let room: toml::Table = toml::from_str(&in_file("app.toml").join("\n")).unwrap();
    assert_eq!(room["replication"], told["replication"]);
    assert_eq!(in_file("switch.toml"), in_front(&text, "[[generators]]"));
    // Of 128 elements, 64 belong to each of two sketches: the lab reads them as such.
    assert!(text.contains("#define SNAPSHOT_SLOTS 128\n"));
    assert!(text.contains("#define SNAPSHOT_KEYS 1\n"));
}
