//! `stateplane hazards`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
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

/// A capture of raw IPv4: of two flows, ten packets of 80 bytes each in turn.
fn capture(folder: &Path) -> PathBuf {
    let path = folder.join("two.pcap");
    let mut bytes = [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, 101]
        .map(u32::to_be_bytes)
        .concat();
    for number in 0..20_u8 {
        // Kept is the header alone.
        bytes.extend(
            [0, 100 * u32::from(number), 20, 80]
                .map(u32::to_be_bytes)
                .concat(),
        );
        let mut header = [0; 20];
        header[0] = 0x45;
        header[15] = number % 2;
        bytes.extend(header);
    }
    std::fs::write(&path, bytes).expect("a capture");
    path
}

#[test]
fn packets_of_a_capture_are_of_its_flows() {
    let folder = tempfile::tempdir().expect("a folder");
    let capture = capture(folder.path());
    let run = |options: &[&str]| {
        let mut command = stateplane(&["hazards", "study", "--json", "--capture"]);
        command.arg(&capture).args(options);
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{}", errors(&output));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    // Each packet has one chunk, and that of the same flow comes two cycles later.
    let result = run(&["--depth", "2"]);
    assert_eq!(
        (&result["packets"], &result["bytes"]),
        (&20.into(), &1600.into())
    );
    assert_eq!(result["hazards"], 19);
    for key in ["5-tuple", "addresses", "source", "prefix:32"] {
        assert_eq!(
            run(&["--depth", "2", "--state", key])["hazards"],
            0,
            "{key}"
        );
        assert_eq!(
            run(&["--depth", "3", "--state", key])["hazards"],
            18,
            "{key}"
        );
    }
    assert_eq!(
        run(&["--depth", "3", "--state", "prefix:31"])["hazards"],
        19
    );
}

#[test]
fn what_is_no_capture_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("no.pcap");
    std::fs::write(&path, SIZES).expect("a file");
    let mut command = stateplane(&["hazards", "study", "--depth", "2", "--capture"]);
    let output = command.arg(&path).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("no.pcap"), "{}", errors(&output));
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

/// `hazards program` of a program whose ingress counts all packets in one element.
fn cells(options: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let sizes = folder.path().join("sizes.tsv");
    std::fs::write(&sizes, SIZES).expect("a table");
    let program = folder.path().join("count.p4");
    let text = "#include <core.p4>
#include <v1model.p4>
struct headers {}
struct metadata {}
register<bit<32>>(1) count;
parser P(packet_in p, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start { transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    bit<32> v;
    apply {
        count.read(v, 0);
        count.write(0, v + 1);
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out p, in headers hdr) { apply { } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";
    std::fs::write(&program, text).expect("a program");
    let mut command = stateplane(&["hazards", "program", "--name", "half"]);
    command
        .arg("--sizes")
        .arg(&sizes)
        .args(options)
        .arg(&program);
    command.output().expect("it runs")
}

#[test]
fn a_program_s_cell_has_depth_lock_and_lines() {
    let output = cells(&["--json"]);
    assert!(output.status.success(), "{}", errors(&output));
    let cells_found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let cell = &cells_found[0];
    assert_eq!(cell["depth"], 3);
    assert_eq!(cell["key"]["kind"], "constant");
    assert_eq!(cell["clock_hz"], 3e9);
    // A packet takes 5.5 cycles on average.
    assert_eq!(cell["lock"]["name"], "global");
    assert_eq!(cell["lock"]["enough"], true);
    let place = cell["path"][0]["place"].as_str().expect("a place");
    assert!(place.ends_with("count.p4:13:9"), "{place}");
    let output = cells(&[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("depth   3 cycles\n"), "{text}");
    let output = cells(&["--throughput", "0"]);
    assert_eq!(output.status.code(), Some(2));
}
