//! Replicas of several shards over a network that loses, repeats and reorders their messages, some
//! of which begin anew with a peer's state. All decide as one store does that executes the
//! commands in the order of their places.

use super::{REPLY, key, place, value};
use core::net::{Ipv4Addr, SocketAddrV4};
use proptest::prelude::*;
use stateplane_multicast_store::{
    Command, Key, MAX_KEYS, Message, Operation, Outcome, Reason, Replica, ReplicaConfig, Snapshot,
    StoreConfig, To, Transmit, Value,
};
use std::collections::{BTreeMap, BTreeSet};

const SHARDS: u8 = 3;
const REPLICAS: usize = 2;
const CLIENTS: u64 = 3;
const KEYS: u8 = 6;

/// The store as one state machine, written from the operations' description alone.
#[derive(Default)]
pub(crate) struct Model {
    records: BTreeMap<Key, Value>,
    last: BTreeMap<u64, (u64, Outcome)>,
}

impl Model {
    pub(crate) fn outcome(&mut self, command: &Command) -> Outcome {
        let number = command.number;
        if let Some((last, outcome)) = self.last.get(&command.client) {
            if *last == number {
                return outcome.clone();
            }
            if *last > number {
                return Outcome::Refused {
                    reason: Reason::Late {},
                };
            }
        }
        let outcome = self.execute(&command.operation);
        self.last.insert(command.client, (number, outcome.clone()));
        outcome
    }

    fn execute(&mut self, operation: &Operation) -> Outcome {
        let keys = operation.keys();
        let values: Vec<_> = keys
            .iter()
            .map(|key| self.records.get(key).cloned())
            .collect();
        match operation {
            Operation::Open {} => Outcome::Opened {},
            Operation::Get { .. } | Operation::Read { .. } => Outcome::Values { values },
            Operation::Put { key, value } => {
                self.records.insert(key.clone(), value.clone());
                Outcome::Done {}
            }
            Operation::Delete { key } => {
                self.records.remove(key);
                Outcome::Done {}
            }
            Operation::Swap {
                key,
                expected,
                value,
            } => {
                let done = values[0] == *expected;
                if done {
                    self.records.remove(key);
                    let value = value.iter().cloned();
                    self.records.extend(value.map(|value| (key.clone(), value)));
                }
                Outcome::Decided { done, values }
            }
            Operation::Move { from, to } => {
                let done = values[0].is_some() && values[1].is_none() && from != to;
                if done && let Some(value) = self.records.remove(from) {
                    self.records.insert(to.clone(), value);
                }
                Outcome::Decided { done, values }
            }
        }
    }
}

fn keys() -> impl Strategy<Value = Key> {
    (0..KEYS).prop_map(|number| key(&format!("key {number}")))
}

fn values() -> impl Strategy<Value = Value> {
    (0..3u8).prop_map(|number| value(&number.to_string()))
}

fn operations() -> impl Strategy<Value = Operation> {
    let found = || prop::option::of(values());
    prop_oneof![
        keys().prop_map(|key| Operation::Get { key }),
        (keys(), values()).prop_map(|(key, value)| Operation::Put { key, value }),
        keys().prop_map(|key| Operation::Delete { key }),
        (keys(), found(), found()).prop_map(|(key, expected, value)| Operation::Swap {
            key,
            expected,
            value
        }),
        (keys(), keys()).prop_map(|(from, to)| Operation::Move { from, to }),
        (keys(), keys()).prop_map(|(from, to)| Operation::Move { from, to }),
        prop::collection::vec(keys(), 1..MAX_KEYS).prop_map(|keys| Operation::Read { keys }),
    ]
}

/// Commands in the order of their places: each client opens, and goes on; some are sent twice.
fn commands(choices: Vec<(u64, bool, Operation)>) -> Vec<Command> {
    let mut all: Vec<Command> = Vec::new();
    let mut numbers = BTreeMap::new();
    for client in 0..CLIENTS {
        let operation = Operation::Open {};
        all.push(Command {
            client,
            number: 0,
            opened: place(0),
            reply: REPLY,
            operation,
        });
    }
    for (client, again, operation) in choices {
        let of = |command: &&Command| command.client == client && command.number > 0;
        let before = all.iter().rfind(of).cloned();
        match before.filter(|_| again) {
            Some(before) => all.push(before),
            None => {
                let number = numbers.entry(client).or_insert(0);
                *number += 1;
                // The clients' first commands have the places 1, 2 and so on.
                let opened = place(client + 1);
                let number = *number;
                all.push(Command {
                    client,
                    number,
                    opened,
                    reply: REPLY,
                    operation,
                });
            }
        }
    }
    all
}

struct Node {
    shard: u8,
    replica: Replica,
    /// Commands that its receiver has delivered, or passed over.
    next: usize,
}

struct Run {
    now: u64,
    commands: Vec<Command>,
    nodes: Vec<Node>,
    /// Datagrams under way: from, to, bytes.
    net: Vec<(usize, usize, Vec<u8>)>,
    /// The operation that was executed at a place.
    outcomes: BTreeMap<u64, BTreeSet<String>>,
}

