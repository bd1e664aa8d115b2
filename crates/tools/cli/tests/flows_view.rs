//! `stateplane engine` and `stateplane view` before a chain of store servers on the loopback network,
//! whose flows the test makes as a switch does.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;
use stateplane_wire::replication::{Key, MessageType, Packet, RefusalCode, Repr};
use support::cluster::start;
use support::python::{SYNC_PACKAGES, environment, script, sync_wheel, without_python};
use support::{Running, errors, stateplane};

/// Time for what takes ms unless the machine does not let it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of the switch of the test.
const SWITCH: u32 = 1;

fn address(network: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, network, host)
}

/// A key of a class.
fn key(class: u8, last: u8) -> Key {
    let mut key = [0; 16];
    (key[0], key[15]) = (class, last);
    Key(key)
}

/// Name of the arrays of which the engine has snapshots.
const SKETCH: &str =
    "[[flows.snapshots]]\nname = \"sketch\"\nclass = 3\nelements = 2\narrays = 2\n";

/// Key of an element of a snapshot of one start of a switch.
fn element_key(switch: u32, number: u32, element: u32) -> Key {
    let mut key = [0; 16];
    (key[0], key[1]) = (3, (number & 1) as u8);
    key[2..6].copy_from_slice(&switch.to_be_bytes());
    key[6..10].copy_from_slice(&7u32.to_be_bytes());
    key[10..14].copy_from_slice(&element.to_be_bytes());
    Key(key)
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A flow's lease, as a switch has it.
#[derive(Clone, Copy, Debug)]
struct Lease {
    shard: u16,
    key: Key,
    epoch: u32,
    sequence: u32,
}

/// A switch that asks for leases, and gives them up when they are recalled.
struct Switch {
    socket: UdpSocket,
    head: SocketAddrV4,
}

impl Switch {
    fn new(address: Ipv4Addr, head: SocketAddrV4) -> Switch {
        let socket = UdpSocket::bind((address, 0)).expect("a socket");
        let wait = Duration::from_millis(5);
        socket.set_read_timeout(Some(wait)).expect("a socket");
        Switch { socket, head }
    }

    fn request<'a>(lease: &Lease, kind: MessageType, state: &'a [u8]) -> Repr<'a> {
        Repr {
            chain_epoch: 1,
            shard: lease.shard,
            switch_id: SWITCH,
            incarnation: 7,
            claim: 1 + u32::from(lease.key.0[15]),
            request: 1,
            lease_epoch: lease.epoch,
            sequence: lease.sequence,
            state,
            ..Repr::new(kind, lease.key)
        }
    }

    fn send(&self, message: &Repr<'_>) {
        let bytes = message.to_vec().expect("it fits");
        self.socket.send_to(&bytes, self.head).expect("it is sent");
    }

    /// Answers recalls, and gives what else comes to `take`, which ends it by a result.
    fn receive<T>(&self, take: impl FnOnce(&Repr<'_>) -> Option<T>) -> Option<T> {
        let mut buffer = [0; 2048];
        let (length, _) = self.socket.recv_from(&mut buffer).ok()?;
        let packet = Packet::new_checked(&buffer[..length]).expect("a message");
        let message = Repr::parse(&packet);
        if message.message_type == MessageType::Recall {
            self.send(&Repr {
                message_type: MessageType::ReleaseRequest,
                ..message
            });
            return None;
        }
        take(&message)
    }

    /// Sends a request until `take` gives a result.
    fn asked<T>(&self, message: &Repr<'_>, take: impl Fn(&Repr<'_>) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            self.send(message);
            for _ in 0..4 {
                if let Some(result) = self.receive(&take) {
                    return result;
                }
            }
            assert!(start.elapsed() < PATIENCE, "no answer to {message:?}");
        }
    }

    /// Takes the lease of a flow.
    fn lease(&self, shard: u16, key: Key) -> Lease {
        let none = Lease {
            shard,
            key,
            epoch: 0,
            sequence: 0,
        };
        let request = Switch::request(&none, MessageType::LeaseRequest, &[]);
        self.asked(&request, |reply| {
            let is_grant = reply.message_type == MessageType::LeaseReply && reply.key == key;
            is_grant.then_some(Lease {
                epoch: reply.lease_epoch,
                sequence: reply.sequence,
                ..none
            })
        })
    }

    /// Writes a state under a lease; the refusal if there is one.
    fn write(&self, lease: &mut Lease, state: &[u8]) -> Result<(), RefusalCode> {
        lease.sequence += 1;
        let request = Switch::request(lease, MessageType::WriteRequest, state);
        let (key, sequence) = (lease.key, lease.sequence);
        self.asked(&request, |reply| match reply.message_type {
            _ if reply.key != key => None,
            MessageType::WriteReply if reply.sequence == sequence => Some(Ok(())),
            MessageType::Refusal => RefusalCode::from_u8(reply.code).map(Err),
            _ => None,
        })
    }
}

