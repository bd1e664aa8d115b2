//! `stateplane lab run multicast` for some seconds (needs root; passes with a message otherwise).
//! `make soak` has the long runs.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use std::time::Duration;
use support::{Running, errors, missing, repository, stateplane};

#[test]
fn messages_have_one_order_while_everything_fails() {
    if let Some(missing) = missing(&["ip", "tc", "ethtool", "bridge", "setpriv", "nft"]) {
        eprintln!("not tried: {missing}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let topology = repository().join("lab/apps.toml");
    let mut command = stateplane(&[
        "lab",
        "run",
        "multicast",
        "--json",
        "--seconds",
        "12",
        "--arrives-ms",
        "20000",
        "--topology",
        &topology.to_string_lossy(),
        "--logs",
        &folder.path().to_string_lossy(),
    ]);
    let output = Running::start(&mut command).finish(Duration::from_secs(240));
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", errors(&output)));
    assert_eq!(report["violations"], serde_json::json!([]), "{report}");
    let count = |name: &str| report[name].as_u64().expect("a count");
    assert!(count("completed") > 200, "{report}");
    assert!(count("delivered") >= 3 * count("completed"), "{report}");
    let faults = report["faults"].as_array().expect("faults");
    // A switch takes seconds to start where others compile.
    assert!(faults.len() >= 2, "{report}");
    assert!(folder.path().join("multicast/history-1.txt").exists());
    assert!(output.status.success(), "{report}");
}
