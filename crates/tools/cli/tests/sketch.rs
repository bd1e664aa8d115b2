//! `stateplane sketch` on saved sketches.

use serde_json::Value;
use stateplane_sketch::{Family, Key, Reading, Shape, Sketch};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn sketch(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stateplane"));
    command.arg("sketch").args(arguments);
    command.output().expect("the command runs")
}

/// Objects that were printed.
fn objects(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON")
}

/// Exit code and code of a refusal.
fn refusal(arguments: &[&str]) -> (i32, String) {
    let output = sketch(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = text.split(['[', ']']).nth(1).unwrap_or(&text);
    (output.status.code().unwrap_or(-1), code.to_owned())
}

fn key(text: &str) -> Key {
    text.parse().expect("a key")
}

/// A count-min sketch of two flows, read with a bound of 4.
fn saved(folder: &Path) -> PathBuf {
    let shape = Shape::count_min(5, 0, 3, 10);
    let mut counted = Sketch::empty(shape).expect("a shape");
    for _ in 0..100 {
        counted.update(key("10.9.0.2:4000>10.0.0.1:53/17"));
    }
    counted.update(key("10.9.0.3:4000>10.0.0.1:53/17"));
    let reading = Reading {
        bound: Some(4),
        all_but: 9,
        ..counted.parts()[0].clone()
    };
    let counted = Sketch::new(shape, vec![reading]).expect("its shape");
    let path = folder.join("flows.sketch");
    std::fs::write(&path, counted.to_bytes()).expect("it is written");
    path
}

#[test]
fn flows_are_asked_with_intervals_and_verdicts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = saved(folder.path());
    let path = path.to_str().expect("a path");
    let large = "10.9.0.2:4000>10.0.0.1:53/17";
    let small = "10.9.0.3:4000>10.0.0.1:53/17";
    let ask = ["--file", path, "--json", "ask", large, small, "--threshold"];
    let heavy = |threshold: &str| {
        let answers = objects(&sketch(&[&ask[..], &[threshold]].concat()));
        let of = |answer: &Value| answer["heavy"].as_str().unwrap_or_default().to_owned();
        answers.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(heavy("50"), ["certainly", "not"]);
    assert_eq!(heavy("103"), ["possibly", "not"]);
    assert_eq!(heavy("104"), ["not", "not"]);
    let answers = objects(&sketch(&ask[..5]));
    assert_eq!(answers[0]["flow"], large);
    assert_eq!(
        (&answers[0]["low"], &answers[0]["high"]),
        (&100.into(), &104.into())
    );
    assert_eq!(answers[0]["low_miss"], 0.125);
    let list = folder.path().join("flows");
    std::fs::write(&list, format!("{small}\n\n{large}\n")).expect("it is written");
    let list = list.to_str().expect("a path");
    let found = objects(&sketch(&[
        "--file",
        path,
        "--json",
        "heavy",
        "3",
        "--flows-from",
        list,
    ]));
    let flows: Vec<&str> = found.iter().filter_map(|it| it["flow"].as_str()).collect();
    assert_eq!(flows, [large, small]);
    let text = sketch(&["--file", path, "ask", large, "--threshold", "50"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert_eq!(text, format!("{large} 100 (100 to 104) certainly heavy\n"));
}

#[test]
fn a_sketch_names_its_own_flows_and_is_saved_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut counted = Sketch::empty(Shape::of(Family::HashPipe, 5, 4, 4, 0)).expect("a shape");
    (0..7).for_each(|_| counted.update(key("10.9.0.2")));
    let (path, copy) = (folder.path().join("one"), folder.path().join("copy"));
    std::fs::write(&path, counted.to_bytes()).expect("it is written");
    let [path, copy] = [&path, &copy].map(|path| path.to_str().expect("a path"));
    let found = objects(&sketch(&["--file", path, "--json", "heavy", "6"]));
    assert_eq!(found[0]["flow"], "10.9.0.2");
    assert_eq!(found[0]["heavy"], "certainly");
    assert!(sketch(&["--file", path, "save", copy]).status.success());
    assert_eq!(
        std::fs::read(copy).expect("it is there"),
        counted.to_bytes()
    );
}

#[test]
fn what_is_no_sketch_is_refused_with_a_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("none");
    std::fs::write(&path, b"SPSK\0\x02").expect("it is written");
    let path = path.to_str().expect("a path");
    assert_eq!(
        refusal(&["--file", path, "ask", "10.9.0.2"]),
        (2, "SKETCH006".to_owned())
    );
    let sizes = ["--rows", "99", "--group", "flows", "ask", "10.9.0.2"];
    assert_eq!(refusal(&sizes), (2, "SKETCH001".to_owned()));
    let (status, told) = refusal(&["ask", "10.9.0.2"]);
    assert!(status == 2 && told.contains("1 groups"), "{told}");
}