impl Switch {
    /// Writes one element of a snapshot, with `value` in the first array and twice as much in the second.
    fn write_element(&self, switch: u32, number: u32, element: u32, value: u32) {
        let mut lease = self.lease(0, element_key(switch, number, element));
        let words = [number, value, 2 * value];
        let state: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        assert_eq!(self.write(&mut lease, &state), Ok(()));
    }
}

/// A chain of three servers, an engine that follows its flows, and a switch.
struct Bed {
    network: u8,
    requests: u16,
    rpc: String,
    folder: tempfile::TempDir,
    stores: Vec<Running>,
    engine: Option<Running>,
    switch: Switch,
}

impl Bed {
    fn new(network: u8) -> Bed {
        let folder = tempfile::tempdir().expect("a folder");
        let sockets = [0, 1].map(|_| UdpSocket::bind((address(network, 1), 0)).expect("a socket"));
        let ports = sockets.map(|it| it.local_addr().expect("an address").port());
        let [requests, links] = ports;
        let rpc = TcpListener::bind((address(network, 9), 0)).expect("a socket");
        let rpc = rpc.local_addr().expect("an address").to_string();
        let chain = [1, 2, 3].map(|host| address(network, host).to_string());
        let text = format!(
            "listen = \"{}\"\n[replication]\nrequest_port = {requests}\nchain_port = {links}\n\
             chain = {chain:?}\nchain_epoch = 1\nshards = 4\nterm_ms = 100\n\
             [[replication.class]]\nid = 1\nstate_length = 8\nfirst_lease = \"zero\"\n\
             [[replication.class]]\nid = 2\nstate_length = 4\nfirst_lease = \"zero\"\n\
             shared_only = true\n\
             [[replication.class]]\nid = 3\nstate_length = 12\nfirst_lease = \"zero\"\n",
            chain[0]
        );
        let config = folder.path().join("store.toml");
        std::fs::write(&config, text).expect("a file");
        let config = config.to_str().expect("a path").to_owned();
        let store = |own: &String| start(&["store", "--config", &config, "--listen", own]);
        let stores = chain.iter().map(store).collect();
        let head = SocketAddrV4::new(address(network, 1), requests);
        Bed {
            network,
            requests,
            rpc,
            folder,
            stores,
            engine: None,
            switch: Switch::new(address(network, 200), head),
        }
    }

