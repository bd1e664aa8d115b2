//! Servers of a store under a controller that changes the chain at will, switches that write, an observer,
//! and a network that loses, repeats and exchanges datagrams, in virtual time from one seed.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use stateplane_observe::{Change, Event, Faults, Holding, Observer, Operation, Outcome, Settings};
use stateplane_store::{ClassConfig, Config, FirstLease, IdleTimeouts, Lease, Recipient, Server};
use stateplane_wire::control::{ChainConfig, Member, Message};
use stateplane_wire::replication::{Key, MessageType, Packet, RefusalCode, Repr};

/// µs between two looks at everything.
const TICK: u64 = 50;

const SERVERS: u32 = 5;
const SWITCHES: u32 = 3;

/// Flows that switches write, and flows to which the observer alone adds.
const WRITTEN: u8 = 100;
const ADDED: u8 = 4;

const OBSERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 9, 9), 5_000);
const OBSERVER_NUMBER: u32 = 60_000;

/// Rules that are turned off.
#[derive(Clone, Copy, Debug, Default)]
pub struct Off {
    pub observer: Faults,
    pub store: stateplane_store::Faults,
}

/// A seed's end.
#[derive(Debug, Default)]
pub struct Report {
    /// The judge's first objection.
    pub objection: Option<String>,
    /// Ticks at which the view was complete.
    pub told: u64,
    /// Changes that were done.
    pub done: u64,
    /// Configurations of the chain.
    pub configurations: u32,
}

type Version = (u32, u32);

/// One attempt of a switch to write a flow.
struct Write {
    key: Key,
    claim: u32,
    state: [u8; 4],
    lease: Option<Version>,
    sent: u32,
    due: u64,
    end: u64,
}

pub struct World {
    now: u64,
    rng: SmallRng,
    loss: f64,
    net: BTreeMap<(u64, u64), (SocketAddrV4, SocketAddrV4, Vec<u8>)>,
    order: u64,
    servers: Vec<Server>,
    /// Servers that neither the controller nor other servers reach.
    apart: BTreeSet<u32>,
    config: ChainConfig,
    writes: Vec<Option<Write>>,
    last_claim: u32,
    last_state: u32,
    observer: Observer,
    off: Off,
    /// Changes under way: flow, and when they are given up.
    adding: BTreeMap<u64, (Key, u64)>,
    /// Times at which switches were told of writes, by flow.
    acknowledged: BTreeMap<Key, Vec<(u64, Version)>>,
    /// States that were sent to be written.
    written: BTreeMap<(Key, Version), Vec<u8>>,
    /// The newest version that was seen in the view.
    seen: BTreeMap<Key, Version>,
    /// Changes of each flow that were done, and that may have been.
    added: BTreeMap<Key, (u32, u32)>,
    /// The view that was judged last.
    judged: Option<(u64, u64)>,
    report: Report,
}

fn member(server: u32) -> Member {
    let address = Ipv4Addr::new(10, 0, 1, server as u8);
    Member {
        server,
        incarnation: 1,
        requests: SocketAddrV4::new(address, 4793),
        links: SocketAddrV4::new(address, 4794),
    }
}

fn switch(number: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1 + number as u8), 4793)
}

/// Flows of class 1 are written by switches and forgotten soon, those of class 2 added to.
fn key(class: u8, number: u8) -> Key {
    let mut key = [0; 16];
    key[..2].copy_from_slice(&[class, number]);
    Key(key)
}

fn template(off: Off) -> Config {
    let class = |class, idle| ClassConfig {
        class,
        state_length: 4,
        first_lease: FirstLease::Zero,
        shared_only: false,
        idle,
        quota: None,
    };
    let soon = IdleTimeouts {
        default: Some(60_000),
        ..IdleTimeouts::never()
    };
    let config = Config::new(1, 0)
        .with_class(class(1, soon))
        .with_class(class(2, IdleTimeouts::never()));
    let mut config = Config {
        term: 10_000,
        backing: 12_000,
        faults: off.store,
        ..config
    };
    // Copies of the records take several parts.
    config.limits.batch = 200;
    config
}

