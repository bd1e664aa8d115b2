//! The lab on this machine: namespaces that come and go, and the demonstration over
//! plain routers. Needs root, `ip`, `ethtool` and `iperf3`; passes with a message
//! where these are missing.
//!
//! The harness is our own because the demonstration starts its agents by executing
//! the running binary again with `lab agent …`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use clap::Parser;
use stateplane_lab::demo::{self, Kind, Options};
use stateplane_lab::{Command, Lab, LabError, Setting, Topology, runs};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Parser)]
enum Binary {
    #[command(subcommand)]
    Lab(Command),
}

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|first| first == "lab") {
        let Binary::Lab(command) = Binary::parse();
        return command.run().unwrap_or_else(|error| {
            eprintln!("error[{}]: {error}", error.code());
            ExitCode::FAILURE
        });
    }
    if let Some(reason) = missing() {
        println!("lab tests not run: {reason}");
        return ExitCode::SUCCESS;
    }
    let tests: [(&str, fn()); 5] = [
        ("a_lab_leaves_nothing_behind", a_lab_leaves_nothing_behind),
        (
            "a_failed_start_leaves_nothing_behind",
            a_failed_start_leaves_nothing_behind,
        ),
        (
            "what_a_killed_lab_left_is_swept",
            what_a_killed_lab_left_is_swept,
        ),
        (
            "a_failed_node_loses_its_routes_and_gets_them_back",
            a_failed_node_loses_its_routes_and_gets_them_back,
        ),
        (
            "connections_survive_a_failing_router",
            connections_survive_a_failing_router,
        ),
    ];
    for (name, test) in tests {
        test();
        println!("lab test {name} ... ok");
    }
    ExitCode::SUCCESS
}

fn missing() -> Option<String> {
    let root = Path::new("/proc/self")
        .metadata()
        .is_ok_and(|own| own.uid() == 0);
    if !root {
        return Some("they need root".to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    ["ip", "ethtool", "setpriv", "iperf3"]
        .into_iter()
        .find(|tool| !std::env::split_paths(&path).any(|directory| directory.join(tool).exists()))
        .map(|tool| format!("`{tool}` is not installed"))
}

fn forward() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab/forward.toml")
}

fn setting(directory: &Path) -> Setting {
    Setting {
        keys: false,
        variant: "protected".to_owned(),
        directory: directory.to_path_buf(),
        stateplane: std::env::current_exe().unwrap(),
    }
}

/// Namespaces of this process's labs.
fn own_namespaces() -> Vec<String> {
    let prefix = format!("sp{}n", std::process::id());
    std::fs::read_dir("/run/netns")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.starts_with(&prefix))
        .collect()
}

fn nothing_left() {
    assert_eq!(own_namespaces(), [""; 0]);
    let own = std::process::id();
    assert!(runs::list().iter().all(|run| run.owner != own));
}

fn a_lab_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let topology = Topology::load(forward()).unwrap();
    let nodes = topology.nodes.len();
    let lab = Lab::up(topology.clone(), &setting(directory.path())).unwrap();
    assert_eq!(own_namespaces().len(), nodes);
    lab.down().unwrap();
    nothing_left();
    let panicked = std::panic::catch_unwind(|| {
        let _lab = Lab::up(topology, &setting(directory.path())).unwrap();
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(panicked.is_err());
    nothing_left();
}

fn a_failed_start_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(forward()).unwrap();
    let process = "\n[[process]]\nname = \"p\"\nnode = \"in1\"\nready = \"ready\"\n\
                   command = [\"sh\", \"-c\", \"echo out of order >&2; exit 3\"]\n";
    let topology = Topology::parse(forward(), &(text + process)).unwrap();
    let error = Lab::up(topology, &setting(directory.path())).unwrap_err();
    assert_eq!(error.code(), "LAB008");
    assert!(error.to_string().contains("out of order"), "{error}");
    nothing_left();
}

fn what_a_killed_lab_left_is_swept() {
    let directory = tempfile::tempdir().unwrap();
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["lab", "up"])
        .arg(forward())
        .args(["--variant", "protected", "--logs"])
        .arg(directory.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut output = std::io::BufReader::new(owner.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut first).unwrap();
    assert!(first.contains("is up"), "{first}");
    let left = |pid| runs::list().into_iter().find(|run| run.owner == pid);
    let run = left(owner.id()).unwrap();
    assert!(!run.namespaces().is_empty());
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(!run.is_alive());
    runs::sweep().unwrap();
    assert_eq!(run.namespaces(), [""; 0]);
    assert!(left(run.owner).is_none());
}

fn a_failed_node_loses_its_routes_and_gets_them_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::up(
        Topology::load(forward()).unwrap(),
        &setting(directory.path()),
    )
    .unwrap();
    lab.wait_for_routes("r_in").unwrap();
    lab.fail("s1").unwrap();
    let error = lab.wait_for_routes("r_in").unwrap_err();
    assert!(
        matches!(&error, LabError::NoRoute { gateway, .. } if gateway == "10.1.1.2"),
        "{error}"
    );
    lab.recover("s1").unwrap();
    lab.wait_for_routes("r_in").unwrap();
    let error = lab.fail("s9").unwrap_err();
    assert_eq!(error.code(), "LAB009");
}

fn connections_survive_a_failing_router() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        keys: false,
        topology: forward(),
        output: directory.path().join("demo"),
        logs: directory.path().join("lab"),
        runs: vec![Kind::Protected],
        seconds: 17,
        kill_at: 6,
        restart_at: 9,
        connections: 100,
        interval_ms: 95,
        new_per_second: 5.0,
        rate_mbps: Some(10),
    };
    let report = demo::run(&options).unwrap();
    assert!(report.met(), "{report}");
    let run = &report.runs[0];
    assert_eq!((run.broken, run.wrong_bytes), (0, 0));
    assert_eq!(run.long_lived, 100);
    assert!(run.opened > 140, "{}", run.opened);
    assert!((run.throughput_before_mbps - 10.0).abs() < 2.0, "{report}");
    let page = std::fs::read_to_string(options.output.join("result.html")).unwrap();
    assert!(page.contains("switch returns"));
    nothing_left();
}
