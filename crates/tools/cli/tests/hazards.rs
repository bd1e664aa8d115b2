//! `stateplane hazards`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use std::process::Output;
use support::{errors, stateplane};

/// Half of the packets have one chunk of 80 bytes, the others ten.
const SIZES: &str = "trace\t<=40\t<=799\t<=800\nhalf\t0.5\t0.5\t1\n";

fn study(options: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let sizes = folder.path().join("sizes.tsv");
    let sources = folder.path().join("sources.tsv");
    std::fs::write(&sizes, SIZES).expect("a table");
    std::fs::write(&sources, "10.0.0.1\t1\n10.0.0.2\t1\n").expect("a table");
    let mut command = stateplane(&["hazards", "study", "--packets", "100000", "--name", "half"]);
    command.arg("--sizes").arg(&sizes).args(options);
    if options.contains(&"source") {
        command.arg("--sources").arg(&sources);
    }
    command.output().expect("it runs")
}

fn json(options: &[&str]) -> Value {
    let output = study(&[options, &["--json"]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn hazards_are_the_packets_of_fewer_chunks_than_the_depth() {
    let result = json(&["--depth", "5"]);
    let share = result["hazards_per_packet"].as_f64().expect("a share");
    assert!((share - 0.5).abs() < 0.01, "{share}");
    let share = result["hazards_per_cycle"].as_f64().expect("a share");
    assert!((share - 0.5 / 5.5).abs() < 0.002, "{share}");
    assert_eq!(result["throughput"], 1.0);
    assert_eq!(
        json(&["--depth", "5"]),
        result,
        "equal seeds give equal runs"
    );
}

#[test]
fn locks_of_sources_keep_more_throughput_than_one_lock() {
    let throughput = |options: &[&str]| {
        let result = json(options);
        assert_eq!(result["hazards"], 0);
        result["throughput"].as_f64().expect("a share")
    };
    let global = throughput(&["--depth", "8", "--lock", "global"]);
    let of_sources = ["--state", "source", "--lock", "source", "--queues", "4"];
    let of_sources = throughput(&[&["--depth", "8"][..], &of_sources].concat());
    assert!(global < 0.75 && of_sources > 0.99, "{global} {of_sources}");
}

#[test]
fn what_is_wrong_is_told() {
    for (options, told) in [
        (&["--depth", "0"][..], "cycles from 1"),
        (
            &["--depth", "2", "--alpha", "2"],
            "error[HZ001]: alpha is 2",
        ),
        (
            &["--depth", "2", "--utilisation", "0"],
            "error[HZ001]: utilisation is 0",
        ),
        (&["--depth", "2", "--clock", "fast"], "such as 1GHz"),
        (
            &["--depth", "2", "--middle", "fb"],
            "no distribution is named",
        ),
        (&["--depth", "2", "--lock", "addresses"], "give --sources"),
        (&["--depth", "2", "--lock-values", "4"], "choose a lock"),
    ] {
        let output = study(options);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(
            errors(&output).contains(told),
            "{options:?}: {}",
            errors(&output)
        );
    }
}
