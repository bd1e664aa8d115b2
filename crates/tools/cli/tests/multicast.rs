//! Multicast in namespaces: real switches, a controller, receivers and senders as processes
//! (needs root; passes with a message otherwise). Times are not judged.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use stateplane_lab::{Lab, Process, Setting, Topology};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{missing, repository};

/// Time for what takes a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lines of each sender while a leader dies.
const LINES: usize = 1500;

const CONTROLLER: &str = "10.30.0.20";

/// Place in the order and text of a message.
type Message = (u64, u64, String);

struct Network {
    lab: Lab,
    folder: PathBuf,
}

impl Network {
    fn up(folder: &Path) -> Network {
        let file = repository().join("lab/multicast.toml");
        let setting = Setting {
            variant: String::new(),
            directory: folder.to_path_buf(),
            stateplane: env!("CARGO_BIN_EXE_stateplane").into(),
            keys: false,
        };
        let topology = Topology::load(&file).expect("the topology");
        let lab = Lab::up(topology, &setting).unwrap_or_else(|error| panic!("{error}"));
        let folder = folder.to_path_buf();
        let network = Network { lab, folder };
        network.status(&["--wait", "30"]);
        network
    }

    fn spawn(&self, node: &str, name: &str, words: &[&str]) -> Process {
        let head = [env!("CARGO_BIN_EXE_stateplane"), "multicast", "--json"];
        let words = head.iter().chain(words).map(|word| (*word).to_owned());
        let command: Vec<String> = words.collect();
        let process = self.lab.spawn(node, name, &command);
        process.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The controller's status, which must be that all is well.
    fn status(&self, words: &[&str]) -> Value {
        let config = self.folder.join("controller.toml");
        let config = config.to_str().expect("a path of letters");
        let head = ["status", "--config", config];
        let words: Vec<&str> = head.iter().chain(words).copied().collect();
        let mut process = self.spawn("ctl", "status", &words);
        assert!(
            finish(&mut process),
            "{}",
            process.failure("failed".to_owned())
        );
        let text = fs::read_to_string(process.output()).expect("an output");
        let status: Value = serde_json::from_str(&text).expect("JSON");
        status["multicast"].clone()
    }

    /// A receiver that is listed.
    fn receiver(&self, node: &str, group: &str) -> Process {
        let words = ["--controller", CONTROLLER, "receive", "--group", group];
        let process = self.spawn(node, &format!("{node}-receives"), &words);
        let listed = || {
            let log = fs::read_to_string(process.log()).unwrap_or_default();
            log.contains("listed")
        };
        wait_for(&format!("{node} to be listed"), listed);
        process
    }

    /// A sender of `count` lines that begin with its name.
    fn sender(&self, node: &str, name: &str, groups: &str, count: usize) -> Process {
        let binary = env!("CARGO_BIN_EXE_stateplane");
        let script = format!(
            "seq -f '{name}-%g' {count} | {binary} multicast --controller {CONTROLLER} --timeout \
             40 send --groups {groups}"
        );
        let command = ["sh".to_owned(), "-c".to_owned(), script];
        let process = self.lab.spawn(node, name, &command);
        process.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The topology's process whose switch leads `group`.
    fn leader(&self, group: usize) -> String {
        let status = self.status(&[]);
        let leader = status["groups"][group]["leader"]
            .as_str()
            .expect("a leader");
        let names = ["leaf1", "leaf2", "spine1", "spine2"];
        let number = leader
            .rsplit('.')
            .next()
            .and_then(|it| it.parse::<usize>().ok());
        names[number.expect("an address") - 1].to_owned()
    }
}

/// True if the process ends with code 0.
fn finish(process: &mut Process) -> bool {
    let ended = process.wait_until(Instant::now() + PATIENCE);
    let ended = ended.unwrap_or_else(|error| panic!("{error}"));
    ended.is_some_and(|status| status.success())
}

fn wait_for(what: &str, there: impl Fn() -> bool) {
    let begin = Instant::now();
    while !there() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Messages that a receiver printed; a last line may be half there.
fn messages(receiver: &Process) -> Vec<Message> {
    let text = fs::read_to_string(receiver.output()).unwrap_or_default();
    let lines = text
        .lines()
        .map_while(|line| serde_json::from_str::<Value>(line).ok());
    let number = |value: &Value| value.as_u64().expect("a number");
    lines
        .map(|line| {
            let text = line["text"].as_str().expect("a text").to_owned();
            (
                number(&line["at"]["time"]),
                number(&line["at"]["group"]),
                text,
            )
        })
        .collect()
}

/// Those of a list whose senders have these names.
fn of(messages: &[Message], names: &[&str]) -> Vec<Message> {
    let from = |message: &&Message| {
        let name = message.2.split('-').next().unwrap_or_default();
        names.contains(&name)
    };
    messages.iter().filter(from).cloned().collect()
}

#[test]
fn lines_come_out_in_one_order_though_a_leader_dies_and_a_receiver_stops() {
    if let Some(missing) = missing(&["ip", "ethtool", "bridge", "setpriv", "seq"]) {
        eprintln!("not tried: {missing}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = Network::up(folder.path());
    let nodes = [
        ("h1", "0"),
        ("h2", "0"),
        ("h3", "0"),
        ("h4", "1"),
        ("h5", "1"),
        ("h6", "1"),
    ];
    let receivers: Vec<Process> = nodes
        .iter()
        .map(|(node, group)| network.receiver(node, group))
        .collect();

    // A leader is killed while lines flow to both groups.
    let senders = [
        ("w1", "a", "0"),
        ("w1", "b", "0,1"),
        ("w2", "c", "1"),
        ("w2", "d", "0,1"),
    ];
    let mut sending: Vec<Process> = senders
        .iter()
        .map(|(node, name, groups)| network.sender(node, name, groups, LINES))
        .collect();
    wait_for("lines", || messages(&receivers[0]).len() > LINES / 4);
    let leader = network.leader(0);
    network.lab.process(&leader).expect("a switch").kill();
    for process in &mut sending {
        assert!(finish(process), "{}", process.failure("failed".to_owned()));
    }
    // The switch comes back with empty logs, and becomes a member again.
    network
        .lab
        .start(&leader)
        .unwrap_or_else(|error| panic!("{error}"));
    let status = network.status(&["--wait", "30"]);
    for group in status["groups"].as_array().expect("groups") {
        assert_eq!(
            group["members"].as_array().map(Vec::len),
            Some(3),
            "{group}"
        );
        assert_eq!(
            group["receivers"].as_array().map(Vec::len),
            Some(3),
            "{group}"
        );
    }
    assert!(status["groups"][0]["epoch"].as_u64() >= Some(3), "{status}");

    wait_for("all lines", || {
        receivers
            .iter()
            .all(|receiver| messages(receiver).len() >= 3 * LINES)
    });
    let all: Vec<Vec<Message>> = receivers.iter().map(messages).collect();
    for (at, (got, first)) in [(&all[0], 0), (&all[3], 3)].into_iter().enumerate() {
        let names = if at == 0 {
            ["a", "b", "d"]
        } else {
            ["c", "b", "d"]
        };
        assert!(got.is_sorted(), "places grow");
        let texts: BTreeSet<&str> = got.iter().map(|it| it.2.as_str()).collect();
        assert_eq!((got.len(), texts.len()), (3 * LINES, 3 * LINES));
        assert_eq!(of(got, &names).len(), got.len());
        assert_eq!(all[first + 1], *got);
        assert_eq!(all[first + 2], *got);
    }
    // What both groups got has one order in both.
    assert_eq!(of(&all[0], &["b", "d"]), of(&all[3], &["b", "d"]));

    // A receiver that stops holds senders up, until it is taken off its list.
    receivers[5]
        .signal("STOP")
        .unwrap_or_else(|error| panic!("{error}"));
    let mut sender = network.sender("w1", "e", "1", 200);
    assert!(
        finish(&mut sender),
        "{}",
        sender.failure("failed".to_owned())
    );
    wait_for("the last lines", || {
        messages(&receivers[4]).len() == 3 * LINES + 200
    });
    let status = network.status(&[]);
    assert_eq!(
        status["groups"][1]["receivers"].as_array().map(Vec::len),
        Some(2)
    );
    let mut stopped = receivers.into_iter().next_back().expect("a receiver");
    stopped
        .signal("CONT")
        .unwrap_or_else(|error| panic!("{error}"));
    let ended = stopped
        .wait_until(Instant::now() + PATIENCE)
        .expect("no interrupt");
    assert_eq!(ended.and_then(|status| status.code()), Some(1));
    let log = fs::read_to_string(stopped.log()).expect("a log");
    assert!(log.contains("error[taken-off]"), "{log}");
    network.lab.down().unwrap_or_else(|error| panic!("{error}"));
}
