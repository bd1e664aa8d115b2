//! An engine's view of a program in bounded inconsistency, merged with the snapshots that a store has, while the
//! switch is killed: in network namespaces (needs root and `ip`; passes with a message otherwise).
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::namespaces::Namespaces;
use support::{Running, STATEPLANE, errors, missing, repository, stateplane};

/// Time for what takes ms unless the machine does not let it.
const PATIENCE: Duration = Duration::from_secs(60);

/// From one snapshot to the next: time to kill the switch between two.
const PERIOD: Duration = Duration::from_secs(3);

/// The arrays of the program, and elements of each.
const ARRAYS: [&str; 3] = ["first_row", "second_row", "third_row"];
const ELEMENTS: usize = 128;

/// A switch with a host at port 0, a store at port 2 and an engine at port 500.
struct Network {
    namespaces: Namespaces,
    folder: tempfile::TempDir,
}

/// What `view snapshots` says.
struct Said {
    /// Packets that each merged array has counted.
    merged: Vec<u64>,
    /// Sum of the first array over the snapshots of all starts of the switch.
    stored: u64,
    /// Starts of the switch that are, or were, in view.
    views: usize,
    text: Value,
}

/// Sums by array.
fn sums(values: &Value) -> Vec<u64> {
    let values = values.as_array().expect("an array");
    assert_eq!(values.len(), ARRAYS.len() * ELEMENTS);
    let value = |at: usize| values[at].as_u64().expect("a number");
    let sum = |array| {
        (0..ELEMENTS)
            .map(|it| value(it * ARRAYS.len() + array))
            .sum()
    };
    (0..ARRAYS.len()).map(sum).collect()
}

impl Network {
    fn new() -> Network {
        let [switch, host, rest] = ["svswitch", "svhost", "svrest"];
        let namespaces = Namespaces::new(&[switch, host, rest]);
        namespaces.link((switch, "p0"), (host, "eth0"));
        namespaces.link((switch, "p2"), (rest, "store"));
        namespaces.link((switch, "p500"), (rest, "engine"));
        for interface in [(switch, "p2"), (rest, "store")] {
            namespaces.ip(interface.0, &["link", "set", interface.1, "mtu", "1700"]);
        }
        for (interface, address) in [("store", "10.0.7.11/24"), ("engine", "10.0.9.9/24")] {
            namespaces.ip(rest, &["address", "add", address, "dev", interface]);
        }
        namespaces.ip(host, &["address", "add", "10.0.8.8/24", "dev", "eth0"]);
        let neighbour = ["neigh", "add", "10.0.8.1", "lladdr", "02:00:00:00:00:01"];
        namespaces.ip(host, &[&neighbour[..], &["dev", "eth0"]].concat());
        namespaces.ip(host, &["route", "add", "default", "via", "10.0.8.1"]);
        Network {
            namespaces,
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("a path").to_owned()
    }

    /// The program that `protect` and `sync` make of lab/apps/count-min.
    fn program(&self) -> String {
        let plain = repository().join("lab/apps/count-min/count_min.p4");
        let plain = plain.to_str().expect("a path");
        let (protected, whole) = (self.path("protected.p4"), self.path("whole.p4"));
        let copies = ARRAYS.map(|array| format!("{array}.copies")).join(",");
        let registers = ["--registers", &copies];
        let made = [
            vec!["protect", plain, "-o", &protected],
            [&["sync", &protected, "-o", &whole][..], &registers].concat(),
        ];
        for arguments in made {
            let output = Running::start(&mut stateplane(&arguments)).finish(PATIENCE);
            assert!(output.status.success(), "{}", errors(&output));
        }
        whole
    }

    /// `stateplane` in a namespace, once it is ready.
    fn start(&self, namespace: &str, arguments: &[&str]) -> Running {
        let mut command = self.namespaces.command(namespace, STATEPLANE);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut running = Running::start(&mut command);
        let said = running.child().stdout.take().expect("its output");
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).expect("a line");
        if line != "ready\n" {
            panic!("{arguments:?}: {}", errors(&running.finish(PATIENCE)));
        }
        running
    }

    fn store(&self) -> Running {
        let config = self.write(
            "store.toml",
            "listen = \"10.0.7.11\"\n[replication]\nchain = [\"10.0.7.11\"]\nchain_epoch = 1\nshards = 4\n\
             term_ms = 100\n[[replication.class]]\nid = 71\nstate_length = 16\nfirst_lease = \"zero\"\n",
        );
        self.start("svrest", &["store", "--config", &config])
    }

    fn switch(&self, program: &str) -> Running {
        let mac = self.mac("svrest", "store");
        let values = "00000000".repeat(ARRAYS.len());
        let text = format!(
            "[replication]\nswitch = 1\naddress = \"10.0.7.1\"\nmac = \"02:00:00:00:00:02\"\nport = 2\n\
             shards = 4\nheads = [{{ address = \"10.0.7.11\", mac = \"{mac}\" }}]\nmtu = 1700\n\
             [sync]\nswitch = 1\naddress = \"10.0.9.1\"\nunsealed_writes = true\n\
             [[generators]]\nport = 508\nperiod_ms = 1\nbatch = 6\n\
             frame = \"000000000000 000000000000 88b5 00000001 00000000 00000000 0000 {values}\"\n"
        );
        let config = self.write("switch.toml", &text);
        let period = format!("SNAPSHOT_PERIOD={}", PERIOD.as_micros());
        let bound = format!("SNAPSHOT_BOUND={}", 10 * PERIOD.as_micros());
        let settings = ["-D", &period, "-D", &bound, "--config", &config];
        let ports = ["0=packet:p0", "2=packet:p2", "500=packet:p500"];
        let ports = ports.iter().flat_map(|port| ["--port", port]);
        let arguments = ["run", program].into_iter().chain(settings).chain(ports);
        self.start("svswitch", &arguments.collect::<Vec<_>>())
    }

