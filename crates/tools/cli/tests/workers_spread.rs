//! `stateplane run --spread`: the frames of one tunnel through several workers by the state that they
//! lock, none lost, those of each state in order, and each count right.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use support::namespaces::Namespaces;
use support::{Running, captures, errors, followed, missing, stateplane};

const FRAMES: u32 = 20_000;
const STATES: u32 = 64;
const LENGTH: usize = 82;
/// Offset of the inner destination's last byte.
const STATE: usize = 69;
/// Offsets behind the inner header: the frame's number, and the program's count of its state.
const NUMBER: usize = 70;
const SEEN: usize = 74;

/// Counts the frames of each inner destination, and sends them back.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<96> addresses; bit<16> type; }
header ipv4_t { bit<72> front; bit<8> protocol; bit<16> sum; bit<32> source; bit<32> destination; }
header udp_t { bit<16> source; bit<16> destination; bit<32> rest; }
header gtp_t { bit<64> bits; }
header counted_t { bit<32> number; bit<32> seen; }
struct headers_t {
    ethernet_t ethernet; ipv4_t outer; udp_t udp; gtp_t gtp; ipv4_t inner; counted_t counted;
}
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x0800: ip; default: accept; }
    }
    state ip {
        packet.extract(hdr.outer);
        transition select(hdr.outer.protocol) { 17: udp; default: accept; }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.destination) { 2152: tunnel; default: accept; }
    }
    state tunnel {
        packet.extract(hdr.gtp);
        packet.extract(hdr.inner);
        packet.extract(hdr.counted);
        transition accept;
    }
}
control Check(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(1024) totals;
    apply {
        if (hdr.inner.isValid()) {
            bit<32> state = (bit<32>) hdr.inner.destination[7:0];
            @atomic {
                totals.read(hdr.counted.seen, state);
                hdr.counted.seen = hdr.counted.seen + 1;
                totals.write(state, hdr.counted.seen);
            }
        }
        standard.egress_spec = standard.ingress_port;
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), Check(), I(), E(), Check(), D()) main;
"#;

/// Sends frames of each port by the other one.
const CROSS: &str = r#"
#include <core.p4>
#include <v1model.p4>
struct nothing_t { }
parser P(packet_in packet, out nothing_t hdr, inout nothing_t meta,
         inout standard_metadata_t standard) {
    state start { transition accept; }
}
control Check(inout nothing_t hdr, inout nothing_t meta) { apply { } }
control I(inout nothing_t hdr, inout nothing_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1 - standard.ingress_port; }
}
control E(inout nothing_t hdr, inout nothing_t meta, inout standard_metadata_t standard) {
    apply { }
}
control D(packet_out packet, in nothing_t hdr) { apply { } }
V1Switch(P(), Check(), I(), E(), Check(), D()) main;
"#;

