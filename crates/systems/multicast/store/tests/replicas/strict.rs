//! Clients and replicas over a model of multicast: groups that append, learn of final timestamps and
//! deliver at any time (`docs/multicast-protocol.md`, rules 2, 13, 14, 18). The checkers of
//! `stateplane-history` judge what clients saw.

use super::key_of;
use core::net::{Ipv4Addr, SocketAddrV4};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRng, TestRunner};
use stateplane_history::Object;
use stateplane_history::multicast::{
    Event, EventKind, Final, History, Multicast, MulticastEvent, Request, Response, checkers, judge,
};
use stateplane_multicast::FinalTime;
use stateplane_multicast_store::{
    Client, ClientConfig, Found, Key, Message, Operation, Outcome, Replica, ReplicaConfig,
    StoreConfig, To, Value,
};
use std::collections::{BTreeMap, BTreeSet};

const SHARDS: u8 = 2;
const REPLICAS: usize = 2;
const CLIENTS: usize = 3;

/// A message of multicast.
struct Sent {
    groups: u32,
    payload: Vec<u8>,
    /// Timestamps that its groups gave it so far.
    times: BTreeMap<u8, u64>,
}

impl Sent {
    fn place(&self) -> Option<FinalTime> {
        let all = self.times.len() == self.groups.count_ones() as usize;
        let times = self.times.iter().map(|(group, time)| FinalTime {
            time: *time,
            group: *group,
        });
        times.max().filter(|_| all)
    }
}

/// The log of a group.
#[derive(Default)]
struct Group {
    /// Timestamps, and numbers of messages; no-ops have none.
    log: Vec<(u64, Option<usize>)>,
    /// Messages whose final timestamps it knows.
    known: BTreeSet<usize>,
}

impl Group {
    fn clock(&self) -> u64 {
        self.log.last().map_or(0, |(time, _)| *time)
    }
}

struct Node {
    shard: u8,
    replica: Replica,
    delivered: BTreeSet<usize>,
    /// Commands that it executed.
    executed: BTreeSet<(u64, u64)>,
}

struct Run {
    now: u64,
    /// Clients are answered when each shard has delivered, before replicas have heard of each other.
    hasty: bool,
    sent: Vec<Sent>,
    groups: Vec<Group>,
    nodes: Vec<Node>,
    clients: Vec<Client>,
    /// Datagrams under way: the receiving node, or a client, and the sending node.
    net: Vec<(Result<usize, usize>, usize, Vec<u8>)>,
    events: Vec<Event>,
    /// Events at which a shard first delivered a message.
    deliveries: BTreeMap<(usize, u8), usize>,
}

fn address(kind: u8, number: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, kind, number as u8), 4801)
}

fn object(bytes: &[u8]) -> Object {
    Object::new(core::str::from_utf8(bytes).expect("a text"))
}

fn objects(values: &[Found]) -> Vec<Option<Object>> {
    let values = values.iter();
    let values = values.map(|value| value.as_ref().map(|value| object(value.bytes())));
    values.collect()
}

fn request(operation: &Operation) -> Option<Request> {
    let of = |key: &Key| object(key.bytes());
    let found = |value: &Found| value.as_ref().map(|value| object(value.bytes()));
    Some(match operation {
        Operation::Open {} => return None,
        Operation::Get { key } => Request::Get { key: of(key) },
        Operation::Put { key, value } => Request::Put {
            key: of(key),
            value: object(value.bytes()),
        },
        Operation::Delete { key } => Request::Delete { key: of(key) },
        Operation::Swap {
            key,
            expected,
            value,
        } => Request::Swap {
            key: of(key),
            expected: found(expected),
            value: found(value),
        },
        Operation::Move { from, to } => Request::Move {
            from: of(from),
            to: of(to),
        },
        Operation::Read { keys } => Request::Read {
            keys: keys.iter().map(of).collect(),
        },
    })
}

fn response(outcome: &Outcome) -> Option<Response> {
    Some(match outcome {
        Outcome::Opened {} | Outcome::Refused { .. } => return None,
        Outcome::Done {} => Response::Done,
        Outcome::Values { values } => Response::Values {
            values: objects(values),
        },
        Outcome::Decided { done, values } => Response::Decided {
            done: *done,
            values: objects(values),
        },
    })
}

