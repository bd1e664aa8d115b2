//! `stateplane engine` and a switch that counts packets, in network namespaces.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use support::namespaces::Namespaces;
use support::{Running, STATEPLANE, missing, repository};

/// Sources of packets: 10.0.8.100 and those behind it.
const SOURCES: u64 = 20;

/// Time for a view to become exact, which it does in ms unless the machine does not let it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A switch with a host at port 0 and an engine's machine at port 500.
struct Network {
    namespaces: Namespaces,
    folder: tempfile::TempDir,
}

impl Network {
    fn new() -> Network {
        let namespaces = Namespaces::new(&["switch", "host", "engine"]);
        namespaces.link(("switch", "p0"), ("host", "eth0"));
        namespaces.link(("switch", "p500"), ("engine", "eth0"));
        for name in ["host", "engine"] {
            let mac = if name == "host" { "08" } else { "09" };
            let mac = format!("02:00:00:00:00:{mac}");
            namespaces.ip(name, &["link", "set", "eth0", "address", &mac]);
            for protocol in ["4", "6"] {
                let file = format!("/proc/sys/net/ipv{protocol}/conf/all/forwarding");
                let quiet = format!("echo 0 > {file}");
                let run = namespaces.command(name, "sh").args(["-c", &quiet]).status();
                assert!(run.is_ok());
            }
        }
        let neighbour = |name: &str, address: &str| {
            let mac = ["lladdr", "02:00:00:00:00:01", "dev", "eth0"];
            namespaces.ip(name, &[&["neigh", "add", address], &mac[..]].concat());
        };
        namespaces.ip("engine", &["address", "add", "10.0.9.9/24", "dev", "eth0"]);
        neighbour("engine", "10.0.9.1");
        namespaces.ip("host", &["address", "add", "10.0.8.8/24", "dev", "eth0"]);
        neighbour("host", "10.0.8.1");
        for source in 0..SOURCES {
            let address = format!("10.0.8.{}", 100 + source);
            let with_length = format!("{address}/24");
            namespaces.ip("host", &["address", "add", &with_length, "dev", "eth0"]);
            let to = format!("10.1.0.{source}/32");
            let route = ["route", "add", &to, "via", "10.0.8.1", "src", &address];
            namespaces.ip("host", &route);
        }
        let folder = tempfile::tempdir().expect("a folder");
        Network { namespaces, folder }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a path").to_owned()
    }

    /// `stateplane` in a namespace, once it is ready.
    fn start(&self, name: &str, arguments: &[&str]) -> Running {
        let mut command = self.namespaces.command(name, STATEPLANE);
        command
            .args(arguments)
            .current_dir(repository())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut running = Running::start(&mut command);
        let said = running.child().stdout.take().expect("its output");
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n", "{arguments:?}");
        running
    }

    fn switch(&self) -> Running {
        let config = self.write(
            "switch.toml",
            "[sync]\nswitch = 1\naddress = \"10.0.9.1\"\ngroups = [{ group = 0, coarsest = 0 }]\n",
        );
        let program = Path::new("apps/packet-counter/packet_counter.p4");
        let program = program.to_str().expect("a path");
        let options = ["-D", "PACKET_COUNTER_LOCATIONS=1024", "--config", &config];
        let ports = ["--port", "0=packet:p0", "--port", "500=packet:p500"];
        self.start(
            "switch",
            &[&["run", program], &options[..], &ports].concat(),
        )
    }

    fn engine(&self) -> Running {
        let data = self.folder.path().join("data");
        let shown: Vec<u64> = (0..SOURCES).map(location).collect();
        let group = |name: &str, number: u32| {
            format!(
                "[[group]]\nname = \"{name}\"\nswitch = \"10.0.9.1\"\ngroup = {number}\n\
                 locations = 1024\nretry_us = 3000\nmetrics = {shown:?}\n"
            )
        };
        let head = format!("listen = \"10.0.9.9\"\ndata = \"{}\"\n", data.display());
        let text = head + &group("packets", 0) + &group("bytes", 1);
        let config = self.write("engine.toml", &text);
        self.start(
            "engine",
            &["engine", &config, "--metrics", "127.0.0.1:9100"],
        )
    }

    /// Each source sends `count` datagrams of a byte.
    fn send(&self, count: u64) {
        let last = SOURCES - 1;
        let script = format!(
            "for i in $(seq {count}); do for k in $(seq 0 {last}); do \
             printf x > /dev/udp/10.1.0.$k/9; done; done"
        );
        let sent = self.namespaces.command("host", "bash");
        let sent = { sent }.args(["-c", &script]).status();
        assert!(sent.expect("bash").success());
    }

    /// Loses some of the messages between switch and engine, both ways.
    fn lose(&self, percent: u32) {
        let rules = format!(
            "flush ruleset\ntable ip loss {{\n\
             chain i {{ type filter hook input priority 0; \
             udp sport 4798 numgen random mod 100 < {percent} drop; }}\n\
             chain o {{ type filter hook output priority 0; \
             udp dport 4798 numgen random mod 100 < {percent} drop; }}\n}}\n"
        );
        let rules = self.write("loss.nft", &rules);
        let mut nft = self.namespaces.command("engine", "nft");
        assert!(nft.args(["-f", &rules]).status().expect("nft").success());
    }

    fn metrics(&self) -> String {
        let script = "exec 3<>/dev/tcp/127.0.0.1/9100; \
                      printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3";
        let mut asked = self.namespaces.command("engine", "bash");
        let output = asked.args(["-c", script]).output().expect("bash");
        String::from_utf8_lossy(&output.stdout).into_owned()
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
fn the_view_follows_the_registers_under_loss_and_over_restarts() {
    if skipped() {
        return;
    }
    let network = Network::new();
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

    // A switch that starts anew counts anew, and so does the view.
    switch.signal("KILL");
    switch.child().wait().expect("its end");
    let _switch = network.switch();
    network.send(2);
    network.settles_at(2);
    engine.signal("TERM");
    let ended = engine.finish(PATIENCE);
    assert!(ended.status.success());
}
