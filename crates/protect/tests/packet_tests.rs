//! The packet test `programs/NAME.stf` of each program passes before it is protected, and
//! after, with a store beside the switch; and again with another switch that takes over
//! between two packets and knows nothing but what the store has.
//!
//! Public programs are tested, too, where `STATEPLANE_PUBLIC_PROGRAMS` names a folder with
//! checkouts of them; the annotations that they get are here.

#![allow(clippy::disallowed_methods)]

use core::net::{Ipv4Addr, SocketAddrV4};
use num_bigint::BigUint;
use stateplane_check::compile;
use stateplane_interp::{Interp, Options as Settings};
use stateplane_library::{WithLibrary, with_library};
use stateplane_protect::{Class, protect};
use stateplane_stf::{Command, Pattern, START_US, Script, parse};
use stateplane_store::{ClassConfig, Config, FirstLease, IdleTimeouts, Recipient, Server};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_syntax::{FileLoader, LoadError, MemoryLoader, Options};
use stateplane_target::{Engine as _, Entry, KeyMatch, StateError, Value};
use stateplane_wire::replication::PORT;
use stateplane_wire::{ethernet, ipv4, udp};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const STORE_PORT: u16 = 300;
const STORE: Ipv4Addr = Ipv4Addr::new(10, 255, 1, 1);
/// `PROTECTED_SHARDS`.
const SHARDS: u16 = 4;
/// µs between a switch's death and the first packet at the other: longer than a lease.
const OUTAGE: u64 = 10_000_000;

/// Files by absolute paths; texts are put into one of them.
#[derive(Clone)]
struct Files {
    edited: String,
    /// Each text, and what it is put in front of.
    annotations: &'static [(&'static str, &'static str)],
}

impl FileLoader for Files {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        let mut text = fs::read_to_string(path).map_err(|_| LoadError::NotFound)?;
        if path == self.edited {
            for (annotation, place) in self.annotations {
                assert!(text.contains(place), "{path} has no `{place}`");
                text = text.replacen(place, &format!("{annotation} {place}"), 1);
            }
        }
        Ok(text.into())
    }
}

/// A program before and after, with its packet test.
struct Subject {
    original: stateplane_ir::Program,
    protected: stateplane_ir::Program,
    class: Class,
    script: Script,
    /// The original with the table entries of the test.
    configured: Switch<Interp>,
}

impl Subject {
    fn new(files: Files, script: &Path) -> Subject {
        let options = with_library(Options::default());
        let main = files.edited.clone();
        let original = compile(&WithLibrary(files.clone()), &main, &options).program;
        let original = original.expect("a program");
        let outcome = protect(&WithLibrary(files), &main, &options);
        let (text, class) = outcome.program.expect("a program that can be protected");
        let loader = WithLibrary(MemoryLoader::new().with("protected.p4", text));
        let protected = compile(&loader, "protected.p4", &options).program;
        let text = fs::read_to_string(script).expect("a packet test");
        let name = script.to_string_lossy();
        let script = parse(&name, &text).expect("a packet test that can be read");
        let mut setup = script.clone();
        setup
            .lines
            .retain(|line| matches!(line.command, Command::Add { .. }));
        let engine = Interp::new(original.clone(), Settings::default()).expect("an engine");
        Subject {
            configured: stateplane_stf::run(&setup, engine).expect("entries"),
            protected: protected.expect("a protected program that compiles"),
            original,
            class,
            script,
        }
    }

    /// A switch that was just started.
    fn switch(&self, number: u32) -> Result<Switch<Interp>, StateError> {
        let mut engine = Interp::new(self.protected.clone(), Settings::default()).expect("loads");
        let state = engine.state_mut();
        state.adopt(self.configured.engine().state(), 0);
        let incarnation = state.register_mut("replication_incarnation")?;
        incarnation.write(0, &Value::from(u64::from(number)))?;
        let own = [number, address(number).to_bits(), number].map(BigUint::from);
        let identity = state.table_mut("replication_identity")?;
        identity.set_default("set_identity", &own)?;
        for shard in 0..SHARDS {
            let data = [STORE.to_bits(), 1, STORE_PORT.into(), 1, 1500].map(BigUint::from);
            state.table_mut("replication_shards")?.insert(&Entry {
                keys: vec![KeyMatch::Exact(shard.into())],
                priority: 0,
                action: "chain".into(),
                data: data.to_vec(),
            })?;
        }
        let config = SwitchConfig {
            ports: (0..STORE_PORT + 1).collect(),
            ..SwitchConfig::default()
        };
        Ok(Switch::new(engine, config).expect("a switch"))
    }
}

