//! A program of the user's own between two interfaces: `docs/examples/cable.p4`. In
//! namespaces with real TCP (needs root and `ip`; passes with a message otherwise), and
//! by its packet test.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::{Value, json};
use stateplane_interp::{Interp, Options};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;
use support::namespaces::Namespaces;
use support::{Running, STATEPLANE, errors, missing, repository};

const CABLE: &str = "docs/examples/cable.p4";
const CONNECTIONS: u64 = 4;

/// Waits for the line `ready`.
fn ready(running: &mut Running) {
    let mut output = BufReader::new(running.child().stdout.take().expect("its output"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    running.child().stdout = Some(output.into_inner());
}

/// Packets that `interface` of namespace `name` has sent (`tx`) or received (`rx`).
fn packets(namespaces: &Namespaces, name: &str, interface: &str, direction: &str) -> u64 {
    let shown = namespaces.ip(name, &["-j", "-s", "link", "show", "dev", interface]);
    let shown: Value = serde_json::from_str(&shown).expect(&shown);
    let count = &shown[0]["stats64"][direction]["packets"];
    count.as_u64().expect("a count of packets")
}

/// Asks and answers over a few connections from `left` to `right` for two seconds; gives
/// the client's report.
fn talk(namespaces: &Namespaces) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    let planned: Vec<Value> = (1..=CONNECTIONS)
        .map(|number| {
            json!({
                "connection": number,
                "source": format!("10.0.0.1:{}", 40_000 + number),
                "destination": "10.0.0.2:5001",
            })
        })
        .collect();
    let text = json!({
        "long_lived": planned,
        "ramp_ms": 100,
        "interval_ms": 20,
        "listed_stall_ms": 1000,
        "new_to": ["10.0.0.2:5001"],
        "new_per_second": 5.0,
        "new_exchanges": 3,
        "first_new": 100,
    });
    fs::write(&plan, text.to_string()).unwrap();
    let agent = |namespace: &str, arguments: &[&str]| {
        let mut command = namespaces.command(namespace, STATEPLANE);
        command.args(["lab", "agent"]).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Running::start(&mut command)
    };
    let mut server = agent("right", &["server", "--ports", "5001"]);
    ready(&mut server);
    let plan = plan.to_string_lossy();
    let client = agent("left", &["client", "--plan", &plan, "--seconds", "2"]);
    let client = client.finish(Duration::from_secs(30));
    assert!(client.status.success(), "the client fails");
    let text = String::from_utf8_lossy(&client.stdout);
    let last = text.lines().last().expect("a report");
    let line: Value = serde_json::from_str(last).expect(&text);
    line["report"].clone()
}

#[test]
fn tcp_passes_a_program_of_ones_own() {
    if let Some(reason) = missing(&["ip"]) {
        eprintln!("not tested: {reason}");
        return;
    }
    let namespaces = Namespaces::new(&["left", "cable", "right"]);
    namespaces.link(("left", "eth0"), ("cable", "to_left"));
    namespaces.link(("right", "eth0"), ("cable", "to_right"));
    namespaces.ip("left", &["address", "add", "10.0.0.1/24", "dev", "eth0"]);
    namespaces.ip("right", &["address", "add", "10.0.0.2/24", "dev", "eth0"]);

    let mut command = namespaces.command("cable", STATEPLANE);
    command
        .args(["run", CABLE])
        .args(["--port", "0=to_left", "--port", "1=to_right"])
        .current_dir(repository())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut cable = Running::start(&mut command);
    ready(&mut cable);
    let sent = |name| packets(&namespaces, name, "eth0", "tx");
    let received = |name| packets(&namespaces, name, "eth0", "rx");
    let before = [sent("left"), sent("right")];

    let talked = talk(&namespaces);
    assert_eq!(talked["broken"], json!([]), "{talked}");
    assert_eq!(talked["wrong_bytes"], 0, "{talked}");
    assert!(
        talked["exchanges"].as_u64() > Some(20 * CONNECTIONS),
        "{talked}"
    );

    cable.signal("INT");
    let output = cable.finish(Duration::from_secs(10));
    let said = errors(&output);
    assert!(output.status.success(), "{said}");
    let last = said.lines().last().expect("a report");
    let report: Value = serde_json::from_str(last).expect(&said);
    let port = |number: usize, name: &str| report["ports"][number][name].as_u64().expect(&said);
    assert_eq!(report["ports"][0]["interface"], "to_left");
    assert_eq!(report["drops"], json!({}), "{said}");
    for (from, to, near, far) in [(0, 1, "left", "right"), (1, 0, "right", "left")] {
        let taken = port(from, "rx_packets");
        assert_eq!(taken, sent(near) - before[from], "{near}: {said}");
        assert_eq!(taken, port(to, "tx_packets"), "{said}");
        assert_eq!(port(from, "rx_bytes"), port(to, "tx_bytes"), "{said}");
        assert_eq!(taken, received(far), "{far}: {said}");
        assert!(taken > 40 * CONNECTIONS, "{said}");
    }
}

#[test]
fn the_cable_passes_its_packet_test() {
    let folder = repository().join("docs/examples");
    let text = fs::read_to_string(folder.join("cable.stf")).unwrap();
    let script = stateplane_stf::parse("cable.stf", &text).unwrap_or_else(|e| panic!("{e}"));
    let main = folder.join(script.program.as_ref().expect("a program"));
    let read = |path: &str| fs::read_to_string(path).ok();
    let compiled = stateplane_compile::file(&main.to_string_lossy(), read).compile();
    assert!(compiled.diagnostics.is_empty(), "errors or warnings");
    let program = compiled.program.expect("a program");
    let engine = Interp::new(program, Options::default()).unwrap_or_else(|e| panic!("{e}"));
    if let Err(error) = stateplane_stf::run(&script, engine) {
        panic!("{error}");
    }
}
