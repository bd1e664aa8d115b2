//! `stateplane lab demo-coordination` with the coordination service alone (needs root; passes with a
//! message otherwise). Times are judged by the command, and not here.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use std::time::Duration;
use support::{Running, errors, missing, repository, stateplane};

#[test]
fn a_lock_survives_and_a_late_write_is_refused() {
    if let Some(missing) = missing(&["ip", "ethtool", "bridge", "setpriv"]) {
        eprintln!("not tried: {missing}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let topologies = repository().join("lab").to_string_lossy().into_owned();
    let mut command = stateplane(&[
        "lab",
        "demo-coordination",
        "--services",
        "stateplane",
        "--json",
        "--topologies",
        &topologies,
        "--output",
        &path("result"),
        "--logs",
        &path("logs"),
    ]);
    let output = Running::start(&mut command).finish(Duration::from_secs(240));
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", errors(&output)));
    let service = &report["services"][0];
    assert_eq!(service["objections"], serde_json::json!([]), "{report}");
    assert!(service["refused"].as_u64() >= Some(1), "{report}");
    assert!(service["accepted"].as_u64() > Some(100), "{report}");
    let faults = service["faults"].as_array().expect("faults");
    let said: Vec<&str> = faults.iter().filter_map(|it| it["what"].as_str()).collect();
    for (what, beginning) in said
        .iter()
        .zip(["head", "middle", "tail", "tail", "holder frozen"])
    {
        assert!(what.starts_with(beginning), "{said:?}");
    }
    assert_eq!(said.len(), 5, "{said:?}");
    assert!(folder.path().join("result/coordination.html").exists());
}