fn config(shard: u8) -> ReplicaConfig {
    ReplicaConfig {
        queue: 4,
        ..ReplicaConfig::new(StoreConfig::new(shard, SHARDS))
    }
}

fn address(node: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, node as u8), 4801)
}

impl Run {
    fn new(commands: Vec<Command>) -> Run {
        let shards = (0..SHARDS).flat_map(|shard| [shard; REPLICAS]);
        let node = |shard| Node {
            shard,
            replica: Replica::new(config(shard)),
            next: 0,
        };
        Run {
            now: 0,
            commands,
            nodes: shards.map(node).collect(),
            net: Vec::new(),
            outcomes: BTreeMap::new(),
        }
    }

    /// The next message of a receiver, if its replica has room.
    fn deliver(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        while let Some(command) = self
            .commands
            .get(node.next)
            .filter(|_| node.replica.has_room())
        {
            node.next += 1;
            let groups = command.operation.groups(SHARDS);
            if (groups >> node.shard) & 1 == 0 {
                continue;
            }
            let payload = Message::Command {
                command: command.clone(),
            }
            .to_vec();
            let place = place(node.next as u64);
            node.replica
                .handle_delivery(self.now, place, groups, payload);
            break;
        }
        self.collect(at);
    }

    fn collect(&mut self, at: usize) {
        while let Some(Transmit { to, bytes }) = self.nodes[at].replica.poll_transmit() {
            for (other, node) in self.nodes.iter().enumerate() {
                if to == To::Shard(node.shard) || to == To::Address(address(other)) {
                    self.net.push((at, other, bytes.clone()));
                }
            }
        }
        while let Some(executed) = self.nodes[at].replica.poll_executed() {
            let told = format!("{:?} {:?}", executed.command.number, executed.outcome);
            self.outcomes
                .entry(executed.at.time)
                .or_default()
                .insert(told);
        }
    }

    fn step(&mut self, choice: u32) {
        self.now += 1_000;
        let which = (choice >> 8) as usize;
        let node = which % self.nodes.len();
        match choice % 16 {
            // A datagram arrives, arrives and stays, or is lost.
            0..8 if !self.net.is_empty() => {
                let place = which % self.net.len();
                let (from, to, bytes) = self.net[place].clone();
                if !choice.is_multiple_of(16) {
                    self.net.swap_remove(place);
                }
                if choice % 16 != 7 {
                    let from = address(from);
                    self.nodes[to]
                        .replica
                        .handle_datagram(self.now, from, &bytes);
                    self.collect(to);
                }
            }
            8..14 => self.deliver(node),
            14 => {
                // Its receiver is listed at a place that the peer's state has passed.
                let peer = &self.nodes[node ^ 1];
                let bytes = peer.replica.snapshot().to_vec();
                let config = config(peer.shard);
                let snapshot = Snapshot::parse(config.store, &bytes).expect("a snapshot");
                let after = snapshot.at().time.saturating_sub(u64::from(choice >> 28));
                let next = after as usize;
                let replica = Replica::joining(config, snapshot);
                self.nodes[node] = Node {
                    shard: config.store.shard,
                    replica,
                    next,
                };
            }
            _ => {
                self.nodes[node].replica.handle_timeout(self.now);
                self.collect(node);
            }
        }
    }

    /// All arrives from here on.
    fn settle(&mut self) {
        for _ in 0..100 * (1 + self.commands.len()) {
            self.now += 1_000;
            for node in 0..self.nodes.len() {
                self.deliver(node);
                self.nodes[node].replica.handle_timeout(self.now);
                self.collect(node);
            }
            for (from, to, bytes) in core::mem::take(&mut self.net) {
                let from = address(from);
                self.nodes[to]
                    .replica
                    .handle_datagram(self.now, from, &bytes);
                self.collect(to);
            }
            let done = |node: &Node| node.next >= self.commands.len() && node.replica.queued() == 0;
            if self.nodes.iter().all(done) {
                return;
            }
        }
        let waits: Vec<_> = self
            .nodes
            .iter()
            .map(|node| node.replica.waits_for())
            .collect();
        panic!("it does not settle: {waits:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn replicas_decide_as_one_store(
        choices in prop::collection::vec((0..CLIENTS, prop::bool::weighted(0.15), operations()), 1..40),
        steps in prop::collection::vec(any::<u32>(), 0..600),
    ) {
        let mut run = Run::new(commands(choices));
        for step in steps {
            run.step(step);
        }
        run.settle();
        let mut model = Model::default();
        for (at, command) in (1..).zip(&run.commands) {
            let outcome = model.outcome(command);
            let told = format!("{:?} {outcome:?}", command.number);
            prop_assert_eq!(run.outcomes.get(&at), Some(&BTreeSet::from([told])), "{:?}", command);
        }
        let mut records = BTreeMap::new();
        for pair in run.nodes.chunks(REPLICAS) {
            let [one, other] = pair else {
                unreachable!("each shard has two replicas")
            };
            prop_assert_eq!(one.replica.snapshot().to_vec(), other.replica.snapshot().to_vec());
            let own = one.replica.store().records();
            records.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        }
        prop_assert_eq!(records, model.records);
    }
}
