//! Programs over multicast, on the switches of lab/multicast.toml: the examples in Rust, C and Python,
//! and the key-value store (needs root; passes with a message otherwise, and says which language it
//! cannot try). Times are not judged.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use stateplane_lab::{Lab, Process, Setting, Topology};
use stateplane_multicast_store::{Key, shard_of};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use support::lines::{examples, lines, python, rust};
use support::python::skip;
use support::{missing, repository};

/// Time for what takes seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Lines of each sender.
const LINES: usize = 200;

const CONTROLLER: &str = "10.30.0.20";

fn up(folder: &Path) -> Lab {
    let setting = Setting {
        variant: String::new(),
        directory: folder.to_path_buf(),
        stateplane: env!("CARGO_BIN_EXE_stateplane").into(),
        keys: false,
    };
    let topology = Topology::load(repository().join("lab/multicast.toml")).expect("a topology");
    Lab::up(topology, &setting).unwrap_or_else(|error| panic!("{error}"))
}

fn spawn(lab: &Lab, node: &str, name: &str, words: &[String]) -> Process {
    let process = lab.spawn(node, name, words);
    process.unwrap_or_else(|error| panic!("{error}"))
}

fn finish(process: &mut Process) {
    let ended = process.wait_until(Instant::now() + PATIENCE);
    let ended = ended.unwrap_or_else(|error| panic!("{error}"));
    let good = ended.is_some_and(|status| status.success());
    assert!(good, "{}", process.failure(format!("ended: {ended:?}")));
}

fn receiver(lab: &Lab, node: &str, words: &[String], group: &str, count: usize) -> Process {
    let count = count.to_string();
    let own = [CONTROLLER, "receive", group, &count].map(str::to_owned);
    let process = spawn(
        lab,
        node,
        &format!("{node}-receives"),
        &[words, &own].concat(),
    );
    let begin = Instant::now();
    let listed = || fs::read_to_string(process.log()).is_ok_and(|log| log.contains("listed"));
    while !listed() {
        let left = begin.elapsed() < PATIENCE;
        assert!(left, "{}", process.failure("is not listed".to_owned()));
        std::thread::sleep(Duration::from_millis(50));
    }
    process
}