fn address(switch: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 255, 0, switch as u8)
}

/// The message in a frame to the store, and who sent it.
fn message_in(frame: &[u8]) -> Option<(SocketAddrV4, &[u8])> {
    let frame = ethernet::Packet::new_checked(frame).ok()?;
    let datagram = ipv4::Packet::new_checked(frame.payload()).ok()?;
    let segment = udp::Packet::new_checked(datagram.payload()).ok()?;
    let from = SocketAddrV4::new(datagram.source(), segment.source_port());
    Some((from, segment.payload()))
}

/// A frame with a message from the store.
fn message_to(to: SocketAddrV4, message: &[u8]) -> Vec<u8> {
    let datagram = udp::Repr {
        source_port: PORT,
        destination_port: to.port(),
        payload: message,
    };
    let segment = datagram.to_vec(STORE, *to.ip()).expect("a datagram");
    let packet = ipv4::Repr::new(STORE, *to.ip(), ipv4::PROTOCOL_UDP, &segment);
    let mut frame = vec![0; ethernet::HEADER_LENGTH];
    frame[12..].copy_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend(packet.to_vec().expect("a packet"));
    frame
}

#[derive(Default)]
struct Account {
    sent: VecDeque<Vec<u8>>,
    wanted: VecDeque<(usize, Option<Pattern>)>,
}

struct World {
    switch: Switch<Interp>,
    store: Server,
    now: u64,
    ports: BTreeMap<u16, Account>,
}

impl World {
    fn settle(&mut self) {
        loop {
            let mut quiet = true;
            while let Some(transmit) = self.switch.poll_transmit() {
                quiet = false;
                let (port, frame) = (transmit.port, transmit.frame);
                if port != STORE_PORT {
                    self.ports.entry(port).or_default().sent.push_back(frame);
                } else if let Some((from, message)) = message_in(&frame) {
                    self.store.handle_request(self.now, from, message);
                }
            }
            while let Some(datagram) = self.store.poll_transmit(self.now) {
                quiet = false;
                if let Recipient::Switch(to) = datagram.to {
                    let frame = message_to(to, &datagram.bytes);
                    self.switch.handle_frame(self.now, STORE_PORT, &frame);
                }
            }
            if self
                .switch
                .poll_timeout()
                .is_some_and(|due| due <= self.now)
            {
                self.switch.handle_timeout(self.now);
            } else if quiet {
                return;
            }
        }
    }
}

