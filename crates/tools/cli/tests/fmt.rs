//! `stateplane fmt`: files, standard input, and what it refuses.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};
use support::{errors, stateplane};

const MESSY: &str = "struct s{bit<8> a; // of a\nbit<8> b;}";
const TIDY: &str = "struct s {\n    bit<8> a; // of a\n    bit<8> b;\n}\n";

fn run(arguments: &[&str], input: &str) -> Output {
    let mut command = stateplane(arguments);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn printed(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn files_are_formatted_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.p4");
    fs::write(&path, MESSY).unwrap();
    let name = path.to_str().unwrap();

    let shown = run(&["fmt", "--stdout", name], "");
    assert_eq!((shown.status.code(), printed(&shown)), (Some(0), TIDY));
    let checked = run(&["fmt", "--check", name], "");
    assert_eq!(checked.status.code(), Some(1));
    assert!(
        printed(&checked).contains("\n-bit<8> b;}\n"),
        "{}",
        printed(&checked)
    );
    assert!(printed(&checked).contains("\n+    bit<8> b;\n+}\n"));
    assert_eq!(errors(&checked), "error: 1 of 1 file not formatted\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), MESSY);

    assert_eq!(run(&["fmt", name], "").status.code(), Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), TIDY);
    let checked = run(&["fmt", "--check", name], "");
    assert_eq!((checked.status.code(), printed(&checked)), (Some(0), ""));
}

#[test]
fn standard_input_goes_to_standard_output() {
    let output = run(&["fmt", "-"], MESSY);
    assert_eq!((output.status.code(), printed(&output)), (Some(0), TIDY));
    assert_eq!(run(&["fmt", "--check", "-"], TIDY).status.code(), Some(0));
}

#[test]
fn what_cannot_be_formatted_is_left_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let (bad, good) = (folder.path().join("bad.p4"), folder.path().join("good.p4"));
    fs::write(&bad, "struct s {\n").unwrap();
    fs::write(&good, MESSY).unwrap();
    let output = run(
        &[
            "fmt",
            "nowhere.p4",
            bad.to_str().unwrap(),
            good.to_str().unwrap(),
        ],
        "",
    );
    assert_eq!(output.status.code(), Some(2));
    let said = errors(&output);
    assert!(said.contains("nowhere.p4: "), "{said}");
    assert!(
        said.contains("bad.p4: 1:10: an opening bracket has no closing one"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&bad).unwrap(), "struct s {\n");
    assert_eq!(fs::read_to_string(&good).unwrap(), TIDY);
}