/// Number of an operation in histories.
fn numbered(client: u64, number: u64) -> u64 {
    client * 1000 + number
}

fn call(client: u64, number: u64, request: Request) -> EventKind {
    EventKind::Call {
        node: client as u32,
        object: Object::new("store"),
        operation: numbered(client, number),
        request,
    }
}

fn answer(client: u64, number: u64, response: Response) -> EventKind {
    EventKind::Return {
        node: client as u32,
        object: Object::new("store"),
        operation: numbered(client, number),
        response,
    }
}

fn executed(node: usize, group: u8, operation: u64, at: FinalTime) -> EventKind {
    EventKind::Of(MulticastEvent::Executed {
        node: 100 + node as u32,
        group,
        operation,
        at: Final {
            time: at.time,
            group: at.group,
        },
    })
}

fn operation(choice: u32) -> Operation {
    // Three keys, of both shards.
    let names = [key_of(0, 0), key_of(1, 0), key_of(0, 1)];
    let name = |draw: u32| names[draw as usize % 3].clone();
    let value = Value::new(((choice >> 20) % 100).to_string()).expect("a value");
    let (one, other) = (name(choice >> 4), name(choice >> 6));
    match choice % 8 {
        0 => Operation::Get { key: one },
        1 | 2 => Operation::Put { key: one, value },
        3 => Operation::Delete { key: one },
        4 => Operation::Swap {
            key: one,
            expected: None,
            value: Some(value),
        },
        5 => Operation::Move {
            from: one,
            to: other,
        },
        _ => Operation::Read {
            keys: names.to_vec(),
        },
    }
}

impl Run {
    fn new(hasty: bool) -> Run {
        let shards = (0..SHARDS).flat_map(|shard| [shard; REPLICAS]);
        let node = |shard| Node {
            shard,
            replica: Replica::new(ReplicaConfig::new(StoreConfig::new(shard, SHARDS))),
            delivered: BTreeSet::new(),
            executed: BTreeSet::new(),
        };
        let client = |number: usize| {
            let config = ClientConfig {
                client: number as u64,
                shards: SHARDS,
                reply: address(1, number),
                repeat_us: 60_000,
                longest_repeat_us: 60_000,
            };
            Client::new(0, config)
        };
        Run {
            now: 0,
            hasty,
            sent: Vec::new(),
            groups: (0..SHARDS).map(|_| Group::default()).collect(),
            nodes: shards.map(node).collect(),
            clients: (0..CLIENTS).map(client).collect(),
            net: Vec::new(),
            events: Vec::new(),
            deliveries: BTreeMap::new(),
        }
    }

    fn note(&mut self, kind: EventKind) {
        let at = self.events.len() as u64;
        self.events.push(Event { at, kind });
    }

    fn client(&mut self, at: usize, choice: u32) {
        let client = &mut self.clients[at];
        client.handle_timeout(self.now);
        if let Ok(number) = client.call(self.now, operation(choice)) {
            let request = request(&operation(choice)).expect("a request");
            self.note(call(at as u64, number, request));
        }
        while let Some((groups, payload)) = self.clients[at].poll_send() {
            let times = BTreeMap::new();
            self.sent.push(Sent {
                groups,
                payload,
                times,
            });
        }
    }

    /// A group takes a message that it has not, if there is one.
    fn append(&mut self, group: u8, which: usize) {
        let lacks =
            |sent: &Sent| (sent.groups >> group) & 1 == 1 && !sent.times.contains_key(&group);
        let open: Vec<usize> = (0..self.sent.len())
            .filter(|at| lacks(&self.sent[*at]))
            .collect();
        if let Some(&message) = open.get(which % open.len().max(1)) {
            let log = &mut self.groups[usize::from(group)];
            let time = log.clock() + 1;
            log.log.push((time, Some(message)));
            self.sent[message].times.insert(group, time);
        }
    }

    /// A group learns the final timestamp of a message, if one has it.
    fn learn(&mut self, group: u8, which: usize) {
        let log = &mut self.groups[usize::from(group)];
        let messages = log.log.iter().filter_map(|(_, message)| *message);
        let open: Vec<usize> = messages
            .filter(|at| !log.known.contains(at) && self.sent[*at].place().is_some())
            .collect();
        if let Some(&message) = open.get(which % open.len().max(1))
            && let Some(at) = self.sent[message].place()
        {
            log.known.insert(message);
            if at.time > log.clock() {
                log.log.push((at.time, None));
            }
        }
    }

