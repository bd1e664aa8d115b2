//! Multicast with keys, on the switches of lab/multicast.toml: switches, controller, receivers, senders,
//! replicas and clients of the store take sealed messages alone, while strangers send others (needs
//! root; passes with a message otherwise). Times are not judged.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use stateplane_lab::{Lab, Process, Setting, Topology};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use support::lines::{examples, lines as placed};
use support::python::skip;
use support::{missing, repository};

/// Time for what takes a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(90);

const CONTROLLER: &str = "10.30.0.20";

/// Switches, by their numbers.
const SWITCHES: [&str; 4] = ["leaf1", "leaf2", "spine1", "spine2"];

/// Hosts, by the last byte of their addresses, which is their number among peers. `w2` has no keys.
const HOSTS: [(&str, u32); 7] = [
    ("h1", 11),
    ("h2", 12),
    ("h3", 13),
    ("h4", 14),
    ("h5", 15),
    ("h6", 16),
    ("w1", 17),
];

/// Number of the controller among peers, and the last byte of its address.
const OF_CONTROLLER: u32 = 20;

/// All that have keys: their numbers, which are the last bytes of their addresses.
fn peers() -> Vec<u32> {
    let switches = 1..=SWITCHES.len() as u32;
    let hosts = HOSTS.iter().map(|(_, number)| *number);
    switches.chain(hosts).chain([OF_CONTROLLER]).collect()
}

fn keys_of(folder: &Path, own: u32) -> PathBuf {
    folder.join(format!("{own}.keys.toml"))
}

/// Writes the file of keys of a peer; each pair has its own key, and other ones under another `mark`.
fn write_keys(path: &Path, own: u32, mark: u8) {
    let mut text = format!("id = {own}\n");
    for peer in peers().into_iter().filter(|peer| *peer != own) {
        let (a, b) = (own.min(peer), own.max(peer));
        let rest: String = (3..32).map(|byte| format!("{byte:02x}")).collect();
        let key = format!("{a:02x}{b:02x}{mark:02x}{rest}");
        _ = write!(
            text,
            "\n[[peer]]\nid = {peer}\naddress = \"10.30.0.{peer}\"\n"
        );
        if own == OF_CONTROLLER && peer <= SWITCHES.len() as u32 {
            _ = writeln!(text, "control_address = \"10.30.1.{peer}\"");
        }
        _ = writeln!(text, "keys = [{{ id = 1, hex = \"{key}\" }}]");
    }
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("closed to others");
}

struct Network {
    lab: Lab,
    folder: PathBuf,
}

impl Network {
    fn up(folder: &Path) -> Network {
        for peer in peers() {
            write_keys(&keys_of(folder, peer), peer, 1);
        }
        let file = repository().join("lab/multicast.toml");
        let mut topology = Topology::load(&file).expect("the topology");
        for process in &mut topology.processes {
            let number = SWITCHES.iter().position(|name| *name == process.name);
            let number = number.map_or(OF_CONTROLLER, |at| at as u32 + 1);
            let keys = keys_of(folder, number);
            process.command.push("--keys".to_owned());
            process.command.push(keys.display().to_string());
            if number != OF_CONTROLLER {
                process
                    .command
                    .extend(["--sealed-port", "0"].map(str::to_owned));
            }
        }
        let setting = Setting {
            variant: String::new(),
            directory: folder.to_path_buf(),
            stateplane: env!("CARGO_BIN_EXE_stateplane").into(),
            keys: false,
        };
        let lab = Lab::up(topology, &setting).unwrap_or_else(|error| panic!("{error}"));
        let folder = folder.to_path_buf();
        let network = Network { lab, folder };
        network.status();
        network
    }

