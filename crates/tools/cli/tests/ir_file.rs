//! `stateplane compile` on the text form of the intermediate representation.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::fs;
use support::{errors, stateplane};

#[test]
fn what_compile_prints_is_a_program_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cable.ir");
    let emit = |program: &str| {
        let output = stateplane(&["compile", "--emit", "ir", program]).output();
        output.expect("the command starts")
    };
    let first = emit("docs/examples/cable.p4");
    assert!(first.status.success(), "{}", errors(&first));
    fs::write(&path, &first.stdout).unwrap();
    let again = emit(path.to_str().unwrap());
    assert!(again.status.success(), "{}", errors(&again));
    assert_eq!(first.stdout, again.stdout);

    let text = String::from_utf8(first.stdout).unwrap();
    for (wrong, code) in [
        (text.replacen("control", "kontrol", 1), "IR002"),
        (
            text.replacen("metadata: struct", "metadata: header", 1),
            "IR003",
        ),
    ] {
        assert_ne!(wrong, text);
        fs::write(&path, wrong).unwrap();
        let refused = emit(path.to_str().unwrap());
        assert_eq!(refused.status.code(), Some(3));
        let said = errors(&refused);
        assert!(said.starts_with(&format!("error[{code}]: ")), "{said}");
        assert!(said.contains("cable.ir"), "{said}");
    }
}

#[test]
fn optimized_programs_are_programs_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nat.ir");
    let arguments = ["compile", "--emit", "optimized", "apps/nat/nat.p4"];
    let output = stateplane(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    fs::write(&path, &output.stdout).unwrap();
    let arguments = ["compile", "--emit", "ir", path.to_str().unwrap()];
    let again = stateplane(&arguments).output().unwrap();
    assert!(again.status.success(), "{}", errors(&again));
    assert_eq!(output.stdout, again.stdout);
}
