//! `stateplane eval` in short: an experiment in memory, and one in namespaces where this is
//! root and has the tools.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::missing;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn eval(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stateplane"))
        .arg("eval")
        .args(arguments)
        .args(["--quick", "--json", "--lab"])
        .arg(repository().join("lab"))
        .arg("--output")
        .arg(folder.join("eval"))
        .arg("--logs")
        .arg(folder.join("logs"))
        .output()
        .expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The figure as JSON, after a look at the files that must be there.
fn figure(id: &str, files: &[&str]) -> serde_json::Value {
    figure_of(&["redplane", id], id, files)
}

/// The figure `id` that the command with these arguments makes.
fn figure_of(arguments: &[&str], id: &str, files: &[&str]) -> serde_json::Value {
    let folder = tempfile::tempdir().expect("a folder");
    let output = eval(arguments, folder.path());
    let said = || text(&[&output.stderr[..], &output.stdout].concat());
    assert!(output.status.success(), "{}", said());
    for file in files.iter().chain(&["result.txt", "result.json"]) {
        let path = folder.path().join("eval").join(id).join(file);
        let length = path.metadata().map_or(0, |data| data.len());
        assert!(length > 0, "{file} is missing or empty");
    }
    let figures: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(figures[0]["id"], id);
    figures[0].clone()
}

#[test]
fn snapshots_cost_in_memory_what_the_model_says() {
    let figure = figure("fig11", &["snapshots.csv", "snapshots.svg"]);
    assert_eq!(figure["claims"][0]["met"], true, "{figure}");
}

#[test]
fn round_trips_are_taken_in_namespaces() {
    if let Some(reason) = missing(&["ip", "ethtool", "setpriv"]) {
        println!("not tested: {reason}");
        return;
    }
    let figure = figure(
        "fig8",
        &["round-trips.csv", "distribution.csv", "round-trips.svg"],
    );
    let rows = figure["tables"][0]["rows"].as_array().expect("rows");
    assert!(rows.len() >= 3, "{figure}");
    for row in rows {
        let (packets, lost) = (&row[1], &row[2]);
        assert_eq!(packets, 600.0, "{row}");
        assert!(lost.as_f64().is_some_and(|lost| lost < 300.0), "{row}");
        assert!(row[3].as_f64().is_some_and(|us| us > 0.0), "{row}");
    }
}

/// A figure of NetChain, beside Redis where it is installed.
fn coordination(figure: &str, files: &[&str]) -> Option<serde_json::Value> {
    if let Some(reason) = missing(&["ip", "ethtool", "setpriv", "nft"]) {
        println!("not tested: {reason}");
        return None;
    }
    let arguments = ["netchain", figure, "--systems", "redis"];
    Some(figure_of(&arguments, &format!("netchain-{figure}"), files))
}

/// Rows of the figure's first table that are about our own service.
fn own_rows(figure: &serde_json::Value) -> Vec<&Vec<serde_json::Value>> {
    let rows = figure["tables"][0]["rows"].as_array().expect("rows");
    let rows = rows.iter().filter_map(|row| row.as_array());
    rows.filter(|row| row.iter().any(|cell| cell == "stateplane"))
        .collect()
}

#[test]
fn coordination_keeps_serving_while_packets_are_lost() {
    let files = ["throughput.csv", "throughput.svg"];
    let Some(figure) = coordination("fig9d", &files) else {
        return;
    };
    let rows = own_rows(&figure);
    assert_eq!(rows.len(), 2, "{figure}");
    for row in rows {
        assert!(row[3].as_f64().is_some_and(|rate| rate > 0.0), "{row:?}");
        assert_eq!(row[8], 0.0, "a request failed: {row:?}");
    }
}

#[test]
fn latency_of_coordination_is_taken_by_requests_in_flight() {
    let Some(figure) = coordination("fig9e", &["latency.csv", "reads.svg", "writes.svg"]) else {
        return;
    };
    let rows = own_rows(&figure);
    assert_eq!(rows.len(), 4, "{figure}");
    for row in rows {
        assert!(row[5].as_f64().is_some_and(|us| us > 0.0), "{row:?}");
    }
}

