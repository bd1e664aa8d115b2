//! `stateplane engine` and a switch that counts packets, in network namespaces.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::namespaces::Namespaces;
use support::python::{SYNC_PACKAGES, environment, script, sync_wheel, without_python};
use support::{Running, STATEPLANE, errors, missing, repository};

/// Sources of packets: 10.0.8.100 and those behind it.
const SOURCES: u64 = 20;

/// Time for a view to become exact, which it does in ms unless the machine does not let it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time after which an engine tells that a switch is silent, and some more.
const SILENT: Duration = Duration::from_millis(4_000);

/// Time after which one of several engines takes another's place.
const DETECTION: Duration = Duration::from_millis(1_000);

/// A switch with a host at port 0 and an engine's machine at port 500.
struct Network {
    namespaces: Namespaces,
    /// Prefix of the names of its namespaces.
    name: &'static str,
    folder: tempfile::TempDir,
}

impl Network {
    fn new(name: &'static str) -> Network {
        let [switch, host, engine] = &["switch", "host", "engine"].map(|of| format!("{name}{of}"));
        let namespaces = Namespaces::new(&[switch, host, engine]);
        namespaces.link((switch, "p0"), (host, "eth0"));
        namespaces.link((switch, "p500"), (engine, "eth0"));
        let neighbour = |name: &str, address: &str| {
            let mac = ["lladdr", "02:00:00:00:00:01", "dev", "eth0"];
            namespaces.ip(name, &[&["neigh", "add", address], &mac[..]].concat());
        };
        namespaces.ip(engine, &["address", "add", "10.0.9.9/24", "dev", "eth0"]);
        namespaces.ip(host, &["address", "add", "10.0.8.8/24", "dev", "eth0"]);
        neighbour(host, "10.0.8.1");
        for source in 0..SOURCES {
            let address = format!("10.0.8.{}", 100 + source);
            let with_length = format!("{address}/24");
            namespaces.ip(host, &["address", "add", &with_length, "dev", "eth0"]);
            let to = format!("10.1.0.{source}/32");
            let route = ["route", "add", &to, "via", "10.0.8.1", "src", &address];
            namespaces.ip(host, &route);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let network = Network {
            namespaces,
            name,
            folder,
        };
        // The switch would count that the port of an engine that was killed is closed.
        network.filter("chain o { type filter hook output priority 0; ip protocol icmp drop; }");
        network
    }

    /// Lets these chains judge the packets of the engine's machine.
    fn filter(&self, chains: &str) {
        let rules = format!("flush ruleset\ntable ip chosen {{\n{chains}\n}}\n");
        let rules = self.write("rules.nft", &rules);
        let mut nft = self.command("engine", "nft");
        assert!(nft.args(["-f", &rules]).status().expect("nft").success());
    }

    /// `program`, to be run at a machine of the network.
    fn command(&self, machine: &str, program: &str) -> std::process::Command {
        let namespace = format!("{}{machine}", self.name);
        self.namespaces.command(&namespace, program)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a path").to_owned()
    }

    /// `stateplane` in a namespace, once it is ready.
    fn start(&self, name: &str, arguments: &[&str]) -> Running {
        let mut command = self.command(name, STATEPLANE);
        command
            .args(arguments)
            .current_dir(repository())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(self.log(name));
        let mut running = Running::start(&mut command);
        let said = running.child().stdout.take().expect("its output");
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n", "{arguments:?}");
        running
    }

    /// The file of what processes in `node` write to standard error.
    fn log(&self, node: &str) -> std::fs::File {
        let path = self.folder.path().join(format!("{node}.log"));
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(path);
        file.expect("a file")
    }

    /// Waits until the engine's log has `line`.
    fn wait_for_log(&self, line: &str) {
        let path = self.folder.path().join("engine.log");
        let start = Instant::now();
        loop {
            let log = std::fs::read_to_string(&path).expect("a log");
            if log.contains(line) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{line}:\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn switch(&self) -> Running {
        self.switch_with(&[])
    }

    fn switch_with(&self, more: &[&str]) -> Running {
        self.switch_that("unsealed_writes = true\n", more)
    }

    /// A switch whose section `[sync]` has these lines, too.
    fn switch_that(&self, lines: &str, more: &[&str]) -> Running {
        let text =
            "[sync]\nswitch = 1\naddress = \"10.0.9.1\"\ngroups = [{ group = 0, coarsest = 0 }]\n";
        let config = self.write("switch.toml", &format!("{text}{lines}"));
        let program = Path::new("apps/packet-counter/packet_counter.p4");
        let program = program.to_str().expect("a path");
        let options = ["-D", "PACKET_COUNTER_LOCATIONS=1024", "--config", &config];
        let ports = ["--port", "0=packet:p0", "--port", "500=packet:p500"];
        self.start(
            "switch",
            &[&["run", program], &options[..], &ports, more].concat(),
        )
    }

    fn engine(&self) -> Running {
        self.engine_in("data", &[])
    }

    /// An engine whose log is in this folder.
    fn engine_in(&self, folder: &str, more: &[&str]) -> Running {
        let data = self.folder.path().join(folder);
        let text = format!("data = \"{}\"\n", data.display());
        let redis = "[redis]\nurl = \"redis://127.0.0.1:6390\"\ninterval_ms = 10\n";
        self.engine_with("engine.toml", 0, (&text, redis), more)
    }

    /// One of several engines that share an etcd.
    fn candidate(&self, number: u16) -> Running {
        let etcd = format!(
            "[etcd]\nendpoints = [\"http://127.0.0.1:2379\"]\ndetection_ms = {}\n",
            DETECTION.as_millis()
        );
        self.engine_with(&format!("engine{number}.toml"), number, ("", &etcd), &[])
    }

    /// An engine whose ports are behind those of the first by `number`.
    fn engine_with(
        &self,
        name: &str,
        number: u16,
        (head, tail): (&str, &str),
        more: &[&str],
    ) -> Running {
        let shown: Vec<u64> = (0..SOURCES).map(location).collect();
        let group = |name: &str, number: u32| {
            format!(
                "[[group]]\nname = \"{name}\"\nswitch = \"10.0.9.1\"\ngroup = {number}\n\
                 locations = 1024\nretry_us = 3000\nmetrics = {shown:?}\ncounter_bits = {}\n",
                32 << number
            )
        };
        let (rpc, metrics) = (9560 + number, format!("127.0.0.1:{}", 9100 + number));
        let head = format!("listen = \"10.0.9.9\"\n{head}rpc = \"127.0.0.1:{rpc}\"\n");
        let text = head + &group("packets", 0) + &group("bytes", 1) + tail;
        let config = self.write(name, &text);
        let arguments = ["engine", &config, "--metrics", &metrics];
        self.start("engine", &[&arguments, more].concat())
    }

    /// An etcd of one member at the engine's machine.
    fn etcd(&self) -> Running {
        let mut command = self.command("engine", "etcd");
        let arch = std::env::consts::ARCH.replace("aarch64", "arm64");
        command
            .args(["--data-dir", "etcd-data", "--log-level", "error"])
            .env("ETCD_UNSUPPORTED_ARCH", arch)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(self.log("etcd"));
        Running::start(&mut command)
    }

    /// A file of keys for the end `own`, whose only peer is `peer` at this address.
    fn keys(&self, own: u32, peer: u32, address: &str, key: &str) -> String {
        let key = format!("00{}", key.repeat(31));
        let text = format!(
            "id = {own}\n[[peer]]\nid = {peer}\naddress = \"{address}\"\n\
             keys = [{{ id = 1, hex = \"{key}\" }}]\n"
        );
        let path = self.write(&format!("keys-{own}-{key}.toml"), &text);
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, private).expect("it is ours");
        path
    }

    /// `stateplane view` at the engine's machine.
    fn view(&self, arguments: &[&str]) -> Output {
        let mut command = self.command("engine", STATEPLANE);
        command.args(["view", "--json"]).args(arguments);
        command.output().expect("it runs")
    }

    /// Its output, line by line.
    fn said(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.view(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            errors(&output)
        );
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("JSON")
    }

    /// The refusal: exit code and code.
    fn refused(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.view(arguments);
        let (_, rest) = {
            let text = errors(&output);
            let parts = text.split_once("error[");
            parts.map_or((String::new(), text.clone()), |(a, b)| (a.into(), b.into()))
        };
        let code = rest.split(']').next().unwrap_or_default().to_owned();
        (output.status.code().expect("an exit code"), code)
    }

    /// Values that are exact, of a moment after this call.
    fn exact(&self, group: &str) -> Vec<u64> {
        let answer = self.said(&["read", group, "--fresh", "--bound", "0", "--timeout", "60"]);
        numbers(&answer[0]["values"])
    }

    /// Each source sends `count` datagrams of a byte.
    fn send(&self, count: u64) {
        let last = SOURCES - 1;
        let script = format!(
            "for i in $(seq {count}); do for k in $(seq 0 {last}); do \
             printf x > /dev/udp/10.1.0.$k/9; done; done"
        );
        let sent = self.command("host", "bash");
        let sent = { sent }.args(["-c", &script]).status();
        assert!(sent.expect("bash").success());
    }

    /// Loses some of the messages between switch and engine, both ways.
    fn lose(&self, percent: u32) {
        self.filter(&format!(
            "chain i {{ type filter hook input priority 0; \
             udp sport 4798 numgen random mod 100 < {percent} drop; }}\n\
             chain o {{ type filter hook output priority 0; ip protocol icmp drop; \
             udp dport 4798 numgen random mod 100 < {percent} drop; }}"
        ));
    }

    /// A Redis server that keeps nothing on disk, at port 6390 of the engine's machine.
    fn redis(&self) -> Running {
        let mut command = self.command("engine", "redis-server");
        command.args(["--port", "6390", "--save", "", "--appendonly", "no"]);
        command
            .current_dir(self.folder.path())
            .stdout(Stdio::null());
        Running::start(&mut command)
    }

    /// Output of `redis-cli`.
    fn asked(&self, arguments: &[&str]) -> String {
        let mut command = self.command("engine", "redis-cli");
        let output = command.args(["-p", "6390"]).args(arguments).output();
        let text = output.expect("redis-cli").stdout;
        String::from_utf8_lossy(&text).trim_end().to_owned()
    }

    /// Waits until `redis-cli` prints this.
    fn answers(&self, arguments: &[&str], expected: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = self.asked(arguments);
            if said == expected {
                return;
            }
            let late = Instant::now() > deadline;
            assert!(!late, "{arguments:?}: {said} instead of {expected}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn metrics(&self) -> String {
        self.metrics_of(0)
    }

    /// Metrics of an engine by its number.
    fn metrics_of(&self, number: u16) -> String {
        let script = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{}; \
             printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3",
            9100 + number
        );
        let mut asked = self.command("engine", "bash");
        let output = asked.args(["-c", &script]).output().expect("bash");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until an engine leads; gives the time that it took.
    fn leads(&self, number: u16) -> Duration {
        let start = Instant::now();
        while Network::metric(&self.metrics_of(number), "stateplane_sync_leads{}") != Some(1) {
            assert!(start.elapsed() < PATIENCE, "{number} does not lead");
            std::thread::sleep(Duration::from_millis(5));
        }
        start.elapsed()
    }

    /// The metric with this name and these labels.
    fn metric(text: &str, series: &str) -> Option<u64> {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
    }

    /// Waits until each source has this count in the view, and it is told that all is exact.
    fn settles_at(&self, count: u64) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = self.metrics();
            let value = |group: &str, source: u64| {
                let at = location(source);
                let labels = format!("{{group=\"{group}\",location=\"{at}\"}}");
                Network::metric(&text, &format!("stateplane_sync_value{labels}"))
            };
            let bound = Network::metric(&text, "stateplane_sync_bound{group=\"packets\"}");
            // 20 bytes of IPv4, 8 of UDP, one of payload.
            let all = (0..SOURCES).all(|source| {
                value("packets", source) == Some(count)
                    && value("bytes", source) == Some(29 * count)
            });
            if all && bound == Some(0) {
                return;
            }
            assert!(Instant::now() < deadline, "not {count} of each:\n{text}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn numbers(values: &Value) -> Vec<u64> {
    let values = values.as_array().expect("an array");
    values.iter().filter_map(Value::as_u64).collect()
}

/// The location of a source: the low bits of its address.
fn location(source: u64) -> u64 {
    (8 << 8 | (100 + source)) % 1024
}

fn skipped() -> bool {
    let missing = missing(&["ip", "nft", "bash"]);
    if let Some(why) = &missing {
        eprintln!("skipped: {why}");
    }
    missing.is_some()
}

#[test]
fn the_view_follows_a_switch_with_several_workers() {
    if skipped() {
        return;
    }
    let network = Network::new("vw");
    let _switch = network.switch_with(&["--workers", "2"]);
    let _engine = network.engine();
    network.send(20);
    network.settles_at(20);
    network.lose(30);
    network.send(20);
    network.settles_at(40);
}

#[test]
fn the_view_follows_the_registers_under_loss_and_over_restarts() {
    if skipped() {
        return;
    }
    let network = Network::new("v");
    let mut switch = network.switch();
    let mut engine = network.engine();
    network.send(5);
    network.settles_at(5);
    network.lose(30);
    network.send(10);
    network.settles_at(15);
    let text = network.metrics();
    let repairs = Network::metric(&text, "stateplane_sync_repaired_total{group=\"packets\"}");
    assert!(repairs > Some(0), "nothing was lost:\n{text}");
    let term = |text: &str| Network::metric(text, "stateplane_sync_term{}").expect("a term");
    let first = term(&text);

    // A later engine has a greater term, and finds all that the switch counts.
    engine.signal("KILL");
    engine.child().wait().expect("its end");
    let mut engine = network.engine();
    network.send(1);
    network.settles_at(16);
    assert!(term(&network.metrics()) > first);

    // A switch that starts anew counts anew, and so does the view; the log tells both.
    switch.signal("KILL");
    switch.child().wait().expect("its end");
    std::thread::sleep(SILENT);
    let _switch = network.switch();
    network.send(2);
    network.settles_at(2);
    for line in [
        "the view is complete group=\"packets\"",
        "the switch is silent: the view ages group=\"packets\"",
        "the switch is back group=\"bytes\"",
        "the switch started anew; so does the view group=\"bytes\"",
    ] {
        network.wait_for_log(line);
    }
    engine.signal("TERM");
    let ended = engine.finish(PATIENCE);
    assert!(ended.status.success());
}

#[test]
fn clients_read_write_cut_and_watch_over_restarts_of_the_engine() {
    if skipped() {
        return;
    }
    let network = Network::new("c");
    let mut switch = network.switch();
    let mut engine = network.engine();
    network.send(3);
    let mut expected = vec![0; 1024];
    for source in 0..SOURCES {
        expected[location(source) as usize] = 3;
    }
    assert_eq!(network.exact("packets"), expected);

    // Writes at once, of more than a message, added, conditional, and by id.
    network.said(&["write", "packets", "0=7", "1=8"]);
    let many: Vec<String> = (200..240).map(|at| format!("{at}={at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let pieces = network.said(&[&["write", "packets"], &many[..]].concat());
    assert_eq!(pieces[0]["pieces"], 1);
    let adds: Vec<String> = (200..240).map(|at| format!("{at}=1")).collect();
    let adds: Vec<&str> = adds.iter().map(String::as_str).collect();
    let pieces = network.said(&[&["write", "packets", "--add"], &adds[..]].concat());
    assert_eq!(pieces[0]["pieces"], 3);
    network.said(&["write", "packets", "1=4294967295", "--add"]);
    network.said(&["write", "packets", "0=9", "--if", "7"]);
    let mismatch = network.view(&["write", "packets", "0=1", "--if", "7"]);
    assert_eq!(mismatch.status.code(), Some(5));
    let id = "0123456789abcdef0123456789abcdef";
    let once = ["write", "packets", "2=5", "--add", "--id", id];
    for pieces in [1, 0] {
        assert_eq!(network.said(&once)[0]["pieces"], pieces);
    }
    (expected[0], expected[1], expected[2]) = (9, 7, 5);
    (200..240).for_each(|at| expected[at] = at as u64 + 1);
    assert_eq!(network.exact("packets"), expected);

    // An engine that was killed has windows and outcomes.
    let kept = network.said(&["cut", "packets", "--keep"]);
    assert_eq!(kept[0]["number"], 1);
    assert_eq!(numbers(&kept[0]["values"]), expected);
    engine.signal("KILL");
    engine.child().wait().expect("its end");
    let mut engine = network.engine();
    assert_eq!(network.exact("packets"), expected);
    let windows = ["windows", "packets", "--count", "1"];
    assert_eq!(network.said(&windows), kept);
    assert_eq!(network.said(&once)[0]["pieces"], 0);
    assert_eq!(network.exact("packets"), expected);

    // A filled cut has all begin anew; its window is not kept unless that is asked for.
    let filled = network.said(&["cut", "packets", "--fill", "6"]);
    assert_eq!(filled[0]["number"], 0);
    assert_eq!(numbers(&filled[0]["values"]), expected);
    assert_eq!(network.exact("packets"), vec![6; 1024]);
    network.said(&["fill", "bytes", "0"]);
    assert_eq!(network.exact("bytes"), vec![0; 1024]);
    engine.signal("TERM");
    engine.child().wait().expect("its end");
    let _engine = network.engine();
    assert_eq!(network.exact("packets"), vec![6; 1024]);
    network.said(&["cut", "packets", "--keep"]);
    let next = network.said(&["windows", "packets", "--after", "1", "--count", "1"]);
    assert_eq!(next[0]["number"], 2);
    assert_eq!(numbers(&next[0]["values"]), vec![6; 1024]);

    for (wrong, code) in [
        (&["read", "colour"][..], (2, "SYNC020")),
        (&["read", "packets", "1024"], (2, "SYNC012")),
        (&["watch", "packets", "1024"], (2, "SYNC012")),
        (&["write", "packets", "1024=1"], (2, "SYNC012")),
    ] {
        assert_eq!(
            network.refused(wrong),
            (code.0, code.1.to_owned()),
            "{wrong:?}"
        );
    }
    watch(&network, &mut switch);
}

#[test]
fn ports_are_down_while_no_engine_polls() {
    if skipped() {
        return;
    }
    let network = Network::new("d");
    let mut engine = network.engine();
    let watch = "unsealed_writes = true\n[[watches]]\nregister = \"sync_polled_at\"\n\
                 max_age_ms = 500\nports = [0]\n";
    let _switch = network.switch_that(watch, &[]);
    let becomes = |is_up: bool| {
        let start = Instant::now();
        loop {
            let mut ip = network.command("host", "ip");
            let said = ip.args(["link", "show", "eth0"]).output().expect("ip");
            let link = String::from_utf8_lossy(&said.stdout).into_owned();
            if link.contains("LOWER_UP") == is_up {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{is_up}: {link}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    becomes(true);
    for _ in 0..2 {
        engine.signal("STOP");
        becomes(false);
        engine.signal("CONT");
        becomes(true);
    }
}

#[test]
fn totals_go_on_over_resets_and_restarts() {
    if skipped() {
        return;
    }
    let network = Network::new("t");
    let mut switch = network.switch();
    let mut engine = network.engine();
    let totals = |group: &str| {
        network.exact(group);
        let said = network.said(&["totals", group, "--fresh"]);
        let breaks = numbers(&said[0]["discontinuities"]);
        (numbers(&said[0]["totals"]), breaks)
    };
    // Each source, and nobody else, has sent so many packets; of which locations are the discontinuities?
    let counted = |count: u64, breaks: &[usize]| {
        let (totals, found) = totals("packets");
        for (at, total) in totals.into_iter().enumerate() {
            let has_sent = (0..SOURCES).any(|source| location(source) as usize == at);
            let expected = if has_sent { count } else { 0 };
            assert_eq!(total, expected, "location {at}");
        }
        let found = found
            .into_iter()
            .enumerate()
            .filter(|(_, breaks)| *breaks > 0);
        assert_eq!(found.map(|(at, _)| at).collect::<Vec<_>>(), breaks);
    };
    network.send(3);
    counted(3, &[]);
    // A reset whose window is fetched loses nothing; a kept one as little.
    network.said(&["cut", "packets", "--fill", "0"]);
    network.send(2);
    counted(5, &[]);
    network.said(&["cut", "packets", "--fill", "4294967295", "--keep"]);
    network.send(2);
    counted(7, &[]);
    let (first, metrics) = (location(0), network.metrics());
    for (series, expected) in [("counted_total", 7), ("discontinuity", 0)] {
        let series = format!("stateplane_sync_{series}{{group=\"packets\",location=\"{first}\"}}");
        assert_eq!(
            Network::metric(&metrics, &series),
            Some(expected),
            "{series}"
        );
    }
    // A killed engine goes on from what it kept, though it counted since.
    engine.signal("KILL");
    engine.child().wait().expect("its end");
    network.send(1);
    let mut engine = network.engine();
    let restarted = |count: u64| {
        let (totals, breaks) = totals("packets");
        let first = location(0) as usize;
        assert!(totals[first] <= count, "{} of {count}", totals[first]);
        (totals[first], breaks[first])
    };
    let (before, breaks) = restarted(8);
    network.send(1);
    assert_eq!(restarted(9), (before + 1, breaks));
    // One that ends in order has all.
    engine.signal("TERM");
    engine.child().wait().expect("its end");
    network.send(1);
    let _engine = network.engine();
    assert_eq!(restarted(10), (before + 2, breaks));
    // A value that is written is no count, and counts of a switch that died unseen are lacking.
    network.said(&["write", "packets", "1=77"]);
    let (all, found) = totals("packets");
    assert_eq!(all[1], 0);
    assert_ne!(found[1], found[2]);
    switch.signal("KILL");
    switch.child().wait().expect("its end");
    let _switch = network.switch();
    network.send(1);
    // The view of the next start may have begun before the packet.
    let (total, told) = restarted(11);
    assert!(
        (before + 2..=before + 3).contains(&total),
        "{total}, {before}"
    );
    assert_ne!(told, breaks);
    network.send(1);
    assert_eq!(restarted(12), (total + 1, told));
}

/// A watcher is told of changes, and of a view that is too old.
fn watch(network: &Network, switch: &mut Running) {
    let mut command = network.command("engine", STATEPLANE);
    let place = location(0).to_string();
    let limits = ["--max-age", "1000000", "--interval", "1", "--count", "3"];
    command
        .args(["view", "--json", "watch", "packets", &place])
        .args(limits)
        .stdout(Stdio::piped());
    let mut watcher = Running::start(&mut command);
    let mut lines = BufReader::new(watcher.child().stdout.take().expect("its output")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("a notification").expect("text");
        serde_json::from_str(&line).expect("JSON")
    };
    let first = next();
    assert_eq!((&first["all"], &first["met"]), (&true.into(), &true.into()));
    let pair = |value: u64| serde_json::json!([[location(0), value]]);
    assert_eq!(first["values"], pair(6));
    network.send(1);
    let changed = next();
    assert_eq!(
        (&changed["all"], &changed["values"]),
        (&false.into(), &pair(7))
    );
    switch.signal("STOP");
    let unmet = next();
    assert_eq!(
        (&unmet["met"], &unmet["values"]),
        (&false.into(), &Value::Array(vec![]))
    );
    let fresh = ["read", "packets", "--fresh", "--timeout", "0.3"];
    assert_eq!(network.refused(&fresh), (4, "SYNC022".to_owned()));
    switch.signal("CONT");
    let met = network.exact("packets");
    assert_eq!(met[location(0) as usize], 7);
}

/// At a control port that is not sealed views are read, and writes and cuts are refused.
#[test]
fn a_switch_that_is_not_sealed_is_read_only_unless_its_file_allows_writes() {
    if skipped() {
        return;
    }
    let network = Network::new("ro");
    let mut switch = network.switch_that("", &[]);
    let _engine = network.engine();
    network.send(3);
    network.settles_at(3);
    let refusal = (4, "SYNC014".to_owned());
    for change in [
        &["write", "packets", "0=7"][..],
        &["write", "packets", "--add", "0=7"],
        &["fill", "packets", "0"],
        &["cut", "packets"],
    ] {
        assert_eq!(network.refused(change), refusal, "{change:?}");
    }
    network.settles_at(3);

    // The same switch, allowed to.
    switch.signal("TERM");
    switch.finish(PATIENCE);
    let _switch = network.switch();
    network.send(2);
    network.settles_at(2);
    network.said(&["write", "packets", "0=7"]);
    assert_eq!(network.exact("packets")[0], 7);
}

/// With keys an engine reads and writes; one without, or with another key, is not heard, and the
/// switch does not take its term for one that is in force.
#[test]
fn sealed_switches_hear_engines_with_their_key_alone() {
    if skipped() {
        return;
    }
    let network = Network::new("k");
    let keys = network.keys(1, 2, "10.0.9.9", "3c");
    let _switch = network.switch_that("", &["--keys", &keys, "--sealed-port", "500"]);
    let engine_keys = network.keys(2, 1, "10.0.9.1", "3c");
    let mut engine = network.engine_in("data", &["--keys", &engine_keys]);
    network.send(3);
    network.settles_at(3);
    network.said(&["write", "packets", "0=7"]);
    assert_eq!(network.exact("packets")[0], 7);
    let window = network.said(&["cut", "packets", "--keep"]);
    assert_eq!(
        numbers(&window[0]["values"])[0],
        7,
        "a sealed packet has room"
    );
    let opened = |text: &str| {
        let series = "stateplane_sealed_messages_total{event=\"opened\"}";
        Network::metric(text, series).expect("a count")
    };
    assert!(opened(&network.metrics()) > 0);
    engine.signal("KILL");
    engine.child().wait().expect("its end");

    let other_keys = network.keys(2, 1, "10.0.9.1", "4d");
    for (folder, stranger) in [("no-key", &[][..]), ("other-key", &["--keys", &other_keys])] {
        let mut engine = network.engine_in(folder, stranger);
        let fresh = ["read", "packets", "--fresh", "--timeout", "0.5"];
        assert_eq!(
            network.refused(&fresh),
            (4, "SYNC021".to_owned()),
            "{folder}"
        );
        let write = ["write", "packets", "0=9", "--timeout", "0.5"];
        assert_eq!(network.view(&write).status.code(), Some(4), "{folder}");
        engine.signal("KILL");
        engine.child().wait().expect("its end");
    }
    let _engine = network.engine_in("data", &["--keys", &engine_keys]);
    assert_eq!(network.exact("packets")[0], 7);
}

#[test]
fn redis_has_copies_of_views_and_windows_over_restarts() {
    if skipped() {
        return;
    }
    if let Some(why) = missing(&["redis-server", "redis-cli"]) {
        return eprintln!("skipped: {why}");
    }
    let network = Network::new("r");
    let mut switch = network.switch();
    let mut engine = network.engine();
    let mut redis = network.redis();
    // Printable bytes: 0x41 is `A`, and the values of locations 0 and 1 are `A` and `B`.
    network.exact("packets");
    network.said(&["write", "packets", "0=65", "1=66"]);
    let value = ["GETRANGE", "stateplane:packets:values", "0", "0"];
    network.answers(&value, "A");
    let second = ["GETRANGE", "stateplane:packets:values", "8", "8"];
    network.answers(&second, "B");
    network.answers(&["STRLEN", "stateplane:packets:values"], "8192");
    let bound = ["HGET", "stateplane:packets:told", "bound"];
    network.answers(&bound, "0");
    network.said(&["cut", "packets", "--keep"]);
    let windows = ["XLEN", "stateplane:packets:windows"];
    network.answers(&windows, "1");
    let text = network.metrics();
    let series = "stateplane_sync_redis_copies_total{event=\"window\"}";
    assert_eq!(Network::metric(&text, series), Some(1), "{text}");

    // A server that died costs the engine nothing, and gets all anew.
    redis.signal("KILL");
    redis.child().wait().expect("its end");
    network.wait_for_log("copies go to the Redis server");
    network.wait_for_log("the Redis server does not answer");
    network.said(&["write", "packets", "0=67"]);
    network.said(&["cut", "packets", "--keep"]);
    let _redis = network.redis();
    network.answers(&value, "C");
    network.answers(&windows, "2");
    let first = [
        "XRANGE",
        "stateplane:packets:windows",
        "-",
        "+",
        "COUNT",
        "1",
    ];
    assert!(network.asked(&first).starts_with("1-0\nincarnation\n"));

    // A restarted engine adds no window twice, and its term is the greater one.
    let term = ["HGET", "stateplane:packets:told", "term"];
    let before = network.asked(&term);
    engine.signal("TERM");
    assert!(engine.finish(PATIENCE).status.success());
    let mut engine = network.engine();
    network.exact("packets");
    network.said(&["cut", "packets", "--keep"]);
    network.answers(&windows, "3");
    assert!(network.asked(&term) > before);
    // An engine that was thought dead is refused.
    network.asked(&[
        "HSET",
        "stateplane:packets:told",
        "term",
        "99999999999999999999",
    ]);
    network.said(&["write", "packets", "0=68"]);
    network.exact("packets");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(network.asked(&value), "C");
    network.asked(&["DEL", "stateplane:packets:told"]);
    network.answers(&value, "D");

    // Nobody takes the values of a view that is incomplete for a view.
    switch.signal("KILL");
    switch.child().wait().expect("its end");
    engine.signal("KILL");
    engine.child().wait().expect("its end");
    let _engine = network.engine();
    network.answers(&["HGET", "stateplane:packets:told", "complete"], "0");
    network.answers(&["EXISTS", "stateplane:packets:values"], "0");
}

/// The option that names both of two engines.
const BOTH: [&str; 2] = ["--engine", "127.0.0.1:9560,127.0.0.1:9561"];

#[test]
fn engines_stand_by_and_the_next_goes_on_where_the_last_was_killed() {
    if skipped() {
        return;
    }
    if let Some(why) = missing(&["etcd"]) {
        return eprintln!("skipped: {why} (Debian: etcd-server)");
    }
    let network = Network::new("s");
    let _switch = network.switch();
    let _etcd = network.etcd();
    let mut engines = vec![network.candidate(0)];
    network.leads(0);
    engines.push(network.candidate(1));
    network.wait_for_log("this engine stands by");
    let other = network.view(&["--engine", "127.0.0.1:9561", "read", "packets"]);
    let said = errors(&other);
    assert_eq!(other.status.code(), Some(4), "{said}");
    assert!(
        said.contains("error[SYNC027]") && said.contains("127.0.0.1:9560"),
        "{said}"
    );
    let asked = |arguments: &[&str]| network.said(&[&BOTH[..], arguments].concat());
    let exact = || {
        let read = [
            "read",
            "packets",
            "--fresh",
            "--bound",
            "0",
            "--timeout",
            "60",
        ];
        numbers(&asked(&read)[0]["values"])
    };
    let mut expected = vec![0; 1024];
    let mut took = Vec::new();
    for (round, leader) in [(1, 0), (2, 1)] {
        network.send(3);
        for source in 0..SOURCES {
            expected[location(source) as usize] += 3;
        }
        let id = format!("{round:032x}");
        let add = ["write", "packets", "0=5", "--add", "--id", &id];
        assert_eq!(asked(&add)[0]["pieces"], 1);
        expected[0] += 5;
        assert_eq!(exact(), expected);
        assert_eq!(asked(&["cut", "packets", "--keep"])[0]["number"], round);
        // Its last act is to be killed.
        let killed = Instant::now();
        engines[usize::from(leader)].signal("KILL");
        network.leads(1 - leader);
        took.push(killed.elapsed());
        assert_eq!(exact(), expected, "the view is complete again");
        let after = (round - 1).to_string();
        let kept = asked(&["windows", "packets", "--after", &after, "--count", "1"]);
        assert_eq!(
            (&kept[0]["number"], numbers(&kept[0]["values"])),
            (&round.into(), expected.clone())
        );
        assert_eq!(asked(&add)[0]["pieces"], 0, "it was done before");
        assert_eq!(exact(), expected);
        engines[usize::from(leader)] = network.candidate(leader);
    }
    println!("the next one led {took:?} after the kill");
    let least = took.iter().min().expect("two");
    assert!(*least <= DETECTION + Duration::from_millis(500), "{took:?}");

    // One that stands still beyond its lease finds the other, and acts no more.
    engines[0].signal("STOP");
    network.leads(1);
    let follow = ["windows", "packets", "--after", "2", "--count", "1"];
    asked(&["cut", "packets", "--keep", "--timeout", "20"]);
    engines[0].signal("CONT");
    network.wait_for_log("this engine leads no more");
    assert_eq!(asked(&follow)[0]["number"], 3);
    let text = network.metrics_of(1);
    let fenced = "stateplane_sync_fenced{group=\"packets\"}";
    assert_eq!(Network::metric(&text, fenced), Some(0), "{text}");
    assert_eq!(exact(), expected);
    // One that ends in order is followed at once.
    let ended = Instant::now();
    let mut last = engines.pop().expect("the second");
    last.signal("TERM");
    assert!(last.finish(PATIENCE).status.success());
    network.leads(0);
    println!(
        "the next one led {:?} after the end in order",
        ended.elapsed()
    );
    assert_eq!(exact(), expected);
    assert_eq!(asked(&["cut", "packets", "--keep"])[0]["number"], 4);
}

#[test]
fn the_python_package_is_built_as_a_wheel_and_used() {
    if skipped() {
        return;
    }
    let python = match environment("stateplane-sync", &SYNC_PACKAGES) {
        Ok(python) => python,
        Err(reason) => return without_python("the Python package of sync", &reason),
    };
    let network = Network::new("p");
    let _switch = network.switch();
    let _engine = network.engine();
    let site = sync_wheel(&python, network.folder.path());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sync");
    let run = |name: &str| {
        let mut command = network.command("engine", python.to_str().expect("a path"));
        command.arg(scripts.join(name)).env("PYTHONPATH", &site);
        command
    };
    script(&mut run("client.py"), "all of it");
    // The applications' collectors, on what the client has written.
    let mut collectors = run("collectors.py");
    collectors.arg(repository()).arg("127.0.0.1:9560");
    script(&mut collectors, "all collectors");
}

#[test]
fn a_gnmi_client_gets_and_subscribes() {
    if skipped() {
        return;
    }
    let python = match environment("stateplane-sync", &SYNC_PACKAGES) {
        Ok(python) => python,
        Err(reason) => return without_python("gNMI by pygnmi", &reason),
    };
    let network = Network::new("g");
    let _switch = network.switch();
    let _engine = network.engine();
    network.exact("packets");
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sync/gnmi.py");
    let mut command = network.command("engine", python.to_str().expect("a path"));
    command.arg(client).arg(STATEPLANE);
    script(&mut command, "all of it");
}
