//! `stateplane plan`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use stateplane_wire::{ethernet, ipv4, udp};
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Output;
use support::{captures, errors, stateplane};

const PACKETS: u32 = 200;
const FLOWS: u32 = 4;

/// A frame of one of the flows: UDP with 50 bytes.
fn frame(flow: u32) -> Vec<u8> {
    let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(198, 51, 100, 1));
    let datagram = udp::Repr {
        source_port: 4000 + flow as u16,
        destination_port: 80,
        payload: &[0; 50],
    };
    let segment = datagram.to_vec(from, to).expect("a datagram");
    let packet = ipv4::Repr::new(from, to, ipv4::PROTOCOL_UDP, &segment);
    let mut frame = vec![2; 12];
    frame.extend(ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend(packet.to_vec().expect("a packet"));
    frame
}

/// A packet each 10 ms.
fn evenly(number: u32) -> u32 {
    number * 10_000
}

/// The capture, with the second half ten times as fast.
fn with_burst(number: u32) -> u32 {
    let slow = number.min(PACKETS / 2);
    slow * 10_000 + (number - slow) * 1000
}

/// Writes a capture; `at`: when each packet comes, in µs.
fn capture(path: &Path, at: fn(u32) -> u32) {
    let frames = (0..PACKETS).map(|number| (at(number), frame(number % FLOWS)));
    fs::write(path, captures::of(frames)).expect("a capture is written");
}

fn run(folder: &Path, program: &str, at: fn(u32) -> u32, rest: &[&str]) -> Output {
    capture(&folder.join("in.pcap"), at);
    let chains = (0..4).map(|shard| {
        format!(
            "[[entries]]\ntable = \"replication_shards\"\nkeys = [{shard}]\naction = \"chain\"\n\
             params = {{ address = \"10.255.1.1\", mac = \"02:00:00:00:01:01\", port = 2, \
             epoch = 1, mtu = 1700 }}\n"
        )
    });
    fs::write(folder.join("s.toml"), chains.collect::<String>()).unwrap();
    let store = "[replication]\nchain = [\"10.255.1.1\", \"10.255.1.2\", \"10.255.1.3\"]\nshards = 4\n\
                 [[replication.class]]\nid = 1\nstate_length = 8\nfirst_lease = \"zero\"\n";
    fs::write(folder.join("store.toml"), store).unwrap();
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let capture = format!("0={}", path("in.pcap"));
    let (config, store) = (path("s.toml"), path("store.toml"));
    let mut arguments = vec!["plan", program, "--config", &config, "--store", &store];
    arguments.extend(["--capture", &capture]);
    arguments.extend(rest);
    stateplane(&arguments).output().expect("the command starts")
}

#[test]
fn what_a_capture_needs_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let rest = ["--switches", "2", "--detection-ms", "300", "--json"];
    let output = run(folder.path(), "apps/counter/counter.p4", evenly, &rest);
    assert!(output.status.success(), "{}", errors(&output));
    let plan: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let number = |value: &Value| value.as_f64().expect("a number");
    // Each of 100 packets a second writes.
    assert_eq!(number(&plan["demand"]["flows"]), f64::from(FLOWS));
    assert_eq!(number(&plan["demand"]["writes"]), 1.0);
    let writes = number(&plan["of_switch"]["writes_per_s"]);
    assert!((50.0..51.0).contains(&writes), "{plan:#}");
    let requests = number(&plan["requests_per_s"]);
    // Each switch sends 20 heartbeats a second.
    assert!((140.0..150.0).contains(&requests), "{plan:#}");
    let stall = number(&plan["stall_dead_ms"]);
    assert!((400.0..401.0).contains(&stall), "{plan:#}");
    let output = run(folder.path(), "apps/counter/counter.p4", evenly, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("100.0 % of packets write"), "{text}");
}

#[test]
fn a_burst_of_writes_is_told_beside_the_mean() {
    let folder = tempfile::tempdir().unwrap();
    let plan = |at| {
        let output = run(folder.path(), "apps/counter/counter.p4", at, &["--json"]);
        assert!(output.status.success(), "{}", errors(&output));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let times = |plan: &Value, what: &str| {
        let number = |value: &Value| value.as_f64().expect("a number");
        number(&plan["peak"][what]) / number(&plan[what])
    };
    let even = plan(evenly);
    assert!(times(&even, "requests_per_s") < 1.1, "{even:#}");
    // 100 of 200 writes in the last 0.1 of 1.1 s; probes stay as they are.
    let burst = plan(with_burst);
    for what in ["requests_per_s", "bytes_per_s"] {
        assert!((4.0..5.5).contains(&times(&burst, what)), "{burst:#}");
    }
    let output = run(folder.path(), "apps/counter/counter.p4", with_burst, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("in the 100 ms that have"), "{text}");
}

#[test]
fn programs_whose_load_is_not_that_of_traffic_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(
        folder.path(),
        "apps/heavy-hitter/heavy_hitter.p4",
        evenly,
        &[],
    );
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("snapshots"), "{}", errors(&output));
}