impl World {
    pub fn new(seed: u64, off: Off) -> World {
        let mut rng = SmallRng::seed_from_u64(seed);
        // In some runs the observer falls behind.
        let changes = [40, 1 << 16][rng.random_range(0..2)];
        let servers = (0..SERVERS).map(|server| {
            let mut template = template(off);
            template.stream = rng.random();
            template.limits.observed_changes = changes;
            Server::managed(template, member(server), 20_000, 0).expect("a server")
        });
        let servers = servers.collect();
        let settings = Settings {
            stores: (0..SERVERS).map(|server| member(server).requests).collect(),
            switch: OBSERVER_NUMBER,
            incarnation: 7,
            classes: BTreeSet::new(),
            told_classes: BTreeSet::new(),
            poll_us: 1_000,
            retry_us: 1_500,
            most_flows: 1_000,
            faults: off.observer,
        };
        let observer = Observer::new(settings, 0).expect("an observer");
        let loss = [0.0, 0.0, 0.05, 0.2][rng.random_range(0..4)];
        let length = rng.random_range(1..=3);
        World {
            now: 0,
            loss,
            net: BTreeMap::new(),
            order: 0,
            servers,
            apart: BTreeSet::new(),
            config: ChainConfig {
                chain: 0,
                epoch: 1,
                members: (0..length).map(member).collect(),
                joining: None,
            },
            writes: (0..SWITCHES).map(|_| None).collect(),
            last_claim: 0,
            last_state: 0,
            observer,
            off,
            adding: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            written: BTreeMap::new(),
            seen: BTreeMap::new(),
            added: BTreeMap::new(),
            judged: None,
            report: Report::default(),
            rng,
        }
    }

    /// Runs for `length` µs under faults, then until all is quiet.
    pub fn run(mut self, length: u64) -> Report {
        self.configure();
        let mut fault = 20_000;
        while self.now < length {
            if self.now >= fault {
                self.disturb();
                fault = self.now + self.rng.random_range(3_000..60_000);
            }
            self.begin_writes();
            self.begin_addition();
            self.tick();
            if self.report.objection.is_some() {
                return self.finish();
            }
        }
        self.loss = 0.0;
        let end = self.now + 1_000_000;
        while self.now < end && self.report.objection.is_none() {
            self.tick();
        }
        if self.report.objection.is_none() {
            self.judge_end();
        }
        self.finish()
    }

    fn finish(mut self) -> Report {
        self.report.configurations = self.config.epoch;
        self.report
    }

    fn tick(&mut self) {
        self.now += TICK;
        if self.now.is_multiple_of(5_000) {
            self.end_join();
            self.configure();
        }
        while let Some((&at, _)) = self.net.first_key_value()
            && at.0 <= self.now
            && let Some((from, to, bytes)) = self.net.remove(&at)
        {
            self.deliver(from, to, &bytes);
        }
        for at in 0..self.servers.len() {
            let due = self.servers[at].poll_timeout();
            if due.is_some_and(|due| due <= self.now) {
                self.servers[at].handle_timeout(self.now);
            }
            self.flush(at);
        }
        self.repeat_writes();
        if self
            .observer
            .poll_timeout()
            .is_some_and(|due| due <= self.now)
        {
            self.observer.handle_timeout(self.now);
        }
        self.flush_observer();
        self.judge();
    }

    fn send(&mut self, from: SocketAddrV4, to: SocketAddrV4, bytes: Vec<u8>) {
        let copies = match self.rng.random::<f64>() {
            lost if lost < self.loss => 0,
            twice if twice > 1.0 - self.loss / 2.0 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let late = self.rng.random_bool(0.02);
            let delay = self.rng.random_range(20..if late { 4_000 } else { 200 });
            self.order += 1;
            let place = (self.now + delay, self.order);
            self.net.insert(place, (from, to, bytes.clone()));
        }
    }

    fn server_at(&self, address: SocketAddrV4) -> Option<usize> {
        (0..SERVERS as usize).find(|at| *address.ip() == *member(*at as u32).links.ip())
    }

