//! Histories as JSON lines, and Porcupine's verdict on them where Go is there.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use stateplane_history::Expectation;
use stateplane_history::coordination::{Document, History, checkers, read_lines, write_lines};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn stored() -> Vec<(String, Document)> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut all = Vec::new();
    for folder in ["coordination_good", "coordination_bad"] {
        for entry in fs::read_dir(tests.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let document = Document::read(&fs::read_to_string(&path).unwrap()).unwrap();
            all.push((name, document));
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn lines(history: &History) -> Vec<u8> {
    let mut written = Vec::new();
    write_lines(history, &mut written).unwrap();
    written
}

#[test]
fn lines_say_what_the_history_says() {
    for (name, document) in stored() {
        let read = read_lines(lines(&document.history).as_slice()).unwrap();
        assert_eq!(read, document.history, "{name}");
    }
}

#[test]
fn a_line_is_an_object_of_words_and_numbers() {
    let text = "serves groups=g within=5\n\
                7 call client=1 group=g operation=2 ask=write key=k value=0a token=1:3\n";
    let history = Document::read(text).unwrap().history;
    let written = String::from_utf8(lines(&history)).unwrap();
    let parsed: Vec<serde_json::Value> = written
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = [
        serde_json::json!({"event": "serves", "groups": "g", "within": 5}),
        serde_json::json!({
            "at": 7, "event": "call", "client": 1, "group": "g", "operation": 2,
            "ask": "write", "key": "k", "value": "0a", "token": "1:3"
        }),
    ];
    assert_eq!(parsed, expected);
}

#[test]
fn bad_lines_are_refused_with_their_number() {
    for (bad, code) in [
        ("[]", "HI012"),
        ("{\"at\":\"x\",\"event\":\"whole\"}", "HI012"),
        ("{\"at\":1}", "HI012"),
        ("{\"at\":1,\"event\":\"whole\\n2 whole\"}", "HI012"),
        ("{\"at\":1,\"event\":\"died\",\"node\":[1]}", "HI012"),
        ("{\"at\":1,\"event\":\"died\",\"node\":\"1 x\"}", "HI012"),
        ("{\"at\":1,\"event\":\"nothing\"}", "HI002"),
        ("{\"at\":1,\"event\":\"died\"}", "HI004"),
    ] {
        let error = read_lines(format!("{{\"at\":0,\"event\":\"whole\"}}\n{bad}\n").as_bytes());
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("line 2:") && error.contains(code),
            "{bad}: {error}"
        );
    }
}

/// Builds the judge; the reason if it cannot be had here.
fn judge(into: &Path) -> Result<PathBuf, String> {
    let program = into.join("porcupine-judge");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("porcupine"))
        .output()
        .map_err(|error| format!("Go cannot be run: {error}"))?;
    if built.status.success() {
        return Ok(program);
    }
    let said = String::from_utf8_lossy(&built.stderr).into_owned();
    // Only a module that cannot be fetched is no fault of the judge's.
    let missing = [
        "dial tcp",
        "proxyconnect",
        "no required module",
        "lookup ",
        "i/o timeout",
    ];
    assert!(missing.iter().any(|sign| said.contains(sign)), "{said}");
    Err(format!("the Go module cannot be had: {said}"))
}

#[test]
fn porcupine_agrees_on_the_stored_histories() {
    let directory = tempfile::tempdir().unwrap();
    let program = match judge(directory.path()) {
        Ok(program) => program,
        Err(reason) => return println!("not run: {reason}"),
    };
    let verdict = |name: &str, history: &History| {
        let file = directory.path().join(format!("{name}.jsonl"));
        fs::write(&file, lines(history)).unwrap();
        let done = Command::new(&program).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        (done.status.code(), said)
    };
    let mut refused = 0;
    for (name, document) in stored() {
        let (code, said) = verdict(&name, &document.history);
        match &document.expectation {
            Some(Expectation::Rejected { by, .. })
                if [
                    checkers::LINEARIZABLE,
                    checkers::NUMBERS,
                    checkers::TOKENS,
                    checkers::OUTPUTS,
                ]
                .contains(by) =>
            {
                assert_eq!(code, Some(1), "{name}: {said}");
                refused += 1;
            }
            // Porcupine judges answers: neither members' entries nor times.
            Some(Expectation::Rejected { by, .. }) if *by != checkers::UNDECIDED => {
                assert_eq!(code, Some(0), "{name}: {said}");
            }
            Some(Expectation::Accepted) => assert_eq!(code, Some(0), "{name}: {said}"),
            _ => assert!(code.is_some(), "{name}: {said}"),
        }
    }
    assert!(refused >= 10, "{refused}");
    let (code, _) = verdict("empty", &History::default());
    assert_eq!(code, Some(0));
    fs::write(directory.path().join("bad.jsonl"), "{\"at\":1}\n").unwrap();
    let done = Command::new(&program)
        .arg(directory.path().join("bad.jsonl"))
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(2));
}
