//! `stateplane lab run view` for some seconds (needs root; passes with a message otherwise).
//! `make soak` has the long run.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use std::time::Duration;
use support::{Running, errors, missing, repository, stateplane};

/// Tools without which the lab does not run.
const TOOLS: [&str; 4] = ["ip", "ethtool", "bridge", "setpriv"];

#[test]
fn views_stay_true_while_a_switch_that_is_protected_and_synchronised_is_killed() {
    if let Some(missing) = missing(&TOOLS) {
        eprintln!("not tried: {missing}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let topology = repository().join("lab/apps.toml");
    let (topology, logs) = (topology.to_string_lossy(), folder.path().to_string_lossy());
    let words = [
        "lab",
        "run",
        "view",
        "--json",
        "--faults",
        "kill,restart,kill",
    ];
    let files = [
        "--phase-ms",
        "2000",
        "--topology",
        &topology,
        "--logs",
        &logs,
    ];
    let mut command = stateplane(&[&words[..], &files].concat());
    let output = Running::start(&mut command).finish(Duration::from_secs(120));
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", errors(&output)));
    let report = &report[0];
    assert_eq!(report["wrong"], serde_json::json!([]), "{report}");
    assert!(output.status.success(), "{report}");
    let groups = report["view"]["groups"].as_array().expect("views");
    let count = |group: &Value, name: &str| group[name].as_u64().expect("a count");
    let starts: Vec<u64> = groups.iter().map(|it| count(it, "incarnations")).collect();
    assert_eq!(starts, [2, 1], "{report}");
    for group in groups {
        assert!(count(group, "told") > 100, "{report}");
    }
    // So are the numbers that the store has, whichever switch is dead, and flows are changed under traffic.
    let stored = &report["view"]["stored"];
    assert!(count(stored, "changes") > 5, "{report}");
    assert!(count(stored, "told") > 100, "{report}");
    // The killed switch was read while it was dead, and both starts of it count.
    assert!(count(&groups[0], "dead") > 50, "{report}");
    let sent = report["sent"].as_u64().expect("a count");
    let told: u64 = groups.iter().map(|it| count(it, "told")).sum();
    assert!(told <= sent && told * 10 >= sent * 8, "{report}");
}