#[test]
fn examples_in_three_languages_have_one_order() {
    if let Some(missing) = missing(&["ip", "ethtool", "bridge", "setpriv", "seq"]) {
        return skip("multicast in three languages", &missing);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let languages = examples(folder.path());
    let lab = up(folder.path());

    // All lines address both groups: the receivers of both have the same lines in one order.
    let count = languages.len() * LINES;
    let nodes = ["h1", "h4", "h2", "h5", "h3", "h6"];
    let mut receivers = Vec::new();
    for (at, (_, words)) in languages.iter().enumerate() {
        receivers.push(receiver(&lab, nodes[2 * at], words, "0", count));
        receivers.push(receiver(&lab, nodes[2 * at + 1], words, "1", count));
    }
    let mut senders = Vec::new();
    for (at, (language, words)) in languages.iter().enumerate() {
        let words = words.join(" ");
        let script = format!("seq -f '{language}-%g' {LINES} | {words} {CONTROLLER} send 0,1");
        let command = ["sh", "-c", &script].map(str::to_owned);
        let node = ["w1", "w2"][at % 2];
        senders.push(spawn(&lab, node, &format!("{language}-sends"), &command));
    }
    senders.iter_mut().for_each(finish);
    receivers.iter_mut().for_each(finish);
    let first = lines(&receivers[0]);
    let places: Vec<_> = first.iter().map(|(place, _)| *place).collect();
    assert!(places.is_sorted(), "places grow");
    let texts: BTreeSet<&str> = first.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!((first.len(), texts.len()), (count, count));
    for receiver in &receivers[1..] {
        assert_eq!(lines(receiver), first, "{}", receiver.name());
    }

    // The module of Python beyond what the example uses.
    let script = repository().join("crates/tools/cli/tests/multicast/client.py");
    match python(&script) {
        Err(reason) => skip("the module of Python", &reason),
        Ok(words) => {
            let words = [words, vec![CONTROLLER.to_owned()]].concat();
            let mut client = spawn(&lab, "h1", "client", &words);
            finish(&mut client);
            let said = fs::read_to_string(client.output()).expect("an output");
            assert!(said.contains("all of it"), "{said}");
        }
    }
    lab.down().unwrap_or_else(|error| panic!("{error}"));
}

/// A program that began with nothing, and one that joined with its state between two halves of the
/// lines, have the same lines in one order.
#[test]
fn a_program_that_joins_has_what_came_before_it() {
    if let Some(missing) = missing(&["ip", "ethtool", "bridge", "setpriv", "seq"]) {
        return skip("a peer's state", &missing);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (log, lines) = (rust("multicast_log"), rust("multicast_lines"));
    let lab = up(folder.path());
    let start = |node: &str, peer: Option<&str>| {
        let count = (2 * LINES).to_string();
        let own = [CONTROLLER, "0", &count].into_iter().chain(peer);
        let own = own.map(str::to_owned);
        let words: Vec<String> = log.iter().cloned().chain(own).collect();
        let process = spawn(&lab, node, &format!("{node}-log"), &words);
        let begin = Instant::now();
        while !fs::read_to_string(process.log()).is_ok_and(|log| log.contains("ready")) {
            let left = begin.elapsed() < PATIENCE;
            assert!(left, "{}", process.failure("is not ready".to_owned()));
            std::thread::sleep(Duration::from_millis(50));
        }
        process
    };
    let send = |name: &str| {
        let words = lines.join(" ");
        let script = format!("seq -f '{name}-%g' {LINES} | {words} {CONTROLLER} send 0,1");
        let command = ["sh", "-c", &script].map(str::to_owned);
        finish(&mut spawn(&lab, "w1", name, &command));
    };
    let mut first = start("h1", None);
    send("early");
    let mut second = start("h2", Some("10.30.0.11"));
    send("late");
    let said = [&mut first, &mut second].map(|process| {
        finish(process);
        fs::read_to_string(process.output()).expect("an output")
    });
    assert_eq!(said[0].lines().count(), 2 * LINES);
    assert_eq!(said[0], said[1]);
    lab.down().unwrap_or_else(|error| panic!("{error}"));
}

/// Addresses of the store's replicas, with their nodes and shards.
const REPLICAS: [(&str, &str, u8); 4] = [
    ("h1", "10.30.0.11", 0),
    ("h2", "10.30.0.12", 0),
    ("h4", "10.30.0.14", 1),
    ("h5", "10.30.0.15", 1),
];

/// A replica that is ready.
fn replica(lab: &Lab, (node, _, shard): (&str, &str, u8), empty: bool) -> Process {
    let binary = env!("CARGO_BIN_EXE_stateplane");
    let own = shard.to_string();
    let head = [
        binary,
        "multicast",
        "--controller",
        CONTROLLER,
        "--timeout",
        "60",
        "store",
    ];
    let mut words = [&head[..], &["--shards", "2", "--shard", &own]].concat();
    if empty {
        words.push("--empty");
    }
    let peers = REPLICAS.iter().filter(|(peer, ..)| *peer != node);
    let peers: Vec<String> = peers
        .map(|(_, at, shard)| format!("--peer={shard}={at}"))
        .collect();
    words.extend(peers.iter().map(String::as_str));
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let mut process = spawn(lab, node, &format!("{node}-store"), &words);
    let ready = process.wait_for_line("ready");
    ready.unwrap_or_else(|error| panic!("{error}"));
    process
}

/// Exit code and output of an operation.
fn kv(lab: &Lab, operation: &[&str]) -> (Option<i32>, String) {
    let binary = env!("CARGO_BIN_EXE_stateplane");
    let head = [
        binary,
        "multicast",
        "--controller",
        CONTROLLER,
        "--timeout",
        "60",
        "kv",
    ];
    let words = [&head[..], &["--shards", "2"], operation].concat();
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let mut process = spawn(lab, "w1", "kv", &words);
    let ended = process.wait_until(Instant::now() + PATIENCE);
    let ended = ended.unwrap_or_else(|error| panic!("{error}"));
    let said = fs::read_to_string(process.output()).expect("an output");
    let code = ended.and_then(|status| status.code());
    let failed = code.is_none_or(|code| code > 7);
    assert!(!failed, "{}", process.failure(format!("ended: {ended:?}")));
    (code, said)
}

#[test]
fn the_store_keeps_its_records_while_replicas_die_and_return() {
    if let Some(missing) = missing(&["ip", "ethtool", "bridge", "setpriv"]) {
        return skip("the store over multicast", &missing);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let lab = up(folder.path());
    let mut replicas: Vec<Process> = REPLICAS.iter().map(|of| replica(&lab, *of, true)).collect();
    let name = |shard: u8| {
        let mut names = (0..).map(|number| format!("lamp-{number}"));
        let of = |name: &String| Key::new(name.as_str()).map(|key| shard_of(&key, 2));
        names.find(|name| of(name) == Some(shard)).expect("a key")
    };
    let (own, other) = (name(0), name(1));
    let (own, other) = (own.as_str(), other.as_str());
    let read = |first: &str, second: &str| format!("{own}\t{first}\n{other}\t{second}\n");
    let read = |first: &str, second: &str| read(first, second).replace("\t\n", "\n");
    let said = |code: i32, text: &str| (Some(code), text.to_owned());

    assert_eq!(kv(&lab, &["get", own]), said(1, ""));
    assert_eq!(kv(&lab, &["put", own, "on"]), said(0, ""));
    assert_eq!(kv(&lab, &["get", own]), said(0, "on\n"));
    assert_eq!(kv(&lab, &["move", own, other]), said(0, ""));
    assert_eq!(kv(&lab, &["move", own, other]), said(5, ""));
    assert_eq!(kv(&lab, &["read", own, other]), said(0, &read("", "on")));
    let swap = ["swap", other, "--expected", "on", "--value", "off"];
    assert_eq!(kv(&lab, &swap), said(0, ""));
    assert_eq!(kv(&lab, &swap), said(5, ""));

    // A replica dies, and begins again with its peer's state; then the peer dies.
    replicas[1].kill();
    assert_eq!(kv(&lab, &["put", own, "dim"]), said(0, ""));
    assert_eq!(
        kv(&lab, &["read", own, other]),
        said(0, &read("dim", "off"))
    );
    replicas[1] = replica(&lab, REPLICAS[1], false);
    replicas[0].kill();
    assert_eq!(kv(&lab, &["get", own]), said(0, "dim\n"));
    assert_eq!(
        kv(&lab, &["read", own, other]),
        said(0, &read("dim", "off"))
    );
    assert_eq!(kv(&lab, &["delete", own]), said(0, ""));
    assert_eq!(kv(&lab, &["move", other, own]), said(0, ""));
    assert_eq!(kv(&lab, &["read", own, other]), said(0, &read("off", "")));
    lab.down().unwrap_or_else(|error| panic!("{error}"));
}