#[test]
fn transactions_hold_locks_of_the_switches() {
    let Some(figure) = coordination("fig11", &["transactions.csv", "clients-4.svg"]) else {
        return;
    };
    let rows = own_rows(&figure);
    assert_eq!(rows.len(), 2, "{figure}");
    for row in &rows {
        assert!(row[4].as_f64().is_some_and(|rate| rate > 0.0), "{row:?}");
        assert_eq!(row[8], 0.0, "a request failed: {row:?}");
    }
    // Four clients and one hot item: they refuse each other.
    let refused = rows[1][7].as_f64().expect("a number");
    assert!(refused > 0.0, "{figure}");
}

#[test]
fn two_layers_of_switches_are_computed_and_run_in_virtual_time() {
    let files = ["throughput.csv", "throughput.svg"];
    let figure = figure_of(&["netchain", "fig9f"], "netchain-fig9f", &files);
    let rows = figure["tables"][0]["rows"].as_array().expect("rows");
    let measured = rows.iter().filter(|row| row[7].is_number());
    assert_eq!(measured.count(), 2, "{figure}");
    for claim in figure["claims"].as_array().expect("claims") {
        assert_eq!(claim["met"], true, "{figure}");
    }
}

/// A figure of multicast, in which every system has one order.
fn multicast(figure: &str, systems: &str, files: &[&str]) -> Option<serde_json::Value> {
    if let Some(reason) = missing(&["ip", "ethtool", "setpriv", "nft"]) {
        println!("not tested: {reason}");
        return None;
    }
    let arguments = ["p4mcast", figure, "--systems", systems];
    let figure = figure_of(&arguments, &format!("p4mcast-{figure}"), files);
    let claims = figure["claims"].as_array().expect("claims");
    assert!(!claims.is_empty(), "{figure}");
    for claim in claims {
        assert_eq!(claim["met"], true, "{figure}");
    }
    Some(figure)
}

/// Rows of the figure's first table in which the column says this.
fn rows_of<'a>(figure: &'a serde_json::Value, word: &str) -> Vec<&'a Vec<serde_json::Value>> {
    let rows = figure["tables"][0]["rows"].as_array().expect("rows");
    let rows = rows.iter().filter_map(|row| row.as_array());
    rows.filter(|row| row.iter().any(|cell| cell == word))
        .collect()
}

#[test]
fn each_system_orders_messages_to_one_group_and_to_two() {
    let files = [
        "throughput.csv",
        "latency.csv",
        "throughput-1.svg",
        "latency-2.svg",
    ];
    let Some(figure) = multicast("fig4", "primcast,etcd,poster,limit", &files) else {
        return;
    };
    for system in ["stateplane", "like PrimCast", "poster", "limit"] {
        let rows = rows_of(&figure, system);
        let groups = if system == "poster" { 1 } else { 2 };
        assert_eq!(rows.len(), groups, "{system}: {figure}");
        // The others recover nothing: a datagram lost on a busy machine stops them.
        for row in rows.iter().filter(|_| system == "stateplane") {
            assert!(row[3].as_f64().is_some_and(|rate| rate > 0.0), "{row:?}");
            assert!(row[6].as_f64().is_some_and(|us| us > 0.0), "{row:?}");
        }
    }
}

#[test]
fn multicast_goes_on_while_packets_are_lost() {
    let Some(figure) = multicast("loss", "stateplane", &["throughput.csv", "throughput.svg"])
    else {
        return;
    };
    let rows = rows_of(&figure, "stateplane");
    assert_eq!(rows.len(), 2, "{figure}");
    for row in rows {
        assert!(row[2].as_f64().is_some_and(|rate| rate > 0.0), "{row:?}");
    }
}

#[test]
fn wrong_options_and_places_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_stateplane"))
            .args(["eval", "redplane", "fig11"])
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .expect("the command runs")
    };
    let output = run(&["--runs", "0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("error[EV001]"));
    let output = run(&["--capture", "a.pcap"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("error[EV001]"));
    let output = run(&["--quick"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("eval.toml"),
        "{}",
        text(&output.stderr)
    );
}