    /// A receiver delivers the next message, if it can (rule 18).
    fn deliver(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let group = &self.groups[usize::from(node.shard)];
        let known = |entry: &&(u64, Option<usize>)| {
            entry.1.is_none_or(|message| group.known.contains(&message))
        };
        let taken: Vec<_> = group.log.iter().take_while(known).collect();
        let Some((watermark, _)) = taken.last() else {
            return;
        };
        let waiting = taken.iter().filter_map(|(_, message)| *message);
        let waiting = waiting.filter(|message| !node.delivered.contains(message));
        let next = waiting.filter_map(|message| Some((self.sent[message].place()?, message)));
        let Some((place, message)) = next.min().filter(|(place, _)| place.time <= *watermark)
        else {
            return;
        };
        if !node.replica.has_room() {
            return;
        }
        node.delivered.insert(message);
        let shard = node.shard;
        self.deliveries
            .entry((message, shard))
            .or_insert(self.events.len());
        let Sent {
            groups, payload, ..
        } = &self.sent[message];
        node.replica
            .handle_delivery(self.now, place, *groups, payload.clone());
        if self.hasty {
            self.answer_hastily(message);
        }
        self.collect(at);
    }

    fn answer_hastily(&mut self, message: usize) {
        let sent = &self.sent[message];
        let mut shards = (0..SHARDS).filter(|shard| (sent.groups >> shard) & 1 == 1);
        if let (Ok(Message::Command { command }), Some(at)) =
            (Message::parse(&sent.payload), sent.place())
            && shards.all(|shard| self.deliveries.contains_key(&(message, shard)))
        {
            // What it says is not looked at.
            let outcome = match command.number {
                0 => Outcome::Opened {},
                _ => Outcome::Done {},
            };
            let (client, number) = (command.client, command.number);
            let answer = Message::Answer {
                client,
                number,
                at,
                outcome,
            };
            let client = &mut self.clients[client as usize];
            client.handle_datagram(&answer.to_vec());
            let _ = client.poll_reply();
        }
    }

    fn collect(&mut self, at: usize) {
        while let Some(transmit) = self.nodes[at].replica.poll_transmit() {
            for (other, node) in self.nodes.iter().enumerate() {
                if transmit.to == To::Shard(node.shard)
                    || transmit.to == To::Address(address(0, other))
                {
                    self.net.push((Ok(other), at, transmit.bytes.clone()));
                }
            }
            for client in (0..CLIENTS).filter(|_| !self.hasty) {
                if transmit.to == To::Address(address(1, client)) {
                    self.net.push((Err(client), at, transmit.bytes.clone()));
                }
            }
        }
        while let Some(of) = self.nodes[at].replica.poll_executed() {
            let number = (of.command.client, of.command.number);
            let node = &mut self.nodes[at];
            if response(&of.outcome).is_some() && node.executed.insert(number) {
                let shard = node.shard;
                self.note(executed(at, shard, numbered(number.0, number.1), of.at));
            }
        }
    }

    fn arrive(&mut self, (to, from, bytes): (Result<usize, usize>, usize, Vec<u8>)) {
        match to {
            Ok(node) => {
                let from = address(0, from);
                self.nodes[node]
                    .replica
                    .handle_datagram(self.now, from, &bytes);
                self.collect(node);
            }
            Err(at) => {
                let client = &mut self.clients[at];
                client.handle_datagram(&bytes);
                if let Some(reply) = client.poll_reply()
                    && let Some(response) = response(&reply.outcome)
                {
                    self.note(answer(at as u64, reply.number, response));
                }
            }
        }
    }