    fn flush(&mut self, at: usize) {
        let own = member(at as u32);
        while let Some(datagram) = self.servers[at].poll_transmit(self.now) {
            let (from, to) = match datagram.to {
                Recipient::Switch(to) => (own.requests, to),
                Recipient::Neighbour(to) => (own.links, to),
                Recipient::Controller => continue,
            };
            self.send(from, to, datagram.bytes.to_vec());
        }
    }

    fn flush_observer(&mut self) {
        while let Some((to, bytes)) = self.observer.poll_transmit() {
            if let Ok(packet) = Packet::new_checked(&bytes)
                && packet.message_type() == MessageType::WriteRequest
            {
                let version = (packet.lease_epoch(), packet.sequence());
                let state = packet.state().to_vec();
                self.written.insert((packet.key(), version), state);
            }
            self.send(OBSERVER, to, bytes);
        }
        while let Some(event) = self.observer.poll_event() {
            let Event::Done { ticket, outcome } = event else {
                continue;
            };
            let Some((key, end)) = self.adding.remove(&ticket) else {
                continue;
            };
            let flow = self.observer.flow(&key).next();
            let viewed = flow.map(|(_, flow)| (flow.epoch, flow.sequence));
            if let Outcome::Done {
                epoch, sequence, ..
            } = outcome
                && viewed.is_none_or(|viewed| viewed < (epoch, sequence))
                && self.now < end
            {
                self.object(format!("{key}: a change is done that the view lacks"));
            }
            let (done, perhaps) = self.added.entry(key).or_default();
            match outcome {
                Outcome::Done {
                    epoch, sequence, ..
                } => {
                    *done += 1;
                    self.report.done += 1;
                    self.acknowledge(key, (epoch, sequence));
                }
                Outcome::Unknown => *perhaps += 1,
                _ => {}
            }
        }
    }

    fn deliver(&mut self, from: SocketAddrV4, to: SocketAddrV4, bytes: &[u8]) {
        if to == OBSERVER {
            self.observer.handle_datagram(self.now, from, bytes);
            return self.flush_observer();
        }
        if let Some(at) = (0..self.writes.len()).find(|at| switch(*at) == to) {
            return self.answered(at, bytes);
        }
        let Some(at) = self.server_at(to) else { return };
        if to.port() == 4793 {
            self.servers[at].handle_request(self.now, from, bytes);
        } else {
            let other = self.server_at(from).map(|other| other as u32);
            if self.apart.contains(&(at as u32)) || other.is_some_and(|it| self.apart.contains(&it))
            {
                return;
            }
            self.servers[at].handle_link(self.now, from, bytes);
        }
        self.flush(at);
    }

    /// Tells all servers that the controller reaches of the configuration.
    fn configure(&mut self) {
        let message = Message::Configure {
            controller: 1,
            config: self.config.clone(),
        };
        for at in 0..SERVERS {
            if !self.apart.contains(&at) {
                self.servers[at as usize].handle_control(self.now, &message.to_vec());
            }
        }
    }

    /// Makes a replica a member that has joined.
    fn end_join(&mut self) {
        let tail = self.config.members.last().expect("a tail").server as usize;
        let replica = self.servers[tail].replica(0);
        if replica.is_some_and(|it| it.place().epoch == self.config.epoch && it.has_joined())
            && let Some(joining) = self.config.joining.take()
        {
            // Now and then all others die when it counts.
            if self.rng.random_bool(0.3) {
                let gone = self.config.members.drain(..);
                self.apart.extend(gone.map(|member| member.server));
            }
            self.config.members.push(joining);
            self.config.epoch += 1;
        }
    }

    /// Changes the chain.
    fn disturb(&mut self) {
        let members: Vec<u32> = self.config.members.iter().map(|it| it.server).collect();
        if self.config.joining.is_some() {
            if self.rng.random_bool(0.5) {
                return;
            }
            self.config.joining = None;
        } else if members.len() > 1 && self.rng.random_bool(0.5) {
            let at = self.rng.random_range(0..members.len());
            let gone = self.config.members.remove(at);
            if self.rng.random_bool(0.6) {
                self.apart.insert(gone.server);
            }
        } else if members.len() < 4 {
            let spare = (0..SERVERS).filter(|it| !members.contains(it));
            let spare: Vec<u32> = spare.collect();
            let Some(&joining) = spare.choose(&mut self.rng) else {
                return;
            };
            self.apart.remove(&joining);
            self.config.joining = Some(member(joining));
        } else {
            return;
        }
        self.config.epoch += 1;
        self.configure();
    }

