//! Another program in a switch that runs, while numbered frames pass: none is lost, and
//! registers go on. Its metrics over HTTP.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;
use support::{Running, errors, stateplane};

/// Frames that pass, one each `SPACING_US`.
const FRAMES: u32 = 12_000;
const SPACING_US: u32 = 500;
const LENGTH: usize = 60;
/// Offset of the byte that the program writes.
const NUMBER: usize = 14;
const SEEN: usize = 18;
const MARK: usize = 22;

/// Sends frames back marked, and counts them in a register, which each frame shows.
fn program(mark: &str) -> String {
    format!(
        r#"
#include <core.p4>
#include <v1model.p4>
header numbered_t {{ bit<112> ethernet; bit<32> number; bit<32> seen; bit<8> mark; }}
struct headers_t {{ numbered_t numbered; }}
struct metadata_t {{ }}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t standard) {{
    state start {{ packet.extract(hdr.numbered); transition accept; }}
}}
control Check(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {{
    register<bit<32>>(1) total;
    counter(2, CounterType.packets) passed;
    apply {{
        total.read(hdr.numbered.seen, 0);
        hdr.numbered.seen = hdr.numbered.seen + 1;
        total.write(0, hdr.numbered.seen);
        passed.count(1);
        hdr.numbered.mark = {mark};
        standard.egress_spec = standard.ingress_port;
    }}
}}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {{
    apply {{ }}
}}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), Check(), I(), E(), Check(), D()) main;
"#
    )
}

/// A capture of numbered frames, little-endian, of Ethernet.
fn capture() -> Vec<u8> {
    let header = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1];
    let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    for number in 0..FRAMES {
        let time = number * SPACING_US;
        let length = LENGTH as u32;
        for word in [time / 1_000_000, time % 1_000_000, length, length] {
            bytes.extend(word.to_le_bytes());
        }
        let mut frame = [0; LENGTH];
        frame[NUMBER..NUMBER + 4].copy_from_slice(&number.to_be_bytes());
        bytes.extend(frame);
    }
    bytes
}

/// Frames of a capture as the switch writes it.
fn frames(path: &Path) -> Vec<[u8; LENGTH]> {
    let bytes = fs::read(path).unwrap();
    let records = bytes[24..].chunks_exact(16 + LENGTH);
    records
        .map(|record| record[16..].try_into().unwrap())
        .collect()
}

fn number(frame: &[u8; LENGTH], at: usize) -> u32 {
    u32::from_be_bytes(frame[at..at + 4].try_into().unwrap())
}

fn reload(control: &Path, program: Option<&Path>) -> Output {
    let mut command = stateplane(&["reload", "--control"]);
    command.arg(control).args(program);
    command.output().unwrap()
}