    /// Starts an engine whose section `[[flows]]` has these lines, too.
    fn engine(&mut self, lines: &str) {
        let stores = [1, 2, 3].map(|host| {
            let store = SocketAddrV4::new(address(self.network, host), self.requests);
            store.to_string()
        });
        let data = self.folder.path().join("data");
        let text = format!(
            "listen = \"{}\"\ndata = \"{}\"\nrpc = \"{}\"\n[[flows]]\nname = \"counts\"\n\
             stores = {stores:?}\nswitch = 60000\n{lines}",
            address(self.network, 9),
            data.display(),
            self.rpc
        );
        let config = self.folder.path().join("engine.toml");
        std::fs::write(&config, text).expect("a file");
        self.engine = None;
        let mut running = Running::start(&mut stateplane(&[
            "engine",
            config.to_str().expect("a path"),
        ]));
        let said = running.child().stdout.take().expect("its output");
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).expect("a line");
        if line != "ready\n" {
            panic!("{}", errors(&running.finish(PATIENCE)));
        }
        self.engine = Some(running);
    }

    /// `stateplane view`, while the switch gives up what is recalled.
    fn view(&self, arguments: &[&str]) -> Output {
        let begin = ["view", "--json", "--engine", &self.rpc, "--timeout", "30"];
        let mut running = Running::start(&mut stateplane(&[&begin, arguments].concat()));
        while running.ended().is_none() {
            self.switch.receive(|_| Some(()));
        }
        running.finish(PATIENCE)
    }

    /// Its output, line by line.
    fn said(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.view(arguments);
        let said = errors(&output);
        assert!(output.status.success(), "{arguments:?}: {said}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("JSON")
    }

    /// Exit code and message of what is refused.
    fn refused(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.view(arguments);
        (output.status.code().expect("an exit code"), errors(&output))
    }

    /// The state of a flow as of a moment after the request, and its epoch and sequence.
    fn flow(&self, key: Key) -> (String, u64, u64) {
        let said = self.said(&["flow", "counts", &digits(&key.0), "--fresh"]);
        let flow = &said[0]["flows"][0];
        let number = |of: &str| flow[of].as_u64().expect("a number");
        let state = flow["state"].as_str().expect("a state").to_owned();
        (state, number("epoch"), number("sequence"))
    }
}

#[test]
fn flows_of_a_chain_are_read_changed_and_watched() {
    let mut bed = Bed::new(98);
    let (one, two) = (key(1, 1), key(1, 2));
    let mut lease = bed.switch.lease(0, one);
    for count in 1..=3u64 {
        let written = bed.switch.write(&mut lease, &count.to_be_bytes());
        assert_eq!(written, Ok(()));
    }
    bed.engine("");
    let (state, epoch, sequence) = bed.flow(one);
    assert_eq!(state, digits(&3u64.to_be_bytes()));
    let held = (u64::from(lease.epoch), u64::from(lease.sequence));
    assert_eq!((epoch, sequence), held);
    let listed = bed.said(&["flows"]);
    assert_eq!(listed[0]["name"], "counts");
    assert_eq!(listed[0]["told"]["chains"], 1);
    assert_eq!(listed[0]["told"]["flows"], 1);

    // A read has all that a switch was told to be written before it.
    let mut other = bed.switch.lease(3, two);
    let written = bed.switch.write(&mut other, &9u64.to_be_bytes());
    assert_eq!(written, Ok(()));
    assert_eq!(bed.flow(two).0, digits(&9u64.to_be_bytes()));
    let all = bed.said(&["flows", "counts", "--class", "1", "--fresh"]);
    let flows = all[0]["flows"].as_array().expect("flows");
    let shards: Vec<&Value> = flows.iter().map(|flow| &flow["shard"]).collect();
    assert_eq!(shards, [0, 3]);
    assert_eq!(flows[0]["lease"], "owner");
    let none = bed.said(&["flows", "counts", "--class", "2", "--fresh"]);
    assert_eq!(none[0]["flows"], Value::Array(Vec::new()));

    // The engine takes the lease as an owner does: the last one is fenced.
    let name = digits(&one.0);
    let five = digits(&5u64.to_be_bytes());
    let set = bed.said(&["set-flow", "counts", &name, &five]);
    assert_eq!(
        (&set[0]["done"], &set[0]["state"]),
        (&true.into(), &five.as_str().into())
    );
    let (state, now, sequence) = bed.flow(one);
    assert_eq!((state, sequence), (five.clone(), held.1 + 1));
    assert!(now > epoch, "a lease of its own: {now} after {epoch}");
    let fenced = bed.switch.write(&mut lease, &4u64.to_be_bytes());
    assert_eq!(fenced, Err(RefusalCode::Fenced));

    // Conditions, additions, and a switch that goes on from there.
    let seven = digits(&7u64.to_be_bytes());
    let unequal = ["set-flow", "counts", &name, &seven, "--if", &seven];
    let (code, said) = bed.refused(&unequal);
    assert!(code == 5 && said.contains(&five), "{said}");
    bed.said(&["set-flow", "counts", &name, &seven, "--if", &five]);
    let added = bed.said(&["add-flow", "counts", &name, "3"]);
    assert_eq!(added[0]["state"], digits(&10u64.to_be_bytes()));
    bed.said(&["add-flow", "counts", &name, "-1"]);
    let part = [
        "add-flow", "counts", &name, "2", "--at", "6", "--length", "1",
    ];
    bed.said(&part);
    let mut lease = bed.switch.lease(0, one);
    assert_eq!(
        u64::from(lease.sequence),
        held.1 + 5,
        "writes of all owners count"
    );
    let next = 0x020a_u64.to_be_bytes();
    assert_eq!(bed.flow(one).0, digits(&0x0209_u64.to_be_bytes()));
    assert_eq!(bed.switch.write(&mut lease, &next), Ok(()));

    // A watcher is told all flows first, then those that change.
    let watch = ["view", "--json", "--engine", &bed.rpc];
    let more = ["watch-flows", "counts", "--interval", "1", "--count", "2"];
    let mut watcher = Running::start(&mut stateplane(&[&watch[..], &more].concat()));
    let output = watcher.child().stdout.take().expect("its output");
    let mut lines = BufReader::new(output).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("a notification").expect("a line");
        serde_json::from_str(&line).expect("JSON")
    };
    let first = next();
    assert_eq!((&first["all"], &first["met"]), (&true.into(), &true.into()));
    assert_eq!(first["flows"].as_array().map(Vec::len), Some(2));
    let written = bed.switch.write(&mut lease, &1u64.to_be_bytes());
    assert_eq!(written, Ok(()));
    let changed = next();
    assert_eq!(changed["all"], false);
    assert_eq!(changed["flows"][0]["key"], name.as_str());
    assert_eq!(changed["flows"][0]["state"], digits(&1u64.to_be_bytes()));
    assert!(watcher.finish(PATIENCE).status.success());
    for store in &mut bed.stores {
        assert!(store.ended().is_none(), "a server has ended");
    }
}