/// Runs the test on the protected program; with `takeovers`, another switch takes over
/// before each packet.
fn run(subject: &Subject, takeovers: bool) -> Vec<String> {
    let config = Config::new(1, 0)
        .with_shards(SHARDS)
        .with_class(ClassConfig {
            class: subject.class.id,
            state_length: subject.class.state_length,
            first_lease: FirstLease::Zero,
            shared_only: false,
            idle: IdleTimeouts::never(),
            quota: None,
        });
    let link = SocketAddrV4::new(STORE, stateplane_wire::chain::PORT);
    let mut world = World {
        switch: subject.switch(1).expect("a switch"),
        store: Server::fixed(config, 1, vec![link]).expect("a store"),
        now: START_US,
        ports: BTreeMap::new(),
    };
    let mut number = 1;
    for line in &subject.script.lines {
        match &line.command {
            Command::Packet { port, frame } => {
                if takeovers {
                    number += 1;
                    world.switch = subject.switch(number).expect("a switch");
                    world.now += OUTAGE;
                    world.store.handle_timeout(world.now);
                }
                world.switch.handle_frame(world.now, *port, frame);
                world.settle();
            }
            Command::Expect { port, pattern } => {
                let account = world.ports.entry(*port).or_default();
                account.wanted.push_back((line.number, pattern.clone()));
            }
            _ => {}
        }
    }
    let mut failures = Vec::new();
    for (port, mut account) in world.ports {
        while let Some((line, pattern)) = account.wanted.pop_front() {
            let sent = account.sent.pop_front();
            let fits = sent.as_ref().is_some_and(|frame| {
                pattern
                    .as_ref()
                    .is_none_or(|it| it.mismatch(frame).is_none())
            });
            if !fits {
                failures.push(format!("line {line}: port {port} sent {sent:02x?}"));
            }
        }
        for frame in account.sent {
            failures.push(format!(
                "port {port} sent {frame:02x?}, which nobody expected"
            ));
        }
    }
    failures
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// A program of this folder.
fn passes(name: &str) {
    let program = tests().join(format!("programs/{name}.p4"));
    let files = Files {
        edited: program.to_string_lossy().into_owned(),
        annotations: &[],
    };
    subject_passes(&Subject::new(files, &program.with_extension("stf")));
}

fn subject_passes(subject: &Subject) {
    let engine = Interp::new(subject.original.clone(), Settings::default()).expect("an engine");
    let before = stateplane_stf::run_all(&subject.script, engine);
    assert!(before.is_empty(), "the original: {before:?}");
    for takeovers in [false, true] {
        let failures = run(subject, takeovers);
        assert!(
            failures.is_empty(),
            "takeovers: {takeovers}\n{}",
            failures.join("\n")
        );
    }
}

#[test]
fn port_knocking_goes_on_at_another_switch() {
    passes("port_knocking");
}

#[test]
fn a_counter_of_flows_goes_on_at_another_switch() {
    passes("flow_counter");
}

#[test]
fn a_quota_goes_on_at_another_switch() {
    passes("quota");
}

#[test]
fn connections_go_on_at_another_switch() {
    passes("connections");
}

#[test]
fn a_sticky_balancer_goes_on_at_another_switch() {
    passes("sticky");
}

/// A public program: its file below the folder, what is put into it, and its packet test.
struct Public {
    file: &'static str,
    annotations: &'static [(&'static str, &'static str)],
    script: &'static str,
}

const CONNECTION: &str = "@replicated(key = {hdr.ipv4.srcAddr, hdr.ipv4.dstAddr, hdr.tcp.srcPort, \
     hdr.tcp.dstPort, hdr.ipv4.protocol}, reverse = {hdr.ipv4.dstAddr, hdr.ipv4.srcAddr, \
     hdr.tcp.dstPort, hdr.tcp.srcPort, hdr.ipv4.protocol})";
const FLOW: &str = "@replicated(key = {hdr.ipv4.srcAddr, hdr.ipv4.dstAddr, hdr.tcp.srcPort, \
     hdr.tcp.dstPort, hdr.ipv4.protocol})";

const PUBLIC: [Public; 5] = [
    Public {
        file: "tutorials/exercises/firewall/solution/firewall.p4",
        annotations: &[
            (
                CONNECTION,
                "register<bit<BLOOM_FILTER_BIT_WIDTH>>(BLOOM_FILTER_ENTRIES) bloom_filter_1;",
            ),
            (
                "@replicated",
                "register<bit<BLOOM_FILTER_BIT_WIDTH>>(BLOOM_FILTER_ENTRIES) bloom_filter_2;",
            ),
        ],
        script: "firewall.stf",
    },
    Public {
        file: "p4-learning/examples/stateful_firewall/stateful_firewall.p4",
        annotations: &[(CONNECTION, "register<bit<BLOOM")],
        script: "stateful_firewall.stf",
    },
    Public {
        file: "p4-learning/examples/heavy_hitter/heavy_hitter.p4",
        annotations: &[(FLOW, "register<bit<BLOOM")],
        script: "heavy_hitter.stf",
    },
    Public {
        file: "p4-learning/exercises/06-Heavy_Hitter_Detector/solution/heavy_hitter.p4",
        annotations: &[(FLOW, "register<bit<BLOOM")],
        script: "heavy_hitter.stf",
    },
    Public {
        file: "NETPROC_P4Knocking/implementation_2/app/switch.p4",
        annotations: &[(
            "@replicated(key = {hdr.ipv4.srcAddr})",
            "register<pk_stage_t>(BIT16_INDEX)",
        )],
        script: "p4knocking.stf",
    },
];

#[test]
fn public_programs_go_on_at_another_switch() {
    let Some(folder) = std::env::var_os("STATEPLANE_PUBLIC_PROGRAMS") else {
        eprintln!("skipped: STATEPLANE_PUBLIC_PROGRAMS names no folder with checkouts");
        return;
    };
    for public in &PUBLIC {
        let main = Path::new(&folder).join(public.file);
        let files = Files {
            edited: main.to_string_lossy().into_owned(),
            annotations: public.annotations,
        };
        let script = tests().join("public").join(public.script);
        subject_passes(&Subject::new(files, &script));
        eprintln!("{}: passes", public.file);
    }
}
