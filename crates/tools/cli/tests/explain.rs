//! `stateplane explain`, and the hint that leads to it.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::process::Output;
use support::{errors, stateplane};

fn run(arguments: &[&str]) -> Output {
    stateplane(arguments).output().expect("the command starts")
}

fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{}", errors(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_code_is_explained_with_its_examples() {
    let text = printed(&["explain", "e1101"]);
    assert!(text.starts_with("E1101: a value has another type than is needed\n"));
    assert!(text.contains("\nWrong, in the `apply` block of a control:\n"));
    assert!(text.contains("\n    hdr.ipv4.ttl = (bit<8>)hdr.ipv4.length;\n"));
    let both = printed(&["explain", "E1101", "E1001"]);
    assert!(both.starts_with(&text) && both.contains("\nE1001: "));
}

#[test]
fn without_a_code_all_are_listed() {
    let text = printed(&["explain"]);
    for code in ["E0001 ", "E1411 ", "W1001 "] {
        assert!(text.lines().any(|line| line.starts_with(code)), "{code}");
    }
}

#[test]
fn json_has_the_programs_of_the_examples() {
    let text = printed(&["explain", "--json", "E1101"]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["code"], "E1101");
    assert_eq!(value["wrong"]["text"], "hdr.ipv4.ttl = hdr.ipv4.length;\n");
    let program = value["right"]["program"].as_str().unwrap();
    assert!(program.contains("V1Switch("));
    assert_eq!(
        printed(&["explain", "--json"]).lines().count(),
        printed(&["explain"]).lines().count()
    );
}

#[test]
fn an_unknown_code_gets_a_suggestion() {
    let output = run(&["explain", "E110l"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        errors(&output),
        "error: there is no code `E110l`; did you mean E1101?\n"
    );
    let output = run(&["explain", "everything"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("`stateplane explain` lists the codes"));
}

#[test]
fn an_example_compiles_as_promised_and_the_hint_leads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("example.p4");
    let path = path.to_str().unwrap();
    std::fs::write(path, printed(&["explain", "E1101", "--example", "wrong"])).unwrap();
    let output = run(&["compile", path]);
    assert_eq!(output.status.code(), Some(3));
    let said = errors(&output);
    assert!(said.contains("error[E1101]"), "{said}");
    assert!(
        said.ends_with("\n1 error\nfor more: stateplane explain E1101\n"),
        "{said}"
    );
    std::fs::write(path, printed(&["explain", "E1101", "--example", "right"])).unwrap();
    let output = run(&["compile", path]);
    assert!(output.status.success(), "{}", errors(&output));
}