    fn spawn(&self, node: &str, name: &str, words: &[String]) -> Process {
        let process = self.lab.spawn(node, name, words);
        process.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The command's words, with a file of keys if there is one.
    fn words(&self, keys: Option<&Path>, timeout: &str, words: &[&str]) -> Vec<String> {
        let head = [env!("CARGO_BIN_EXE_stateplane"), "multicast"];
        let head = head
            .into_iter()
            .chain(["--controller", CONTROLLER, "--timeout", timeout]);
        let keys = keys.map(|keys| keys.to_str().expect("a path of letters"));
        let keys = keys.into_iter().flat_map(|keys| ["--keys", keys]);
        let words = head.chain(keys).chain(words.iter().copied());
        words.map(str::to_owned).collect()
    }

    /// The file of keys of the host at `node`.
    fn keys(&self, node: &str) -> PathBuf {
        let (_, number) = HOSTS.iter().find(|(name, _)| *name == node).expect("keys");
        keys_of(&self.folder, *number)
    }

    /// The words of the host at `node`, which has keys.
    fn sealed(&self, node: &str, words: &[&str]) -> Vec<String> {
        self.words(Some(&self.keys(node)), "60", words)
    }

    /// The controller's status once every group has a leader and all members.
    fn status(&self) -> Value {
        let config = self.folder.join("controller.toml");
        let config = config.to_str().expect("a path of letters");
        let words = ["--json", "status", "--wait", "30", "--config", config];
        let mut process = self.spawn("ctl", "status", &self.words(None, "30", &words));
        assert_eq!(ended(&mut process), 0);
        let text = fs::read_to_string(process.output()).expect("an output");
        serde_json::from_str::<Value>(&text).expect("JSON")["multicast"].clone()
    }

    /// A receiver that is listed.
    fn receiver(&self, node: &str, group: &str) -> Process {
        let words = self.sealed(node, &["receive", "--group", group]);
        let process = self.spawn(node, &format!("{node}-receives"), &words);
        let begin = Instant::now();
        while !fs::read_to_string(process.log()).is_ok_and(|log| log.contains("listed")) {
            let left = begin.elapsed() < PATIENCE;
            assert!(left, "{}", process.failure("is not listed".to_owned()));
            std::thread::sleep(Duration::from_millis(50));
        }
        process
    }

    /// Sends lines to both groups from `w1`.
    fn send(&self, name: &str, count: usize) {
        let words = self.sealed("w1", &["send", "--groups", "0,1"]).join(" ");
        let script = format!("seq -f '{name}-%g' {count} | {words}");
        let command = ["sh", "-c", &script].map(str::to_owned);
        assert_eq!(ended(&mut self.spawn("w1", name, &command)), 0, "{name}");
    }

    /// A replica of the store that is ready.
    fn replica(&self, node: &str, shard: &str, empty: bool) -> Process {
        let mut words = vec!["store", "--shards", "2", "--shard", shard];
        let peers = [
            ("h1", "0=10.30.0.11"),
            ("h2", "0=10.30.0.12"),
            ("h4", "1=10.30.0.14"),
        ];
        for (_, peer) in peers.iter().filter(|(peer, _)| *peer != node) {
            words.extend(["--peer", *peer]);
        }
        words.extend(empty.then_some("--empty"));
        let words = self.sealed(node, &words);
        let mut process = self.spawn(node, &format!("{node}-store"), &words);
        let ready = process.wait_for_line("ready");
        ready.unwrap_or_else(|error| panic!("{error}"));
        process
    }

    /// Exit code and output of an operation of the store from `w1`.
    fn kv(&self, operation: &[&str]) -> (i32, String) {
        let words = [&["kv", "--shards", "2"][..], operation].concat();
        let mut process = self.spawn("w1", "kv", &self.sealed("w1", &words));
        let code = ended(&mut process);
        (
            code,
            fs::read_to_string(process.output()).expect("an output"),
        )
    }

    /// Runs a script in a node's namespace.
    fn run(&self, node: &str, script: &str) {
        let namespace = self.lab.run().namespace(node);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &namespace, "bash", "-c", script]);
        let output = command.output().expect("ip");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
}

/// Exit code of a process.
fn ended(process: &mut Process) -> i32 {
    let ended = process.wait_until(Instant::now() + PATIENCE);
    let ended = ended.unwrap_or_else(|error| panic!("{error}"));
    let code = ended.and_then(|status| status.code());
    code.unwrap_or_else(|| panic!("{}", process.failure("does not end".to_owned())))
}