/// A frame of the tunnel.
fn frame(number: u32) -> [u8; LENGTH] {
    let mut frame = [0; LENGTH];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    frame[14..34].copy_from_slice(&[
        0x45, 0, 0, 68, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    frame[34..42].copy_from_slice(&[8, 104, 8, 104, 0, 48, 0, 0]);
    frame[42..50].copy_from_slice(&[0x30, 0xff, 0, 32, 0, 0, 0, 1]);
    frame[50..70].copy_from_slice(&[
        0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 200, 0, 0, 10, 1, 0, 1, 10, 2, 0, 0,
    ]);
    frame[STATE] = (number % STATES) as u8;
    frame[NUMBER..NUMBER + 4].copy_from_slice(&number.to_be_bytes());
    frame
}

/// A capture of the tunnel's frames, one each 50 µs.
fn capture() -> Vec<u8> {
    captures::of((0..FRAMES).map(|number| (50 * number, frame(number))))
}

/// Checks that all frames came back, those of each state in order, with the counts of their order.
fn check_frames(path: &Path) {
    let number = |frame: &[u8], at: usize| {
        u32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes"))
    };
    let bytes = fs::read(path).unwrap();
    let mut states: BTreeMap<u8, Vec<(u32, u32)>> = BTreeMap::new();
    for record in bytes[24..].chunks_exact(16 + LENGTH) {
        let frame = &record[16..];
        let came = (number(frame, NUMBER), number(frame, SEEN));
        states.entry(frame[STATE]).or_default().push(came);
    }
    assert_eq!(states.len(), STATES as usize);
    for (state, came) in states {
        let sent = (u32::from(state)..FRAMES).step_by(STATES as usize);
        let expected: Vec<(u32, u32)> = sent.zip(1..).collect();
        assert_eq!(came, expected, "of state {state}");
    }
}

/// Frames that each worker took and that it handed over.
fn shares(said: &str) -> Vec<(u64, u64)> {
    let report: Value = serde_json::from_str(said.lines().last().unwrap()).expect(said);
    assert_eq!(report["packets"]["received"], FRAMES, "{said}");
    let workers = report["workers"].as_array().expect("it has workers").iter();
    let count = |worker: &Value, name: &str| worker[name].as_u64().expect(name);
    workers
        .map(|it| (count(it, "received"), count(it, "handed_over")))
        .collect()
}

/// Checks that one worker took all frames, or each of them some.
fn check_shares(said: &str, is_by_key: bool) {
    let shares = shares(said);
    let least = shares.iter().map(|(received, _)| *received).min().unwrap();
    assert_eq!(least > 0, is_by_key, "{said}");
    // Of 64 states a worker has few or many by bad luck alone.
    assert!(!is_by_key || least > u64::from(FRAMES) / 8, "{said}");
}

fn write_files(folder: &Path) {
    fs::write(folder.join("tunnel.p4"), PROGRAM).unwrap();
    fs::write(folder.join("cross.p4"), CROSS).unwrap();
    fs::write(folder.join("in.pcap"), capture()).unwrap();
}

#[test]
fn frames_of_a_tunnel_in_a_capture_go_to_workers_by_key() {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let port = format!("0=pcap:{},{}", path("in.pcap"), path("out.pcap"));
    for (engine, spread) in [
        ("native", "auto"),
        ("native", "key"),
        ("native", "flow"),
        ("interp", "key"),
    ] {
        let program = path("tunnel.p4");
        let run = ["run", &program, "--port", &port, "--workers", "2"];
        let more = ["--engine", engine, "--spread", spread];
        let running = Running::start(&mut stateplane(&[&run[..], &more].concat()));
        let output = running.finish(Duration::from_secs(60));
        let said = errors(&output);
        assert!(output.status.success(), "{said}");
        check_shares(&said, engine == "native" && spread != "flow");
        check_frames(&folder.path().join("out.pcap"));
    }
}

/// Runs a program in a namespace, and keeps what it says.
fn start(namespaces: &Namespaces, name: &str, arguments: &[&str]) -> Running {
    followed::start_with(namespaces, name, arguments, Stdio::piped())
}

fn stop(mut running: Running) -> String {
    running.signal("INT");
    let output = running.finish(Duration::from_secs(20));
    let said = errors(&output);
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn frames_of_a_tunnel_at_an_interface_go_to_workers_by_key() {
    if let Some(reason) = missing(&["ip"]) {
        eprintln!("skipped: {reason}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let namespaces = Namespaces::new(&["switch", "host"]);
    namespaces.link(("switch", "sw0"), ("host", "h0"));
    let captures = format!("0=pcap@:{},{}", path("in.pcap"), path("out.pcap"));
    let (tunnel, cross) = (path("tunnel.p4"), path("cross.p4"));
    for spread in ["auto", "key", "flow"] {
        let run = ["run", &tunnel, "--port", "0=packet:sw0", "--workers", "2"];
        let more = ["--spread", spread];
        let switch = start(&namespaces, "switch", &[&run[..], &more].concat());
        let run = ["run", &cross, "--port", &captures, "--port", "1=packet:h0"];
        let host = start(&namespaces, "host", &run);
        std::thread::sleep(Duration::from_micros(50 * u64::from(FRAMES)) + Duration::from_secs(1));
        stop(host);
        let said = stop(switch);
        check_shares(&said, spread != "flow");
        check_frames(&folder.path().join("out.pcap"));
        let tells = said.contains("GTP-U") && !said.contains("VXLAN");
        assert_eq!(tells, spread == "auto", "{said}");
    }
}
