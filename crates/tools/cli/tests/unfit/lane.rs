//! One network of switches and a store, in which cases run one after the other.

use crate::cases::{Case, Peer};
use crate::support::namespaces::Namespaces;
use crate::support::{Running, STATEPLANE, repository};
use crate::{PATIENCE, SOON, between};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Answers greetings as a server of version 1 of the replication message would.
const OTHER_VERSION: &str = r"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('10.10.0.11', 4793))
while True:
    asked, peer = s.recvfrom(2048)
    if asked[:4] == b'SPH1':
        setting = bytes([1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0])
        s.sendto(asked[:4] + bytes([2, 1, 3, 0]) + asked[8:24] + setting + b'old', peer)
";

/// Switches and a store on one network; its namespaces carry the lane's number.
pub struct Lane {
    pub net: Namespaces,
    number: usize,
    pub folder: tempfile::TempDir,
}

impl Lane {
    pub fn new(number: usize) -> Lane {
        let name = |of: &str| format!("{of}{number}");
        let [switch, other, store] = &["s", "o", "d"].map(name);
        let net = Namespaces::new(&[switch, other, store]);
        net.ip(
            store,
            &[
                "link",
                "add",
                "br0",
                "address",
                "02:00:00:00:0b:01",
                "type",
                "bridge",
            ],
        );
        for (of, port) in [(switch, "b0"), (other, "b1")] {
            for at in ["eth0", "eth1"] {
                let peer = format!("{of}{at}");
                net.link((of, at), (store, &peer));
            }
            net.link((of, "eth2"), (store, port));
            net.ip(store, &["link", "set", port, "master", "br0"]);
        }
        net.ip(store, &["link", "set", "br0", "up"]);
        for host in ["11", "12", "13", "20"] {
            net.ip(
                store,
                &[
                    "address",
                    "add",
                    &format!("10.10.0.{host}/24"),
                    "dev",
                    "br0",
                ],
            );
        }
        // Each interface answers for its own addresses alone.
        let own = "echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore";
        let mut shell = net.command(store, "sh");
        assert!(shell.args(["-c", own]).status().unwrap().success());
        // The controller is reached by the machine's own network.
        net.link((switch, "eth3"), (store, "b3"));
        net.ip(switch, &["address", "add", "10.9.0.1/24", "dev", "eth3"]);
        net.ip(store, &["address", "add", "10.9.0.2/24", "dev", "b3"]);
        net.ip(
            switch,
            &["route", "add", "10.10.0.20/32", "via", "10.9.0.2"],
        );
        let folder = tempfile::tempdir().unwrap();
        Lane {
            net,
            number,
            folder,
        }
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A file of keys of `own`, whose peer is `peer`.
    fn keys(&self, name: &str, own: (u32, &str), peer: (u32, &str), byte: &str) -> String {
        let text = format!(
            "id = {}\n[[peer]]\nid = {}\naddress = \"{}\"\nkeys = [{{ id = 1, hex = \"{}\" }}]\n",
            own.0,
            peer.0,
            peer.1,
            format!("{byte}5c").repeat(16)
        );
        let path = self.write(name, &text);
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path.display().to_string()
    }

    /// The name of the namespace `of` in this lane.
    pub fn full(&self, of: &str) -> String {
        format!("{of}{}", self.number)
    }

    /// The interface of a switch's port in the store's namespace.
    pub fn store_link(&self, state: &str) {
        self.net
            .ip(&format!("d{}", self.number), &["link", "set", "b0", state]);
    }

    /// Starts `arguments` in the namespace `of`, and returns it with the path of its log.
    pub fn start(&self, of: &str, log: &str, arguments: &[&str]) -> (Running, PathBuf) {
        self.start_program(of, log, STATEPLANE, arguments)
    }

    fn start_program(
        &self,
        of: &str,
        log: &str,
        program: &str,
        arguments: &[&str],
    ) -> (Running, PathBuf) {
        let path = self.folder.path().join(log);
        let file = fs::File::create(&path).unwrap();
        let mut command = self.net.command(&format!("{of}{}", self.number), program);
        command
            .args(arguments)
            .current_dir(repository())
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file);
        (Running::start(&mut command), path)
    }

    pub fn switch(
        &self,
        of: &str,
        log: &str,
        file: &Path,
        keys: Option<&str>,
    ) -> (Running, PathBuf) {
        let path = file.display().to_string();
        let mut arguments = vec!["run", "apps/counter/counter.p4", "--engine", "interp"];
        arguments.extend(["--port", "0=packet:eth0", "--port", "1=packet:eth1"]);
        arguments.extend(["--port", "2=packet:eth2", "--config", &path]);
        let keys =
            keys.map(|byte| self.keys("switch.keys", (1, "10.10.0.1"), (2, "10.10.0.11"), byte));
        if let Some(keys) = &keys {
            arguments.extend(["--keys", keys, "--sealed-port", "2"]);
        }
        self.start(of, log, &arguments)
    }