fn wait_for(what: &str, there: impl Fn() -> bool) {
    let begin = Instant::now();
    while !there() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Lines that [`Network::send`] sent. The store's messages, which the receivers of its groups print too,
/// are no text.
fn lines(receiver: &Process) -> Vec<String> {
    let bytes = fs::read(receiver.output()).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.lines()
        .filter(|line| line.starts_with("first-") || line.starts_with("second-"))
        .map(str::to_owned)
        .collect()
}

/// Counts of a switch, which ends.
fn counts(network: &mut Network, switch: &str) -> Value {
    let process = network.lab.process(switch).expect("a switch");
    process
        .signal("INT")
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(ended(process), 0);
    let log = fs::read_to_string(process.log()).expect("a log");
    let report = log.lines().rfind(|line| line.starts_with('{'));
    let report: Value = serde_json::from_str(report.expect("a report")).expect("JSON");
    report["seals"].clone()
}

#[test]
fn sealed_messages_alone_are_taken_by_all() {
    if let Some(missing) = missing(&["ip", "ethtool", "bridge", "setpriv", "seq", "nft", "bash"]) {
        return skip("sealed multicast", &missing);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = Network::up(folder.path());
    let receivers = [network.receiver("h3", "0"), network.receiver("h6", "1")];
    let _shards = [
        network.replica("h1", "0", true),
        network.replica("h4", "1", true),
    ];
    network.send("first", 50);
    assert_eq!(network.kv(&["put", "lamp", "on"]).0, 0);
    assert_eq!(network.kv(&["move", "lamp", "attic/lamp"]).0, 0);
    // A replica begins with its peer's state.
    let _joined = network.replica("h2", "0", false);

    // A host that has no keys, or others, is not heard.
    let other = folder.path().join("other.toml");
    write_keys(&other, 17, 2);
    for (node, keys) in [
        ("w2", None),
        ("w2", Some(other.as_path())),
        ("w1", Some(other.as_path())),
    ] {
        for words in [
            &["send", "--groups", "0"][..],
            &["kv", "--shards", "2", "get", "lamp"],
        ] {
            let words = network.words(keys, "0.5", words);
            assert_eq!(
                ended(&mut network.spawn(node, "stranger", &words)),
                4,
                "{words:?}"
            );
        }
    }
    // Strangers send to switches, controller, receivers and replicas: a PREPARE of a late epoch, a
    // part of one, letters; and a wire says things twice.
    let prepare = r"\x01\x11\x00\x00\x00\x00\x00\x00\x7f\xff\xff\xff\x00\x00\x00\x01";
    let rest = r"\x00".repeat(56);
    let mut script = String::new();
    let targets = (1..=4)
        .map(|switch| (switch, 4799))
        .chain([(13, 4799), (20, 4795), (11, 4801)]);
    for (host, port) in targets {
        for bytes in [
            format!("{prepare}{rest}"),
            prepare.to_owned(),
            "letters".repeat(30),
        ] {
            _ = writeln!(
                script,
                "printf '{bytes}' > /dev/udp/10.30.0.{host}/{port} || true"
            );
        }
    }
    network.run("w2", &script);
    let mut doubled = String::new();
    for switch in &SWITCHES[..2] {
        _ = writeln!(
            doubled,
            "nft 'table netdev {switch} {{ chain to {{ type filter hook egress device \"{switch}\" \
             priority 0; numgen random mod 100 < 40 dup to \"{switch}\"; }}; }}'"
        );
    }
    network.run("fabric", &doubled);

    network.send("second", 50);
    assert_eq!(
        network.kv(&["read", "lamp", "attic/lamp"]),
        (0, "lamp\nattic/lamp\ton\n".into())
    );
    wait_for("all lines", || {
        receivers.iter().all(|it| lines(it).len() >= 100)
    });
    assert_eq!(lines(&receivers[0]).len(), 100);
    assert_eq!(lines(&receivers[0]), lines(&receivers[1]));
    // The strangers' PREPARE moved no epoch.
    let status = network.status();
    for group in 0..2 {
        let epoch = status["groups"][group]["epoch"].as_u64();
        assert!(epoch < Some(1000), "{status}");
    }
    let mut all = Vec::new();
    for switch in SWITCHES {
        all.push(counts(&mut network, switch));
    }
    for seals in &all {
        let count = |name: &str| seals[name].as_u64().expect("a count");
        assert!(count("opened") > 0 && count("sealed") > 0, "{seals}");
        assert!(
            count("not_sealed") + count("truncated") + count("wrong_address") >= 3,
            "{seals}"
        );
        assert!(count("lives") > 0, "{seals}");
    }
    let replayed = |seals: &Value| seals["replayed"].as_u64().unwrap_or(0);
    assert!(replayed(&all[0]) > 0 && replayed(&all[1]) > 0, "{all:?}");
    network.lab.down().unwrap_or_else(|error| panic!("{error}"));
}

/// Lines of each example.
const LINES: usize = 50;

/// The settings for keys of Rust, the C library and the Python package.
#[test]
fn examples_in_three_languages_seal_what_they_say() {
    if let Some(missing) = missing(&["ip", "ethtool", "bridge", "setpriv", "seq"]) {
        return skip("sealed multicast in three languages", &missing);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let languages = examples(folder.path());
    let network = Network::up(folder.path());
    let count = languages.len() * LINES;
    let words = |node: &str, language: &[String], own: &[&str]| -> Vec<String> {
        let keys = network.keys(node);
        let keys = keys.to_str().expect("a path of letters");
        let own = ["--keys", keys, CONTROLLER]
            .into_iter()
            .chain(own.iter().copied());
        let language = language.iter().map(String::as_str);
        language.chain(own).map(str::to_owned).collect()
    };
    let mut receivers = Vec::new();
    for ((_, language), (node, group)) in
        languages
            .iter()
            .zip([("h1", "0"), ("h4", "1"), ("h2", "0")])
    {
        let words = words(node, language, &["receive", group, &count.to_string()]);
        receivers.push(network.spawn(node, &format!("{node}-receives"), &words));
    }
    for receiver in &receivers {
        let listed = || fs::read_to_string(receiver.log()).is_ok_and(|log| log.contains("listed"));
        wait_for("a receiver", listed);
    }
    let mut senders = Vec::new();
    for ((name, language), node) in languages.iter().zip(["w1", "h5", "h6"]) {
        let words = words(node, language, &["send", "0,1"]).join(" ");
        let script = format!("seq -f '{name}-%g' {LINES} | {words}");
        let command = ["sh", "-c", &script].map(str::to_owned);
        senders.push(network.spawn(node, &format!("{name}-sends"), &command));
    }
    for process in senders.iter_mut().chain(&mut receivers) {
        let code = ended(process);
        assert_eq!(code, 0, "{}", process.failure("fails".to_owned()));
    }
    let first = placed(&receivers[0]);
    assert_eq!(first.len(), count);
    for receiver in &receivers[1..] {
        assert_eq!(placed(receiver), first, "{}", receiver.name());
    }
    network.lab.down().unwrap_or_else(|error| panic!("{error}"));
}