#[test]
fn what_cannot_be_read_or_changed_is_refused_with_a_code() {
    let mut bed = Bed::new(99);
    let one = key(1, 1);
    let mut lease = bed.switch.lease(2, one);
    let written = bed.switch.write(&mut lease, &1u64.to_be_bytes());
    assert_eq!(written, Ok(()));
    bed.engine("");
    let (name, state) = (digits(&one.0), digits(&[0; 8]));
    let unknown = digits(&key(1, 9).0);
    for (arguments, code, said) in [
        (&["flows", "none"][..], 2, "error[SYNC020]"),
        (&["flow", "counts", &unknown], 2, "error[SYNC031]"),
        (
            &["set-flow", "counts", &unknown, &state],
            2,
            "error[SYNC031]",
        ),
        (&["set-flow", "counts", &name, "00"], 2, "error[SYNC033]"),
        (
            &["add-flow", "counts", &name, "1", "--at", "8"],
            2,
            "error[SYNC033]",
        ),
        (&["set-flow", "counts", &name, "0"], 2, "hexadecimal"),
        (&["set-flow", "counts", "01", &state], 2, "32 hexadecimal"),
        (
            &["add-flow", "counts", &name, "1", "--length", "9"],
            2,
            "1..=8",
        ),
        (&["flows", "--class", "1"], 2, "NAME"),
    ] {
        let (exit, text) = bed.refused(arguments);
        assert!(
            exit == code && text.contains(said),
            "{arguments:?}: {exit}: {text}"
        );
    }
    // Nobody writes what is only read.
    let shared = key(2, 1);
    let asked = Lease {
        shard: 1,
        key: shared,
        epoch: 0,
        sequence: 0,
    };
    let request = Switch::request(&asked, MessageType::LeaseRequest, &[]);
    let request = Repr {
        shared: true,
        ..request
    };
    let granted = |reply: &Repr<'_>| (reply.message_type == MessageType::LeaseReply).then_some(());
    bed.switch.asked(&request, granted);
    bed.flow(shared);
    let set = ["set-flow", "counts", &digits(&shared.0), "00000001"];
    let (exit, text) = bed.refused(&set);
    assert!(
        exit == 4 && text.contains("error[SYNC032]"),
        "{exit}: {text}"
    );

    bed.engine("writes = false\nclasses = [1]\n");
    let (exit, text) = bed.refused(&["set-flow", "counts", &name, &state]);
    assert!(
        exit == 4 && text.contains("error[SYNC034]"),
        "{exit}: {text}"
    );
    let all = bed.said(&["flows", "counts", "--fresh"]);
    assert_eq!(all[0]["flows"].as_array().map(Vec::len), Some(1));
}