    /// True if the data port of the switch `of` is up.
    pub fn is_up(&self, of: &str) -> bool {
        let shown = self.net.ip(
            &format!("{of}{}", self.number),
            &["-o", "link", "show", "eth0"],
        );
        let flags = shown.split_once('<').unwrap().1.split_once('>').unwrap().0;
        flags.split(',').any(|flag| flag == "UP")
    }

    /// Waits until the data port of the switch `of` is up, which it is after the first answer to a probe.
    pub fn wait_until_up(&self, of: &str, case: &str) {
        let begin = Instant::now();
        while !self.is_up(of) {
            assert!(begin.elapsed() < PATIENCE, "{case}: the port stays down");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn down(&self, of: &str) {
        self.net.ip(
            &format!("{of}{}", self.number),
            &["link", "set", "eth0", "down"],
        );
    }

    /// Contents of a log, with the files' paths as the table of cases has them.
    pub fn log(&self, path: &Path) -> String {
        let folder = format!("{}/", self.folder.path().display());
        let text = fs::read_to_string(path).unwrap_or_default();
        text.replace(&format!("{folder}switch.toml"), "SWITCH")
            .replace(&format!("{folder}store.toml"), "STORE")
    }

    /// Waits until the log at `path` has `text`, and returns the log.
    pub fn wait(&self, case: &str, path: &Path, text: &str) -> String {
        let begin = Instant::now();
        loop {
            let said = self.log(path);
            if said.contains(text) {
                return said;
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "{case}: no {text:?} in:\n{said}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Starts what the switch of a case is to find.
    pub fn peers(&self, case: &Case) -> Vec<(Running, PathBuf)> {
        let log = self
            .folder
            .path()
            .join(format!("{}.decisions", case.name.replace(' ', "-")));
        let text = case.store.replace("LOG", log.to_str().unwrap());
        let path = self.write("store.toml", &text).display().to_string();
        let config = ["--config", path.as_str(), "--listen"];
        let own = match case.peer {
            Peer::Replica => "10.10.0.12",
            _ => "10.10.0.11",
        };
        let mut store = [&["store"], &config[..], &[own]].concat();
        let keys = case.keys[1]
            .map(|byte| self.keys("store.keys", (2, "10.10.0.11"), (1, "10.10.0.1"), byte));
        if let Some(keys) = &keys {
            store.extend(["--keys", keys]);
        }
        let started = match case.peer {
            Peer::Nobody => return Vec::new(),
            Peer::OtherVersion => {
                let python = ["-c", OTHER_VERSION];
                return vec![self.start_program("d", "store.log", "python3", &python)];
            }
            Peer::Store | Peer::Replica => vec![self.start("d", "store.log", &store)],
            Peer::Controlled => {
                let controller = [&["controller"], &config[..], &["10.10.0.20"]].concat();
                vec![
                    self.start("d", "store.log", &store),
                    self.start("d", "controller.log", &controller),
                ]
            }
        };
        for (_, log) in &started {
            self.wait(case.name, log, "ready");
        }
        started
    }

    pub fn try_case(&self, case: &Case) {
        self.down("s");
        let peers = self.peers(case);
        let before = case.before.as_ref().map(|text| {
            self.down("o");
            let (running, log) =
                self.switch("o", "other.log", &self.write("other.toml", text), None);
            self.wait(case.name, &log, "ready");
            self.wait_until_up("o", case.name);
            running
        });
        let file = self.write("switch.toml", &case.switch);
        let (mut switch, log) = self.switch("s", "switch.log", &file, case.keys[0]);
        if case.refused {
            let begin = Instant::now();
            while switch.ended().is_none() {
                assert!(begin.elapsed() < PATIENCE, "{}: it runs", case.name);
                std::thread::sleep(Duration::from_millis(20));
            }
            let said = self.log(&log);
            assert!(said.contains(case.said), "{}: {said}", case.name);
        } else {
            let said = self.wait(case.name, &log, case.said);
            let line = said.lines().find(|line| line.contains(case.said)).unwrap();
            assert!(line.contains(" ERROR "), "{}: {line}", case.name);
            let first = said
                .lines()
                .find(|line| line.contains("the ports are open"))
                .unwrap();
            let took = between(first, line);
            assert!(took < SOON, "{}: after {took} s: {said}", case.name);
            if let Some(told) = case.told {
                let said = self.wait(case.name, &peers[0].1, told);
                let line = said.lines().find(|line| line.contains(told)).unwrap();
                assert!(line.contains(" WARN "), "{}: {line}", case.name);
                let took = between(first, line);
                assert!(took < SOON, "{}: store after {took} s: {said}", case.name);
            }
        }
        assert!(!self.is_up("s"), "{}: its data port is up", case.name);
        let said = self.log(&log);
        assert!(
            !said.lines().any(|line| line == "ready"),
            "{}: {said}",
            case.name
        );
        drop((switch, before, peers));
    }
}
