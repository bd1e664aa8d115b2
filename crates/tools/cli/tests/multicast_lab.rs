//! `stateplane lab run multicast` for some seconds (needs root; passes with a message otherwise).
//! `make soak` has the long runs.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Duration;
use support::{Running, errors, missing, repository, stateplane};

/// The output of a run of multicast with more `words`, and its report, to which no checker objects;
/// its logs go to `folder`.
fn run(folder: &Path, words: &[&str]) -> (Output, Value) {
    let topology = repository().join("lab/apps.toml");
    let (topology, folder) = (topology.to_string_lossy(), folder.to_string_lossy());
    let head = ["lab", "run", "multicast", "--json", "--seconds", "12"];
    let files: [&str; 4] = ["--topology", &topology, "--logs", &folder];
    let all = [&head[..], &["--arrives-ms", "20000"], &files, words].concat();
    let output = Running::start(&mut stateplane(&all)).finish(Duration::from_secs(240));
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", errors(&output)));
    assert_eq!(report["violations"], serde_json::json!([]), "{report}");
    (output, report)
}

/// The report of a run with faults of all kinds.
fn run_under_faults(folder: &Path, words: &[&str]) -> Value {
    let (output, report) = run(folder, words);
    let faults = report["faults"].as_array().expect("faults");
    // A switch takes seconds to start where others compile.
    assert!(faults.len() >= 2, "{report}");
    assert!(output.status.success(), "{report}");
    report
}

fn count(report: &Value, name: &str) -> u64 {
    report[name].as_u64().expect("a count")
}

/// Tools without which the lab does not run multicast.
const TOOLS: [&str; 6] = ["ip", "tc", "ethtool", "bridge", "setpriv", "nft"];

#[test]
fn messages_have_one_order_while_everything_fails() {
    if let Some(missing) = missing(&TOOLS) {
        eprintln!("not tried: {missing}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let report = run_under_faults(folder.path(), &[]);
    assert!(count(&report, "completed") > 200, "{report}");
    let delivered = count(&report, "delivered");
    assert!(delivered >= 3 * count(&report, "completed"), "{report}");
    assert!(folder.path().join("multicast/history-1.txt").exists());
}

/// Times are for a quiet machine: `make soak` judges them.
#[test]
fn a_receiver_that_stands_still_stops_senders_until_it_returns_or_is_taken_off() {
    if let Some(missing) = missing(&TOOLS) {
        eprintln!("not tried: {missing}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // Of each group the first receiver returns, and the second one is taken off its list.
    let (_, report) = run(folder.path(), &["--stops", "4", "--lanes", "32"]);
    let stops = report["stops"].as_array().expect("stops");
    let ends: Vec<&str> = stops.iter().filter_map(|of| of["end"].as_str()).collect();
    assert_eq!(ends, ["returns", "returns", "taken-off", "taken-off"]);
    let mut all = 0;
    for stop in stops {
        // None, where senders wait for the other group meanwhile.
        let sent = stop["sent"].as_u64().expect("a count");
        assert!(sent <= 256, "{report}");
        all += sent;
        assert!(stop["resumes_ms"].as_f64().expect("a time") < 5_000.0);
    }
    assert!(all > 0, "{report}");
    assert!(count(&report, "taken_off") >= 2, "{report}");
}

#[test]
fn the_store_is_strictly_serializable_while_everything_fails() {
    if let Some(missing) = missing(&TOOLS) {
        eprintln!("not tried: {missing}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let report = run_under_faults(folder.path(), &["--store"]);
    assert!(count(&report, "answered") > 200, "{report}");
    assert!(
        count(&report, "answered") <= count(&report, "called"),
        "{report}"
    );
    let history = fs::read_to_string(folder.path().join("multicast/store-1.txt"));
    let history = history.expect("a history");
    for word in ["get", "put", "swap", "move", "read"] {
        assert!(history.contains(&format!("request={word}")), "{word}");
    }
    let executed = history.lines().filter(|line| line.contains(" executed "));
    // Three replicas execute each operation.
    assert!(
        executed.count() as u64 > 2 * count(&report, "answered"),
        "{report}"
    );
}
