//! A controller of the coordination service as a process, on the loopback network, with switches
//! that only follow it.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use stateplane_wire::coordination::{MessageType, PORT, Packet, Repr, flag};
use stateplane_wire::coordination_control::{Learn, Message, Opened, room_for_chains};
use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::cluster::start;
use support::{Running, stateplane};
use tempfile::TempDir;

/// Network of the test: 127.95.0.0/16.
fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 95, 0, host)
}

const CONTROLLER: u8 = 100;

const SWITCHES: [u8; 4] = [1, 2, 3, 4];

const GROUPS: u16 = 6;

/// Time for what takes a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A switch that follows configurations and joins at once. Number 0 as incarnation: it is off.
struct Switch {
    incarnation: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Switch {
    fn start(host: u8) -> Switch {
        let own = address(host);
        let socket = UdpSocket::bind((own, PORT)).unwrap();
        let wait = Duration::from_millis(20);
        socket.set_read_timeout(Some(wait)).unwrap();
        let incarnation = Arc::new(AtomicU32::new(u32::from(host) * 100));
        let stop = Arc::new(AtomicBool::new(false));
        let (present, stopped) = (incarnation.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let mut bytes = [0; 2048];
            let (mut start, mut follows) = (0, BTreeMap::new());
            while !stopped.load(Ordering::Relaxed) {
                let Ok((length, _)) = socket.recv_from(&mut bytes) else {
                    continue;
                };
                let now = present.load(Ordering::Relaxed);
                if now == 0 {
                    continue;
                }
                if now != start {
                    (start, follows) = (now, BTreeMap::new());
                }
                let packet = Packet::new_checked(&bytes[..length]).unwrap();
                let message = Repr::parse(&packet);
                let answer = follow(own, now, &mut follows, &message);
                let _ = socket.send_to(&answer.to_vec().unwrap(), message.client());
            }
        });
        Switch {
            incarnation,
            stop,
            thread: Some(thread),
        }
    }

    fn set(&self, incarnation: u32) {
        self.incarnation.store(incarnation, Ordering::Relaxed);
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Answer of a switch; `follows` are generation, epoch and whether it joins, by group.
fn follow(
    own: Ipv4Addr,
    incarnation: u32,
    follows: &mut BTreeMap<u16, (u16, u32, bool)>,
    message: &Repr<'_>,
) -> Repr<'static> {
    let mut answer = Repr {
        value: &[],
        ..*message
    };
    match message.message_type {
        MessageType::Ping => {
            answer.message_type = MessageType::Pong;
            answer.handle = incarnation;
        }
        MessageType::Redirect => answer.message_type = MessageType::Redirected,
        _ => {
            let known = follows.entry(message.group).or_default();
            if message.handle == incarnation && message.epoch > known.1 {
                let is_last = message.chain().last() == Some(own);
                let joins = message.flags & flag::JOINS != 0 && is_last;
                *known = (message.generation, message.epoch, joins);
            }
            answer.message_type = MessageType::Configured;
            answer.handle = incarnation;
            (answer.generation, answer.epoch) = (known.0, known.1);
            answer.flags = u8::from(known.2) * flag::JOINED;
        }
    }
    answer
}

struct Service {
    folder: TempDir,
    switches: BTreeMap<u8, Switch>,
    controller: Option<Running>,
    client: UdpSocket,
}

impl Service {
    fn start() -> Service {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut text = format!(
            "operator_port = 4896\n[controller]\naddresses = [\"{}\"]\nlog = {log:?}\n\
             [coordination]\ngroups = {GROUPS}\ndetection_ms = 400\nreplace_after_ms = 500\n",
            address(CONTROLLER)
        );
        for host in SWITCHES {
            let own = address(host);
            text += &format!("[[coordination.switch]]\nnumber = {host}\naddress = \"{own}\"\n");
        }
        fs::write(folder.path().join("deployment.toml"), text).unwrap();
        let client = UdpSocket::bind((address(200), 0)).unwrap();
        let wait = Duration::from_millis(200);
        client.set_read_timeout(Some(wait)).unwrap();
        let switches = SWITCHES.map(|host| (host, Switch::start(host)));
        let mut service = Service {
            folder,
            switches: switches.into(),
            controller: None,
            client,
        };
        service.start_controller();
        service
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("deployment.toml")
    }

    fn start_controller(&mut self) {
        let file = self.file();
        self.controller = Some(start(&["controller", "--config", file.to_str().unwrap()]));
    }

    /// Exit code and JSON of `stateplane ctl coordination` with `arguments`.
    fn ctl(&self, arguments: &[&str]) -> (i32, Value) {
        let file = self.file();
        let mut all = vec!["ctl", "--json", "coordination", "--config"];
        all.push(file.to_str().unwrap());
        all.extend(arguments);
        let output = stateplane(&all).output().unwrap();
        let value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        (output.status.code().unwrap(), value)
    }

    fn wait(&self) {
        assert_eq!(self.ctl(&["wait", "30"]).0, 0);
    }

