//! `stateplane sync`: what it writes, and what it tells.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use support::{errors, stateplane};

const PROGRAM: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../compiler/synchronise/tests/programs/counter.p4"
);

#[test]
fn a_program_is_instrumented_and_its_groups_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("synced.p4");
    let synced = path.to_str().unwrap();

    let made = stateplane(&["sync", PROGRAM, "-o", synced, "--json"])
        .output()
        .unwrap();
    assert_eq!(made.status.code(), Some(0), "{}", errors(&made));
    let plan: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(plan["groups"][0]["registers"][0]["register"], "packets");
    assert_eq!(plan["groups"][1]["kind"], "counter");
    assert_eq!(plan["groups"][1]["locations"], 64);
    let checked = stateplane(&["check", synced]).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{}", errors(&checked));

    let printed = stateplane(&["sync", PROGRAM, "--registers", "bytes"])
        .output()
        .unwrap();
    assert_eq!(printed.status.code(), Some(0));
    let text = String::from_utf8(printed.stdout.clone()).unwrap();
    assert!(text.contains("bytes_write_crossed(") && !text.contains("packets_write"));
    assert!(
        errors(&printed).contains("bytes     counter"),
        "{}",
        errors(&printed)
    );

    // What was made is not instrumented again.
    let again = stateplane(&["sync", synced]).output().unwrap();
    assert_eq!(again.status.code(), Some(3));
    assert!(errors(&again).contains("E1814"), "{}", errors(&again));
}

#[test]
fn a_name_that_no_register_has_is_refused_with_a_code() {
    let refused = stateplane(&["sync", PROGRAM, "--registers", "packet"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(3));
    let told = errors(&refused);
    assert!(
        told.contains("E1902") && told.contains("did you mean `packets`?"),
        "{told}"
    );
    assert!(refused.stdout.is_empty());
}