fn ask(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: switch\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

struct Switch {
    running: Running,
    folder: tempfile::TempDir,
    metrics: String,
}

impl Switch {
    /// Starts a switch whose frames pass for a few seconds.
    fn start(engine: &str) -> Switch {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("in.pcap"), capture()).unwrap();
        fs::write(path("marks.p4"), program("1")).unwrap();
        let port = format!("0=pcap@:{},{}", path("in.pcap"), path("out.pcap"));
        let mut running = Running::start(&mut stateplane(&[
            "run",
            &path("marks.p4"),
            "--engine",
            engine,
            "--port",
            &port,
            "--control",
            &path("control"),
            "--metrics",
            "127.0.0.1:0",
        ]));
        let said = running.child().stderr.take().unwrap();
        let mut lines = BufReader::new(said).lines().map_while(Result::ok);
        let metrics = lines
            .find_map(|line| {
                let rest = line.strip_prefix("metrics: http://")?;
                Some(rest.strip_suffix("/metrics")?.to_owned())
            })
            .expect("it says where its metrics are");
        // Later output is read, so that the process never blocks on it.
        std::thread::spawn(move || lines.for_each(drop));
        let mut ready = String::new();
        let output = running.child().stdout.take().unwrap();
        BufReader::new(output).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        Switch {
            running,
            folder,
            metrics,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn no_packet_is_lost(engine: &str) {
    let switch = Switch::start(engine);
    let control = switch.path("control");
    fs::write(switch.path("marks.p4"), program("2")).unwrap();
    let output = reload(&control, None);
    assert!(output.status.success(), "{}", errors(&output));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("kept 2 registers"), "{said}");

    fs::write(switch.path("broken.p4"), program("nothing")).unwrap();
    let output = reload(&control, Some(&switch.path("broken.p4")));
    assert_eq!(output.status.code(), Some(3));
    assert!(
        errors(&output).contains("error[E1001]"),
        "{}",
        errors(&output)
    );

    fs::write(switch.path("other.p4"), program("3")).unwrap();
    let output = reload(&control, Some(&switch.path("other.p4")));
    assert!(output.status.success(), "{}", errors(&output));

    let metrics = ask(&switch.metrics, "/metrics");
    for wanted in [
        format!("engine=\"{engine}\""),
        "stateplane_port_mode{port=\"0\"".to_owned(),
        "stateplane_counter_packets_total{counter=\"I.passed\",index=\"1\"}".to_owned(),
    ] {
        assert!(metrics.contains(&wanted), "{wanted}\n{metrics}");
    }
    assert!(ask(&switch.metrics, "/healthz").ends_with("ok\n"));

    let Switch {
        running, folder, ..
    } = switch;
    let output = running.finish(Duration::from_secs(60));
    assert!(output.status.success());
    assert!(!control.exists(), "the socket is removed");
    let frames = frames(&folder.path().join("out.pcap"));
    let numbers: Vec<u32> = frames.iter().map(|frame| number(frame, NUMBER)).collect();
    assert_eq!(
        numbers,
        (0..FRAMES).collect::<Vec<_>>(),
        "every frame, in order"
    );
    let seen: Vec<u32> = frames.iter().map(|frame| number(frame, SEEN)).collect();
    assert_eq!(
        seen,
        (1..=FRAMES).collect::<Vec<_>>(),
        "the register goes on"
    );
    let mut marks: Vec<u8> = frames.iter().map(|frame| frame[MARK]).collect();
    marks.dedup();
    assert_eq!(
        marks,
        [1, 2, 3],
        "each program ran, and the broken one never"
    );
}

#[test]
fn machine_code_is_replaced_without_a_loss() {
    no_packet_is_lost("native");
}

#[test]
fn an_interpreted_program_is_replaced_without_a_loss() {
    no_packet_is_lost("interp");
}

#[test]
fn a_store_tells_its_counts() {
    let config = tempfile::NamedTempFile::new().unwrap();
    let text = r#"
        listen = "127.0.0.41"

        [replication]
        chain = ["127.0.0.41"]
        request_port = 0
        chain_port = 0
    "#;
    fs::write(config.path(), text).unwrap();
    let path = config.path().to_string_lossy();
    let mut store = Running::start(&mut stateplane(&[
        "store",
        "--config",
        &path,
        "--metrics",
        "127.0.0.1:0",
    ]));
    let mut lines = BufReader::new(store.child().stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let address = line.strip_prefix("metrics: http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap();
    let metrics = ask(address, "/metrics");
    let wanted = "stateplane_store_events_total{event=\"granted\"} 0";
    assert!(metrics.contains(wanted), "{metrics}");
    store.signal("TERM");
    // Behind the log.
    let mut lines = lines.map(Result::unwrap);
    let line = lines.find(|line| line.starts_with('{')).unwrap();
    let report: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(report["replica"]["granted"], 0);
}

#[test]
fn without_a_switch_there_is_nothing_to_reload() {
    let output = reload(Path::new("no/such/socket"), None);
    assert_eq!(output.status.code(), Some(4));
    assert!(errors(&output).contains("no switch listens at no/such/socket"));
}