    fn engine(&self) -> Running {
        let group = |(number, name): (usize, &str)| {
            format!(
                "[[group]]\nname = \"{name}\"\nswitch = \"10.0.9.1\"\ngroup = {number}\nlocations = {}\n",
                2 * ELEMENTS
            )
        };
        let groups: String = ARRAYS.into_iter().enumerate().map(group).collect();
        let text = format!(
            "data = \"{}\"\nrpc = \"127.0.0.1:9560\"\n{groups}[[flows]]\nname = \"elements\"\n\
             stores = [\"10.0.7.11\"]\nswitch = 60000\nclasses = [71]\npoll_us = 10000\n\
             [[flows.snapshots]]\nname = \"sketch\"\nclass = 71\nelements = {ELEMENTS}\narrays = 3\n\
             views = [{{ switch = 1, groups = {ARRAYS:?} }}]\n",
            self.path("data")
        );
        let config = self.write("engine.toml", &text);
        self.start("svrest", &["engine", &config])
    }

    fn mac(&self, namespace: &str, interface: &str) -> String {
        let shown = self
            .namespaces
            .ip(namespace, &["-j", "link", "show", "dev", interface]);
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        shown[0]["address"].as_str().expect("an address").to_owned()
    }

    /// The host sends so many datagrams, to ports of their own.
    fn send(&self, count: u64) {
        let script = format!("for k in $(seq {count}); do printf x > /dev/udp/10.1.0.1/$k; done");
        let mut sent = self.namespaces.command("svhost", "bash");
        assert!(sent.args(["-c", &script]).status().expect("bash").success());
    }

    fn view(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = self.namespaces.command("svrest", STATEPLANE);
        command.args(["view", "--json"]).args(arguments);
        command.output().expect("it runs")
    }

    /// Waits until the engine has this count in view of the present start, in the first array.
    fn has_in_view(&self, count: u64) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = self.view(&["read", ARRAYS[0], "--fresh"]);
            let text: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let values: Vec<u64> = text["values"]
                .as_array()
                .map(|values| values.iter().filter_map(Value::as_u64).collect())
                .unwrap_or_default();
            let greater = values
                .chunks_exact(2)
                .map(|copies| copies[0].max(copies[1]));
            if output.status.success() && greater.sum::<u64>() == count {
                return;
            }
            let failed = format!("{count}: {text} {}", errors(&output));
            assert!(Instant::now() < deadline, "{failed}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until all arrays have this count, merged.
    fn counts(&self, count: u64) -> Said {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = self.view(&["snapshots", "sketch"]);
            let text: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let failed = format!("{count}: {text} {}", errors(&output));
            if output.status.success() {
                let snapshots = text["snapshots"].as_array().expect("snapshots");
                let said = Said {
                    merged: sums(&text["merged"]),
                    stored: snapshots.iter().map(|it| sums(&it["values"])[0]).sum(),
                    views: text["views"].as_array().expect("views").len(),
                    text,
                };
                assert!(said.merged.iter().all(|it| *it <= count), "{failed}");
                if said.merged == [count; ARRAYS.len()] {
                    return said;
                }
            }
            assert!(Instant::now() < deadline, "{failed}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn what_was_in_view_counts_until_a_snapshot_has_it() {
    if let Some(why) = missing(&["ip", "bash"]) {
        eprintln!("skipped: {why}");
        return;
    }
    let network = Network::new();
    let program = network.program();
    let _store = network.store();
    let mut switch = network.switch(&program);
    let _engine = network.engine();
    network.send(40);
    let mut sent = 40;
    let deadline = Instant::now() + PATIENCE;
    while network.counts(sent).stored < sent {
        assert!(Instant::now() < deadline, "no snapshot is complete");
        std::thread::sleep(Duration::from_millis(20));
    }

    // The switch starts anew with packets that no snapshot has, and nobody asked for the arrays meanwhile; it is
    // tried again if a snapshot was just being made.
    let (mut starts, mut since) = (1, sent);
    loop {
        network.send(10);
        (sent, since) = (sent + 10, since + 10);
        network.has_in_view(since);
        drop(switch);
        switch = network.switch(&program);
        starts += 1;
        since = 0;
        network.has_in_view(since);
        let said = network.counts(sent);
        assert_eq!(said.views, starts, "{}", said.text);
        if said.stored < sent {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "no packet came between two snapshots"
        );
    }

    // The next start counts from 0, what died before it stays, and a dead switch is told as it was.
    network.send(7);
    sent += 7;
    network.has_in_view(7);
    drop(switch);
    let said = network.counts(sent);
    assert_eq!(said.views, starts);
    let views = said.text["views"].as_array().expect("views");
    let promises = |view: &Value| view["promises"].as_array().map(Vec::len);
    assert!(
        views
            .iter()
            .all(|view| promises(view) == Some(ARRAYS.len()))
    );

    // Copies are the program's own.
    let changes: [&[&str]; 2] = [&["write", "first_row", "3=5"], &["fill", "second_row", "0"]];
    for change in changes {
        let output = network.view(change);
        let said = errors(&output);
        assert!(
            !output.status.success() && said.contains("SYNC037"),
            "{said}"
        );
    }
}
