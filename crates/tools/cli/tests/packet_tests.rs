//! `stateplane test`: packet tests of a program, and what their outcome is.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use support::stateplane;

const CABLE: &str = "docs/examples/cable.p4";

fn outcome(scripts: &[(&str, &str)], options: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = stateplane(&["test", CABLE]);
    command.args(options);
    for (name, text) in scripts {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        command.arg(path);
    }
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

const FRAME: &str = "020000000001020000000002 0800 00112233";

#[test]
fn a_script_that_holds_passes() {
    let script = format!("packet 0 {FRAME}\nexpect 1 02000000 ** 01\n");
    let (code, said, _) = outcome(&[("holds.stf", &script)], &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("holds.stf  passed") && said.contains("1 of 1 passed"),
        "{said}"
    );
}

#[test]
fn either_engine_runs_a_script() {
    let script = format!("packet 0 {FRAME}\nexpect 1 02000000 ** 01\n");
    for engine in ["native", "interp"] {
        let (code, said, _) = outcome(&[("holds.stf", &script)], &["--engine", engine]);
        assert_eq!(code, Some(0), "{said}");
    }
}

#[test]
fn a_script_that_does_not_hold_fails_with_the_difference() {
    let holds = format!("packet 0 {FRAME}\nexpect 1\n");
    let fails = format!("packet 0 {FRAME}\nexpect 1 02ff\n");
    let scripts = [("holds.stf", &*holds), ("fails.stf", &*fails)];
    let (code, said, _) = outcome(&scripts, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("fails.stf  FAILED") && said.contains("1 of 2 passed"),
        "{said}"
    );
    assert!(
        said.contains("fails.stf:2:") && said.contains("expected 02ff"),
        "{said}"
    );

    let (code, said, _) = outcome(&scripts, &["--json"]);
    assert_eq!(code, Some(1), "{said}");
    let lines: Vec<serde_json::Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[0]["passed"], &lines[1]["passed"]),
        (&true.into(), &false.into())
    );
    assert_eq!(lines[1]["failures"][0]["line"], 2);
}

#[test]
fn a_script_of_another_program_is_skipped() {
    let holds = format!("# program: ../cable.p4\npacket 0 {FRAME}\nexpect 1\n");
    let other = format!("# program: ../router.p4\npacket 0 {FRAME}\nexpect 0\n");
    let scripts = [("holds.stf", &*holds), ("other.stf", &*other)];
    let (code, said, _) = outcome(&scripts, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("other.stf  skipped: it tests ../router.p4"),
        "{said}"
    );
    assert!(said.ends_with("1 of 1 passed, 1 skipped\n"), "{said}");
    let (code, said, _) = outcome(&scripts, &["--any-program"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.ends_with("1 of 2 passed\n"), "{said}");

    // A test run that runs nothing is no success.
    let (code, said, errors) = outcome(&scripts[1..], &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(errors.contains("--any-program"), "{errors}");
    let (_, said, _) = outcome(&scripts[1..], &["--json"]);
    assert!(said.contains("\"skipped\":\"../router.p4\""), "{said}");
}

#[test]
fn a_script_that_cannot_be_read_is_told_apart() {
    let (code, _, said) = outcome(&[("wrong.stf", "pakcet 0 00\n")], &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("pakcet") && said.contains("error[STF"),
        "{said}"
    );
}