    fn step(&mut self, choice: u32) {
        self.now += 1_000;
        let which = (choice >> 8) as usize;
        let group = (which % usize::from(SHARDS)) as u8;
        match choice % 16 {
            0 | 1 => self.client(which % CLIENTS, choice >> 4),
            2..5 => self.append(group, which >> 1),
            // The second group learns late of what others decided.
            5 | 6 => self.learn(u8::from(which.is_multiple_of(6)), which >> 3),
            7..11 => self.deliver(which % self.nodes.len()),
            11 => {
                let node = which % self.nodes.len();
                self.nodes[node].replica.handle_timeout(self.now);
                self.collect(node);
            }
            _ if self.net.is_empty() => {}
            _ => {
                let parcel = self.net.swap_remove(which % self.net.len());
                // One in 16 is lost.
                if !which.is_multiple_of(16) {
                    self.arrive(parcel);
                }
            }
        }
    }

    fn history(events: Vec<Event>) -> History {
        let system = Multicast::default();
        History { system, events }
    }

    /// The history of replicas that do not wait for each other: an operation is answered as soon as
    /// each of its shards has delivered it, with the answer of one store.
    fn without_waiting(&self) -> History {
        let mut order = BTreeMap::new();
        for (number, sent) in self.sent.iter().enumerate() {
            if let (Ok(Message::Command { command }), Some(at)) =
                (Message::parse(&sent.payload), sent.place())
            {
                let first = order
                    .entry((command.client, command.number))
                    .or_insert_with(|| (at, number, command.clone()));
                if at < first.0 {
                    *first = (at, number, command);
                }
            }
        }
        let mut order: Vec<_> = order.into_values().collect();
        order.sort_by_key(|(at, ..)| *at);
        let mut model = super::runs::Model::default();
        let mut told: Vec<(usize, EventKind)> = Vec::new();
        for (at, number, command) in order {
            let outcome = model.outcome(&command);
            let shards = (0..SHARDS).filter(|shard| (self.sent[number].groups >> shard) & 1 == 1);
            let seen: Option<Vec<usize>> = shards
                .map(|shard| self.deliveries.get(&(number, shard)).copied())
                .collect();
            let operation = numbered(command.client, command.number);
            let Some(response) = response(&outcome) else {
                continue;
            };
            let last = seen.and_then(|seen| seen.into_iter().max());
            // A node of its own for each: the order of places is given.
            let done = executed(operation as usize, 0, operation, at);
            told.push((last.unwrap_or(usize::MAX), done));
            if let Some(last) = last {
                told.push((last, answer(command.client, command.number, response)));
            }
        }
        let calls = self.events.iter().enumerate();
        let calls = calls.filter(|(_, event)| matches!(event.kind, EventKind::Call { .. }));
        let calls = calls.map(|(index, event)| (index, event.kind.clone()));
        let mut all: Vec<(usize, EventKind)> = told.into_iter().chain(calls).collect();
        // What was delivered before an event of this number is before it.
        all.sort_by_key(|(index, kind)| (*index, matches!(kind, EventKind::Call { .. })));
        let events = (0..).zip(all).map(|(at, (_, kind))| Event { at, kind });
        Run::history(events.collect())
    }
}

fn run(steps: &[u32], hasty: bool) -> Run {
    let mut run = Run::new(hasty);
    for step in steps {
        run.step(*step);
    }
    run
}

fn steps() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(any::<u32>(), 200..1500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn the_store_is_strictly_serializable(steps in steps()) {
        let run = run(&steps, false);
        let objections = judge(&Run::history(run.events));
        prop_assert!(objections.is_empty(), "{}", objections[0]);
    }
}

/// Without the exchange of parts the store is serializable, and not strictly: operations of
/// different hosts that share no group have no order in real time.
#[test]
fn without_waiting_for_each_other_real_time_is_lost() {
    let seed = TestRng::deterministic_rng(Config::default().rng_algorithm);
    let mut runner = TestRunner::new_with_rng(Config::default(), seed);
    let mut strict = 0;
    let mut answered = 0;
    for _ in 0..400 {
        let steps = steps().new_tree(&mut runner).expect("steps").current();
        let history = run(&steps, true).without_waiting();
        let returns = |event: &&Event| matches!(event.kind, EventKind::Return { .. });
        answered += history.events.iter().filter(returns).count();
        let objections = judge(&history);
        let names: Vec<&str> = objections.iter().map(|of| of.checker).collect();
        assert!(
            names.iter().all(|name| *name == checkers::STRICT),
            "{}",
            objections[0]
        );
        strict += usize::from(!names.is_empty());
    }
    assert!(answered > 2000, "{answered} answers");
    assert!(strict > 0, "no run shows it");
}