    fn begin_writes(&mut self) {
        for at in 0..self.writes.len() {
            if self.writes[at].is_some() || !self.rng.random_bool(0.03) {
                continue;
            }
            self.last_claim += 1;
            self.last_state += 1;
            // A switch takes leases of the observer's flows too, and writes nothing there.
            let other = self.rng.random_bool(0.1);
            let key = if other {
                key(2, self.rng.random_range(0..ADDED))
            } else {
                key(1, self.rng.random_range(0..WRITTEN))
            };
            self.writes[at] = Some(Write {
                key,
                claim: self.last_claim,
                state: self.last_state.to_be_bytes(),
                lease: None,
                sent: 0,
                due: self.now,
                end: self.now + 15_000,
            });
        }
    }

    fn repeat_writes(&mut self) {
        for at in 0..self.writes.len() {
            let Some(write) = &mut self.writes[at] else {
                continue;
            };
            if self.now >= write.end {
                self.writes[at] = None;
                continue;
            }
            if self.now < write.due {
                continue;
            }
            write.sent += 1;
            write.due = self.now + 1_000;
            let request = Repr {
                shard: 0,
                chain_epoch: self.config.epoch,
                switch_id: 1 + at as u32,
                incarnation: 1,
                claim: write.claim,
                request: 1,
                ..Repr::new(MessageType::LeaseRequest, write.key)
            };
            let request = match write.lease {
                None => request,
                Some((lease_epoch, sequence)) => {
                    self.written
                        .insert((write.key, (lease_epoch, sequence)), write.state.to_vec());
                    Repr {
                        message_type: MessageType::WriteRequest,
                        lease_epoch,
                        sequence,
                        state: &write.state,
                        ..request
                    }
                }
            };
            let bytes = request.to_vec().expect("a request");
            // Now and then a server is asked that was cut out.
            let head = self.config.members[0].requests;
            let to = match self.apart.first() {
                Some(&apart) if self.rng.random_bool(0.3) => member(apart).requests,
                _ => head,
            };
            self.send(switch(at), to, bytes);
        }
    }

    fn answered(&mut self, at: usize, bytes: &[u8]) {
        let Ok(packet) = Packet::new_checked(bytes) else {
            return;
        };
        let Some(write) = &mut self.writes[at] else {
            return;
        };
        if packet.claim() != write.claim {
            return;
        }
        match (packet.message_type(), write.lease) {
            (MessageType::LeaseReply, None) if write.key.class() == 1 => {
                write.lease = Some((packet.lease_epoch(), packet.sequence() + 1));
                write.due = self.now;
            }
            (MessageType::LeaseReply, None) => self.writes[at] = None,
            (MessageType::WriteReply, Some(lease)) if packet.lease_epoch() == lease.0 => {
                let key = write.key;
                self.writes[at] = None;
                self.acknowledge(key, lease);
            }
            (MessageType::Refusal, Some(_)) if packet.code() == RefusalCode::Fenced as u8 => {
                self.writes[at] = None;
            }
            _ => {}
        }
    }

    fn acknowledge(&mut self, key: Key, version: Version) {
        let told = self.acknowledged.entry(key).or_default();
        told.push((self.now, version));
    }

    fn begin_addition(&mut self) {
        if self.adding.len() >= 6 || !self.rng.random_bool(0.01) {
            return;
        }
        let key = key(2, self.rng.random_range(0..ADDED));
        let end = self.now + self.rng.random_range(2_000..60_000);
        let change = Change {
            key,
            shard: Some(0),
            operation: Operation::Add {
                at: 0,
                length: 4,
                amount: 1,
            },
            end,
        };
        if let Ok(ticket) = self.observer.begin(self.now, change) {
            self.adding.insert(ticket, (key, end));
        }
        self.flush_observer();
    }