#[test]
fn snapshots_of_switches_are_read_merged_and_followed() {
    let mut bed = Bed::new(101);
    for (element, value) in [(0, 5), (1, 6)] {
        bed.switch.write_element(1, 1, element, value);
        bed.switch.write_element(2, 4, element, 10 * value);
    }
    // One that is half written changes nothing.
    bed.switch.write_element(1, 2, 0, 100);
    bed.engine(SKETCH);
    bed.said(&["flows", "counts", "--fresh"]);
    let said = bed.said(&["snapshots", "sketch"]);
    assert_eq!(said[0]["merged"], serde_json::json!([55, 110, 66, 132]));
    let each = said[0]["snapshots"].as_array().expect("snapshots");
    let numbers: Vec<_> = each
        .iter()
        .map(|it| (&it["switch"], &it["number"]))
        .collect();
    assert_eq!(numbers, [(&1.into(), &1.into()), (&2.into(), &4.into())]);

    // Each comes once, and behind those that a client has.
    let two = bed.said(&["watch-snapshots", "sketch", "--count", "2"]);
    assert_eq!(two.len(), 2);
    assert_eq!(two[0]["values"], serde_json::json!([5, 10, 6, 12]));
    let watch = ["view", "--json", "--engine", &bed.rpc, "watch-snapshots"];
    let more = [
        "sketch", "--count", "1", "--after", "1:7:1", "--after", "2:7:4",
    ];
    let watcher = Running::start(&mut stateplane(&[&watch[..], &more].concat()));
    bed.switch.write_element(1, 2, 1, 200);
    let output = watcher.finish(PATIENCE);
    let next: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&next["switch"], &next["number"]), (&1.into(), &2.into()));
    assert_eq!(next["values"], serde_json::json!([100, 200, 200, 400]));
    let said = bed.said(&["snapshots", "sketch"]);
    assert_eq!(said[0]["merged"], serde_json::json!([150, 300, 260, 520]));

    let (exit, text) = bed.refused(&["snapshots", "colour"]);
    assert!(exit == 2 && text.contains("error[SYNC020]"), "{text}");
    let (exit, text) = bed.refused(&["watch-snapshots", "sketch", "--after", "1:7"]);
    assert!(
        exit == 2 && text.contains("SWITCH:INCARNATION:NUMBER"),
        "{text}"
    );
}

#[test]
fn the_python_package_reads_and_changes_flows() {
    let python = match environment("stateplane-sync", &SYNC_PACKAGES) {
        Ok(python) => python,
        Err(reason) => return without_python("flows by the Python package of sync", &reason),
    };
    let mut bed = Bed::new(100);
    let one = key(1, 1);
    let mut lease = bed.switch.lease(2, one);
    let written = bed.switch.write(&mut lease, &3u64.to_be_bytes());
    assert_eq!(written, Ok(()));
    let release = Switch::request(&lease, MessageType::ReleaseRequest, &[]);
    bed.switch.send(&release);
    for (element, value) in [(0, 5), (1, 6)] {
        bed.switch.write_element(1, 1, element, value);
    }
    bed.engine(&format!("classes = [1, 3]\n{SKETCH}"));
    let site = sync_wheel(&python, bed.folder.path());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sync");
    let mut client = std::process::Command::new(&python);
    client
        .arg(scripts.join("flows.py"))
        .arg(&bed.rpc)
        .env("PYTHONPATH", site);
    script(&mut client, "all of it");
}
