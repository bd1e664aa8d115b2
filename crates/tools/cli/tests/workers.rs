//! `stateplane run --workers`: many flows through several threads, none lost, each in
//! order, and a count that they share is right.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;
use support::{Running, captures, errors, repository, stateplane};

const FRAMES: u32 = 40_000;
const FLOWS: u32 = 64;
const LENGTH: usize = 60;
/// Offset of the payload of UDP: the frame's number and the program's count.
const NUMBER: usize = 42;
const SEEN: usize = 46;

/// Sends frames back, and numbers them by a register that all workers share.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header front_t { bit<336> bits; }
header counted_t { bit<32> number; bit<32> seen; }
struct headers_t { front_t front; counted_t counted; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.front);
        packet.extract(hdr.counted);
        transition accept;
    }
}
control Check(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(1) total;
    apply {
        @atomic {
            total.read(hdr.counted.seen, 0);
            hdr.counted.seen = hdr.counted.seen + 1;
            total.write(0, hdr.counted.seen);
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

/// A frame of one of `FLOWS` flows.
fn frame(number: u32) -> [u8; LENGTH] {
    let mut frame = [0; LENGTH];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14] = 0x45;
    frame[23] = 17;
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&(1000 + (number % FLOWS) as u16).to_be_bytes());
    frame[36..38].copy_from_slice(&53u16.to_be_bytes());
    frame[NUMBER..NUMBER + 4].copy_from_slice(&number.to_be_bytes());
    frame
}

/// A capture of frames of all flows in turn.
fn capture() -> Vec<u8> {
    captures::of((0..FRAMES).map(|number| (number, frame(number))))
}

fn number(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(frame[at..at + 4].try_into().unwrap())
}

fn forwards(folder: &Path, engine: &str, options: &[&str]) {
    let path = |name: &str| folder.join(name).display().to_string();
    let port = format!("0=pcap:{},{}", path("in.pcap"), path("out.pcap"));
    let program = path("count.p4");
    let run = ["run", &program, "--engine", engine, "--port", &port];
    let running = Running::start(&mut stateplane(&[&run, options].concat()));
    let output = running.finish(Duration::from_secs(60));
    let said = errors(&output);
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_str(said.lines().last().unwrap()).expect(&said);
    assert_eq!(report["packets"]["received"], FRAMES, "{said}");
    assert_eq!(report["ports"][0]["tx_packets"], FRAMES, "{said}");
    let workers = report["workers"].as_array().map_or(&[][..], Vec::as_slice);
    for worker in workers {
        assert_ne!(worker["received"], 0, "{said}");
    }
    assert_eq!(workers.len() > 1, options[1] != "1", "{said}");

    let bytes = fs::read(folder.join("out.pcap")).unwrap();
    let frames: Vec<&[u8]> = bytes[24..]
        .chunks_exact(16 + LENGTH)
        .map(|record| &record[16..])
        .collect();
    let mut seen: Vec<u32> = frames.iter().map(|frame| number(frame, SEEN)).collect();
    seen.sort_unstable();
    assert_eq!(seen, (1..=FRAMES).collect::<Vec<_>>(), "no count is lost");
    let mut flows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for frame in &frames {
        let number = number(frame, NUMBER);
        flows.entry(number % FLOWS).or_default().push(number);
    }
    assert_eq!(flows.len(), FLOWS as usize);
    for numbers in flows.values() {
        assert!(numbers.is_sorted(), "frames of a flow stay in order");
    }
}

#[test]
fn programs_with_the_libraries_of_systems_have_several_workers() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.pcap"), capture()).unwrap();
    let port = format!("0=pcap:{},", folder.path().join("in.pcap").display());
    for program in [
        "apps/coordination/coordination_switch.p4",
        "apps/multicast/multicast_switch.p4",
        "apps/packet-counter/packet_counter.p4",
    ] {
        let program = repository().join(program).display().to_string();
        let running = Running::start(&mut stateplane(&[
            "run",
            &program,
            "--workers",
            "2",
            "--port",
            &port,
        ]));
        let output = running.finish(Duration::from_secs(120));
        let said = errors(&output);
        assert!(output.status.success(), "{said}");
        let report: Value = serde_json::from_str(said.lines().last().unwrap()).expect(&said);
        assert_eq!(report["packets"]["received"], FRAMES, "{said}");
    }
}

#[test]
fn several_workers_lose_no_frame_and_no_count() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("count.p4"), PROGRAM).unwrap();
    fs::write(folder.path().join("in.pcap"), capture()).unwrap();
    forwards(folder.path(), "native", &["--workers", "3"]);
    forwards(folder.path(), "interp", &["--workers", "3"]);
    let placed = ["--pin", "--busy-poll", "100"];
    for workers in ["1", "2"] {
        let options = [&["--workers", workers][..], &placed].concat();
        forwards(folder.path(), "native", &options);
    }
}
