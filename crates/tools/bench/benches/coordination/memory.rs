//! The switches' programs without sockets: the time that head, middle and tail spend on a write.

use super::network::{CLIENT, Chain, SWITCHES};
use super::switch::{PROGRAM, RELAY_PROGRAM, configuration, relay_configuration};
use stateplane_bench::switch::compile;
use stateplane_bench::{Report, frame};
use stateplane_host::switch::SwitchFile;
use stateplane_native::{Compiled, Native, Options};
use stateplane_switch::{Port, Switch, SwitchConfig};
use stateplane_wire::coordination::{self, Key, Kind, MessageType, Operation, Repr, flag};
use std::net::SocketAddrV4;
use std::path::Path;
use std::time::Instant;

/// Frames that one switch takes before the next one does.
const BURST: u64 = 32;

/// Bursts of a round, and rounds, whose median counts.
const BURSTS: u64 = 2_000;
const ROUNDS: usize = 9;

/// Virtual groups, each with one key and one lane.
const GROUPS: u64 = 64;

/// Time that the switches are told, in µs. It stands still, so that no lease is renewed.
const NOW: u64 = 1_000_000;

/// Number that the switches draw for their incarnation.
const INCARNATION: u32 = 7;

type Frames = Vec<(Port, Vec<u8>)>;

/// A switch of which ports 0 and 1 lead to its neighbours.
struct Node(Switch<Native>);

impl Node {
    fn new(compiled: &Compiled, text: &str) -> Node {
        let engine = compiled.engine(Options::default()).expect("an engine");
        let ports = SwitchConfig {
            ports: vec![0, 1],
            ..SwitchConfig::default()
        };
        let mut switch = Switch::new(engine, ports).expect("a switch");
        let file = SwitchFile::parse(Path::new("switch.toml"), text).expect("a configuration");
        file.apply(&mut switch, &mut || u64::from(INCARNATION))
            .expect("the file suits the program");
        Node(switch)
    }

    /// Takes `frames`, and gives what it sends; adds the time in ns to `spent`.
    fn pass(&mut self, frames: &Frames, spent: &mut f64) -> Frames {
        let start = Instant::now();
        let mut sent = Vec::with_capacity(frames.len() + 4);
        for (port, frame) in frames {
            self.0.handle_frame(NOW, *port, frame);
            while let Some(transmit) = self.0.poll_transmit() {
                sent.push((transmit.port, transmit.frame));
            }
        }
        *spent += start.elapsed().as_nanos() as f64;
        sent
    }

    fn recycle(&mut self, frames: Frames) {
        for (_, frame) in frames {
            self.0.recycle(frame);
        }
    }
}

fn message<'a>(message_type: MessageType, group: u16) -> Repr<'a> {
    let mut repr = Repr {
        group,
        generation: 1,
        epoch: 1,
        hops: SWITCHES as u8,
        ..Repr::new(message_type)
    };
    repr.set_chain((1..=SWITCHES).map(|number| Chain::Plain.switch(number)));
    repr.set_client(SocketAddrV4::new(CLIENT, Chain::Plain.client_port()));
    repr
}

fn frame_of(repr: &Repr<'_>, number: usize) -> Vec<u8> {
    let to = SocketAddrV4::new(Chain::Plain.switch(number), coordination::PORT);
    frame::message(CLIENT, to, &repr.to_vec().expect("a message has bytes"))
}

/// Requests of a burst; the lanes' requests go on from `first`.
fn requests(first: u64, value: &[u8]) -> Frames {
    (first..first + BURST)
        .map(|at| {
            let group = (at % GROUPS) as u16;
            let mut key = [0; 16];
            key[..2].copy_from_slice(&group.to_be_bytes());
            let request = Repr {
                operation: Operation::Write as u8,
                kind: Kind::Value as u8,
                request: (at / GROUPS) as u32 + 1,
                key: Key(key),
                value,
                ..message(MessageType::Request, group)
            };
            (0, frame_of(&request, 1))
        })
        .collect()
}

/// The switches of a chain whose groups are founded.
fn chain() -> Vec<Node> {
    let compiled = Compiled::new(compile(PROGRAM)).expect("the program loads");
    let mut nodes = Vec::new();
    for number in 1..=SWITCHES {
        let mut node = Node::new(&compiled, &configuration(Chain::Plain, number));
        for group in 0..GROUPS as u16 {
            let configure = Repr {
                flags: flag::FOUNDS,
                handle: INCARNATION,
                operand: coordination::Operand([0x3c; 16]),
                ..message(MessageType::Configure, group)
            };
            let frames = vec![(0, frame_of(&configure, number))];
            assert!(!node.pass(&frames, &mut 0.0).is_empty(), "it answers");
        }
        nodes.push(node);
    }
    nodes
}

/// Writes a burst through the chain: ns that each switch spends, ACKs included. Frames go back to
/// the switch that made them when the next one has taken them, as ports do it.
fn write(nodes: &mut [Node], first: u64, value: &[u8], spent: &mut [f64; SWITCHES]) {
    let mut frames = requests(first, value);
    let mut acks = Frames::new();
    for at in 0..SWITCHES {
        let sent = nodes[at].pass(&frames, &mut spent[at]);
        let (back, on) = sent.into_iter().partition(|(port, _)| *port == 0);
        let taken = std::mem::replace(&mut frames, on);
        if let Some(before) = at.checked_sub(1) {
            nodes[before].recycle(taken);
        }
        acks = back;
        for (port, _) in &mut frames {
            *port = 0;
        }
    }
    assert_eq!(frames.len(), BURST as usize, "each write is answered");
    nodes[SWITCHES - 1].recycle(frames);
    for at in (0..SWITCHES - 1).rev() {
        for (port, _) in &mut acks {
            *port = 1;
        }
        let on = nodes[at].pass(&acks, &mut spent[at]);
        nodes[at + 1].recycle(std::mem::replace(&mut acks, on));
    }
}

/// Measures a write of `value` bytes at each switch, beside a pass of a relay.
pub fn run(report: &mut Report, value: usize) {
    let mut nodes = chain();
    let compiled = Compiled::new(compile(RELAY_PROGRAM)).expect("the program loads");
    let mut relay = Node::new(&compiled, &relay_configuration(1));
    let value = vec![0x5a; value];
    let mut rounds = vec![[0.0; SWITCHES + 1]; ROUNDS];
    let mut first = 0;
    for round in &mut rounds {
        let mut spent = [0.0; SWITCHES];
        for _ in 0..BURSTS {
            let frames = requests(first, &value);
            let sent = relay.pass(&frames, &mut round[SWITCHES]);
            relay.recycle(sent);
            write(&mut nodes, first, &value, &mut spent);
            first += BURST;
        }
        round[..SWITCHES].copy_from_slice(&spent);
    }
    let median = |at: usize| {
        let mut all: Vec<f64> = rounds.iter().map(|round| round[at]).collect();
        all.sort_by(f64::total_cmp);
        all[ROUNDS / 2] / (BURSTS * BURST) as f64
    };
    for (at, name) in ["head", "middle", "tail"].into_iter().enumerate() {
        let name = format!("write of {} B in memory, {name}", value.len());
        report.measure(&name, "ns", median(at), "relay", median(SWITCHES));
    }
}