    fn object(&mut self, what: String) {
        let now = self.now;
        let objection = &mut self.report.objection;
        objection.get_or_insert_with(|| format!("{what}, at {now} µs"));
    }

    /// Compares the view with what switches were told.
    fn judge(&mut self) {
        let Some(as_of) = self.observer.as_of() else {
            return;
        };
        self.report.told += 1;
        let revision = self.observer.revision();
        if self.judged.replace((as_of, revision)) == Some((as_of, revision)) {
            return;
        }
        let flows: Vec<(Key, Version, Vec<u8>)> = self
            .observer
            .flows()
            .map(|(_, key, flow)| (*key, (flow.epoch, flow.sequence), flow.state.clone()))
            .collect();
        for (key, version, state) in flows {
            let acknowledged = self.acknowledged.get(&key).into_iter().flatten();
            let before = acknowledged.filter(|(at, _)| *at < as_of);
            let newest = before.map(|(_, version)| *version).max();
            if newest.is_some_and(|newest| newest > version) {
                self.object(format!(
                    "{key}: the view has {version:?} as of {as_of}, and {newest:?} was told before"
                ));
            }
            let seen = self.seen.entry(key).or_insert(version);
            let last = core::mem::replace(seen, version);
            if last > version {
                self.object(format!(
                    "{key}: the view goes back from {last:?} to {version:?}"
                ));
            }
            // A lease's grant changes the epoch alone.
            let sequence = version.1;
            let of_key = self.written.range((key, (0, 0))..=(key, version));
            let mut written = of_key.filter(|((_, it), _)| it.1 == sequence).peekable();
            let is_first = sequence == 1 && state == [0; 4];
            if !is_first && written.peek().is_some() && !written.any(|(_, it)| *it == state) {
                self.object(format!("{key}: nobody wrote {state:?} as {version:?}"));
            }
        }
    }

    /// In the end the view is what the tail has, and each addition counts once.
    fn judge_end(&mut self) {
        let Some(as_of) = self.observer.as_of() else {
            return self.object("the view is not complete in the end".to_owned());
        };
        if self.now - as_of > 50_000 {
            self.object(format!("the view is as of {as_of} in the end"));
        }
        let tail = self.config.members.last().expect("a tail").server as usize;
        let Some(replica) = self.servers[tail].replica(0) else {
            return self.object("the tail has no replica".to_owned());
        };
        let has = |(_, key, record): (u16, &Key, &stateplane_store::Record)| {
            let version = (record.epoch(), record.sequence());
            let lease = match record.lease() {
                Lease::None => Holding::Nobody,
                Lease::Exclusive(_) => Holding::Owner,
                Lease::Shared(_) => Holding::Readers,
            };
            (*key, version, record.state().to_vec(), lease)
        };
        let stored: Vec<_> = replica.records().map(has).collect();
        let flows = self.observer.flows();
        let viewed: Vec<_> = flows
            .map(|(_, key, flow)| {
                let version = (flow.epoch, flow.sequence);
                (*key, version, flow.state.clone(), flow.lease)
            })
            .collect();
        if stored != viewed {
            let differs = viewed.iter().find(|it| !stored.contains(it));
            let missing = stored.iter().find(|it| !viewed.contains(it));
            self.object(format!(
                "in the end the view has {differs:?}, the tail {missing:?}"
            ));
        }
        for number in 0..ADDED {
            let key = key(2, number);
            let (done, perhaps) = self.added.get(&key).copied().unwrap_or_default();
            let found = viewed.iter().find(|(it, ..)| *it == key);
            let value = found.map_or(0, |(_, _, state, _)| {
                state
                    .iter()
                    .fold(0u32, |sum, byte| sum << 8 | u32::from(*byte))
            });
            if !(done..=done + perhaps).contains(&value) {
                self.object(format!(
                    "{key} holds {value} after {done} additions and {perhaps} that are unknown"
                ));
            }
        }
        if self.off.store == stateplane_store::Faults::default() && !self.adding.is_empty() {
            self.object(format!("{} changes have not ended", self.adding.len()));
        }
    }
}