    /// Answer of the controller to a client.
    fn ask(&self, message: &Message) -> Message {
        let controller = SocketAddrV4::new(address(CONTROLLER), 4795);
        let begin = Instant::now();
        let mut bytes = [0; 2048];
        while begin.elapsed() < PATIENCE {
            let _ = self.client.send_to(&message.to_vec(), controller);
            if let Ok((length, _)) = self.client.recv_from(&mut bytes) {
                return Message::parse(&bytes[..length]).unwrap();
            }
        }
        panic!("no answer to {message:?}");
    }

    fn open(&self, nonce: u64) -> Opened {
        match self.ask(&Message::Open { nonce, lanes: 4 }) {
            Message::Opened(opened) => opened,
            other => panic!("{other:?}"),
        }
    }

    /// Members of each group.
    fn members(&self) -> Vec<Vec<String>> {
        let (_, chains) = self.ctl(&["chains"]);
        let chains = chains.as_array().unwrap().iter().map(|chain| {
            let members = chain["members"].as_array().unwrap().iter();
            let members = members.map(|it| it["address"].as_str().unwrap().to_owned());
            members.collect()
        });
        chains.collect()
    }

    fn groups_of(&self, host: u8) -> usize {
        let own = address(host).to_string();
        let members = self.members();
        members.iter().filter(|all| all.contains(&own)).count()
    }
}

#[test]
fn operators_see_and_change_the_groups_of_a_controller() {
    let mut service = Service::start();
    service.wait();
    let (_, groups) = service.ctl(&["groups"]);
    assert_eq!(groups["settled"], true);
    assert_eq!(groups["switches"].as_array().unwrap().len(), SWITCHES.len());
    assert_eq!(service.members().len(), usize::from(GROUPS));
    assert!(service.members().iter().all(|members| members.len() == 3));

    // Clients learn the chains and get sessions.
    let learn = Message::Learn(Learn {
        controller: 0,
        version: 0,
        group: 0,
        room: room_for_chains(GROUPS.into()),
    });
    let Message::Chains { chains, .. } = service.ask(&learn) else {
        panic!("no chains");
    };
    assert_eq!(chains.len(), usize::from(GROUPS));
    let first = service.open(1);
    assert_eq!((first.session, first.count, first.groups), (1, 4, GROUPS));

    // One switch is drained and could stop.
    let one = address(1).to_string();
    assert!(service.groups_of(1) > 0);
    assert_eq!(service.ctl(&["drain", &one, "--wait", "30"]).0, 0);
    assert_eq!(service.groups_of(1), 0);
    assert_eq!(service.ctl(&["can-stop", &one]).0, 0);

    // Another controller goes on with what was stored.
    service.controller = None;
    service.start_controller();
    service.wait();
    assert_eq!(service.groups_of(1), 0);
    assert_eq!(service.open(1), first);
    assert_eq!(service.open(2).session, 2);
    assert_eq!(service.ctl(&["undrain", &one, "--wait", "30"]).0, 0);
    assert!(service.groups_of(1) > 0);

    // A switch fails, and its groups get others.
    service.switches[&2].set(0);
    let begin = Instant::now();
    while service.groups_of(2) > 0 {
        assert!(begin.elapsed() < PATIENCE);
    }
    service.wait();
    assert!(service.members().iter().all(|members| members.len() == 3));

    // Another fails, and two are too few.
    service.switches[&1].set(0);
    let begin = Instant::now();
    while service.groups_of(1) > 0 {
        assert!(begin.elapsed() < PATIENCE);
    }
    assert_eq!(service.ctl(&["wait", "30", "--degraded"]).0, 0);
    assert_eq!(service.ctl(&["wait", "0"]).0, 1);
    let (_, groups) = service.ctl(&["groups"]);
    assert_eq!(groups["degraded"]["chains"]["1"], GROUPS);
    assert_eq!(groups["degraded"]["down"], 0);

    // All fail at once, and come back empty: what they had is lost, until it is founded anew.
    for host in [3, 4] {
        service.switches[&host].set(0);
    }
    std::thread::sleep(Duration::from_secs(1));
    for host in SWITCHES {
        service.switches[&host].set(u32::from(host) * 100 + 1);
    }
    std::thread::sleep(Duration::from_secs(1));
    assert_ne!(service.ctl(&["refound", "0"]).0, 0);
    for group in 0..GROUPS {
        let group = group.to_string();
        let refound = ["refound", &group, "--members-are-stopped"];
        assert_eq!(service.ctl(&refound).0, 0);
    }
    service.wait();
    let (_, chains) = service.ctl(&["chains"]);
    let chains = chains.as_array().unwrap();
    assert!(chains.iter().all(|chain| chain["generation"] == 2));
    // Their state is there.
    assert_ne!(service.ctl(&["refound", "0", "--members-are-stopped"]).0, 0);
    let two = address(99).to_string();
    assert_ne!(service.ctl(&["drain", &two]).0, 0);
}

#[test]
fn a_deployment_of_no_system_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deployment.toml");
    fs::write(&file, "[controller]\naddresses = [\"127.95.0.101\"]\n").unwrap();
    let file = file.to_str().unwrap();
    let output = stateplane(&["controller", "--config", file])
        .output()
        .unwrap();
    assert_ne!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("H414"), "{text}");
}
