//! A replica of a shard: executes what its receiver delivers, in that order, and exchanges parts
//! with replicas of other shards.

use crate::message::{Command, Message, Outcome, Part, Reason, Verdict};
use crate::snapshot::Snapshot;
use crate::store::{Parts, Store, StoreConfig};
use core::net::SocketAddrV4;
use stateplane_multicast::FinalTime;
use std::collections::{BTreeMap, VecDeque};

/// Settings of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaConfig {
    /// Sizes of the shard.
    pub store: StoreConfig,
    /// Most messages that wait to be executed; then no more are to be fetched from the receiver.
    pub queue: usize,
    /// Parts of its own that it keeps for replicas that are behind, and of others that it keeps
    /// until it comes to their places.
    pub kept: usize,
    /// µs after which a part that is missing is asked for; the time doubles with each.
    pub ask_us: u64,
    /// Longest time between two of them, in µs.
    pub longest_ask_us: u64,
}

impl ReplicaConfig {
    /// A replica that asks for a part after 5 ms, at least each 100 ms.
    pub fn new(store: StoreConfig) -> ReplicaConfig {
        ReplicaConfig {
            store,
            queue: 1024,
            kept: 8192,
            ask_us: 5_000,
            longest_ask_us: 100_000,
        }
    }
}

/// Whom a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// All replicas of a shard.
    Shard(u8),
    /// A client or a replica.
    Address(SocketAddrV4),
}

/// A message that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// Whom it is for.
    pub to: To,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A command that was executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// Its place.
    pub at: FinalTime,
    /// Place at which the operation was executed first; that of the command, unless it is repeated.
    pub first: FinalTime,
    /// The command.
    pub command: Command,
    /// Its outcome; of a repeated operation, that of the first time.
    pub outcome: Outcome,
}

/// Counters of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplicaCounters {
    /// Commands that were executed or refused.
    pub executed: u64,
    /// Messages of multicast that are no commands.
    pub malformed: u64,
    /// Messages of multicast at places that the state has already.
    pub behind: u64,
    /// Messages that found the queue full: the program fetched too many.
    pub overflows: u64,
    /// Datagrams that are no messages of replicas.
    pub strange: u64,
    /// Parts that came too early to be kept.
    pub early: u64,
    /// Parts that were asked for.
    pub asked: u64,
}

/// A command of several shards whose parts are not all there.
#[derive(Debug)]
struct Waiting {
    at: FinalTime,
    command: Command,
    /// Shards whose parts are missing.
    missing: u32,
    parts: Parts,
    ask_at: u64,
    ask_us: u64,
}

/// A message of multicast that waits to be executed.
#[derive(Debug)]
struct Delivered {
    at: FinalTime,
    destinations: u32,
    payload: Vec<u8>,
}

/// A replica of a shard. Times are µs of any monotonic clock.
#[derive(Debug)]
pub struct Replica {
    config: ReplicaConfig,
    store: Store,
    queue: VecDeque<Delivered>,
    waiting: Option<Waiting>,
    /// Its own parts, the last ones.
    own: BTreeMap<FinalTime, Part>,
    /// Parts of others, of places to which it has not come.
    early: BTreeMap<(FinalTime, u8), Part>,
    /// A replica of this shard does not keep the part that is missing.
    gone: Option<(FinalTime, u8)>,
    transmits: VecDeque<Transmit>,
    executed: VecDeque<Executed>,
    counters: ReplicaCounters,
}

/// Shards in a map.
fn shards(map: u32) -> impl Iterator<Item = u8> {
    (0..32).filter(move |shard| (map >> shard) & 1 == 1)
}

impl Replica {
    /// A replica of an empty shard.
    pub fn new(config: ReplicaConfig) -> Replica {
        Replica::with(config, Store::new(config.store), BTreeMap::new())
    }

    /// A replica of an empty shard, whose receiver gets what is behind a timestamp.
    pub fn behind(config: ReplicaConfig, time: u64) -> Replica {
        let mut store = Store::new(config.store);
        store.at.time = time;
        Replica::with(config, store, BTreeMap::new())
    }

    /// A replica that goes on from a peer's state, which [covers](Snapshot::covers) the time at which
    /// its receiver was listed. What that delivers up to [`Snapshot::at`] is passed over.
    pub fn joining(config: ReplicaConfig, snapshot: Snapshot) -> Replica {
        let Snapshot { store, parts, .. } = snapshot;
        Replica::with(config, store, parts)
    }

    fn with(config: ReplicaConfig, store: Store, own: BTreeMap<FinalTime, Part>) -> Replica {
        Replica {
            config,
            store,
            queue: VecDeque::new(),
            waiting: None,
            own,
            early: BTreeMap::new(),
            gone: None,
            transmits: VecDeque::new(),
            executed: VecDeque::new(),
            counters: ReplicaCounters::default(),
        }
    }

    /// The state, up to the last command that was executed.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            store: self.store.clone(),
            idle: self.queued() == 0,
            parts: self.own.clone(),
        }
    }

    /// The shard.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Counters.
    pub fn counters(&self) -> ReplicaCounters {
        self.counters
    }

    /// True if another message may be fetched from the receiver.
    pub fn has_room(&self) -> bool {
        self.queue.len() < self.config.queue.max(1)
    }

    /// Messages that wait to be executed.
    pub fn queued(&self) -> usize {
        self.queue.len() + usize::from(self.waiting.is_some())
    }

    /// The place and the shards for whose parts it waits.
    pub fn waits_for(&self) -> Option<(FinalTime, u32)> {
        let waiting = self.waiting.as_ref()?;
        Some((waiting.at, waiting.missing))
    }

    /// The place and the shard of a part that is missing and that a replica of that shard does not
    /// keep any more: this replica is too far behind, and has to join anew with a peer's state.
    pub fn stuck(&self) -> Option<(FinalTime, u8)> {
        let (at, shard) = self.gone?;
        let waiting = self.waiting.as_ref()?;
        (waiting.at == at && (waiting.missing >> shard) & 1 == 1).then_some((at, shard))
    }

    /// Takes a message that the receiver delivered.
    pub fn handle_delivery(
        &mut self,
        now_us: u64,
        at: FinalTime,
        destinations: u32,
        payload: Vec<u8>,
    ) {
        if !self.has_room() {
            self.counters.overflows += 1;
            return;
        }
        self.queue.push_back(Delivered {
            at,
            destinations,
            payload,
        });
        self.go_on(now_us);
    }

    /// The program fetched every message whose place has this time or a lower one
    /// ([`stateplane_multicast::Receiver::passed`]). If nothing waits to be executed, the state is
    /// that of the end of this time, so that it [covers](Snapshot::covers) the beginning of a peer
    /// that joins while nobody calls.
    pub fn handle_passed(&mut self, time: u64) {
        if self.queued() == 0 {
            let group = u8::MAX;
            self.store.at = self.store.at.max(FinalTime { time, group });
        }
    }

    /// Takes a datagram of another replica.
    pub fn handle_datagram(&mut self, now_us: u64, from: SocketAddrV4, bytes: &[u8]) {
        match Message::parse(bytes) {
            Ok(Message::Part { part }) => self.take_part(now_us, part),
            Ok(Message::Ask { at }) => {
                let shard = self.config.store.shard;
                let message = match self.own.get(&at) {
                    Some(part) => Message::Part { part: part.clone() },
                    // It has not come to that place.
                    None if at > self.store.at => return,
                    None => Message::Gone { at, shard },
                };
                self.transmit(To::Address(from), &message);
            }
            Ok(Message::Gone { at, shard }) => self.gone = Some((at, shard)),
            _ => self.counters.strange += 1,
        }
    }

    fn take_part(&mut self, now_us: u64, part: Part) {
        if let Some(waiting) = &mut self.waiting
            && waiting.at == part.at
        {
            let bit = 1u32.checked_shl(part.shard.into()).unwrap_or(0);
            if waiting.missing & bit != 0 {
                waiting.missing &= !bit;
                waiting.parts.insert(part.shard, part);
                self.go_on(now_us);
            }
            return;
        }
        if part.at <= self.store.at {
            return;
        }
        // What is nearer is needed sooner.
        let place = (part.at, part.shard);
        self.early.insert(place, part);
        if self.early.len() > self.config.kept.max(1) {
            self.counters.early += 1;
            self.early.pop_last();
        }
    }

    /// Executes what can be executed.
    fn go_on(&mut self, now_us: u64) {
        loop {
            if let Some(waiting) = self.waiting.take_if(|waiting| waiting.missing == 0) {
                self.execute(waiting.at, waiting.command, &waiting.parts);
            }
            if self.waiting.is_some() {
                return;
            }
            let Some(delivered) = self.queue.pop_front() else {
                return;
            };
            self.begin(now_us, &delivered);
        }
    }

    /// Begins with a message: it is executed, or waits for parts.
    fn begin(&mut self, now_us: u64, delivered: &Delivered) {
        let at = delivered.at;
        if at <= self.store.at {
            self.counters.behind += 1;
            return;
        }
        let Ok(Message::Command { command }) = Message::parse(&delivered.payload) else {
            self.counters.malformed += 1;
            self.store.at = at;
            return;
        };
        let StoreConfig {
            shard, shards: of, ..
        } = self.config.store;
        let groups = command.operation.groups(of);
        if delivered.destinations != groups {
            // All that have the message see the same.
            self.store.at = at;
            let reason = Reason::Misdirected {};
            return self.answer(at, at, command, Outcome::Refused { reason });
        }
        let part = self.store.part(at, &command);
        let others = groups & !(1 << shard);
        let mut parts = Parts::new();
        if others != 0 {
            for other in shards(others) {
                let message = Message::Part { part: part.clone() };
                self.transmit(To::Shard(other), &message);
            }
            self.own.insert(at, part.clone());
            while self.own.len() > self.config.kept.max(1) {
                self.own.pop_first();
            }
        }
        // An operation that was executed before, or is not to be, changes nothing in any shard, since
        // they all get this part: it waits for nobody. A receiver that joined gets a message again
        // that was delivered before, and replicas of other shards may not come to its place.
        let is_new = part.verdict == (Verdict::New {});
        parts.insert(shard, part);
        let mut missing = if is_new { others } else { 0 };
        while let Some(early) = self.early.first_entry() {
            let (place, shard) = *early.key();
            if place > at {
                break;
            }
            let part = early.remove();
            let bit = 1u32.checked_shl(shard.into()).unwrap_or(0);
            if place == at && missing & bit != 0 {
                missing &= !bit;
                parts.insert(shard, part);
            }
        }
        self.waiting = Some(Waiting {
            at,
            command,
            missing,
            parts,
            ask_at: now_us.saturating_add(self.config.ask_us),
            ask_us: self.config.ask_us,
        });
    }

    fn execute(&mut self, at: FinalTime, command: Command, parts: &Parts) {
        let (first, outcome) = self.store.execute(at, &command, parts);
        self.answer(at, first, command, outcome);
    }

    /// Answers a command at the place `at`, which was executed at the place `first`.
    fn answer(&mut self, at: FinalTime, first: FinalTime, command: Command, outcome: Outcome) {
        self.counters.executed += 1;
        let answer = Message::Answer {
            client: command.client,
            number: command.number,
            at: first,
            outcome: outcome.clone(),
        };
        self.transmit(To::Address(command.reply), &answer);
        // A command that waits for parts is executed with the whole queue behind it. A program that
        // does not fetch loses the oldest.
        if self.executed.len() > self.config.queue.max(1) {
            self.executed.pop_front();
        }
        self.executed.push_back(Executed {
            at,
            first,
            command,
            outcome,
        });
    }

    fn transmit(&mut self, to: To, message: &Message) {
        let bytes = message.to_vec();
        self.transmits.push_back(Transmit { to, bytes });
    }

    /// Time at which [`Replica::handle_timeout`] is due, in µs.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.waiting.as_ref().map(|waiting| waiting.ask_at)
    }

    /// Asks for parts that are missing.
    pub fn handle_timeout(&mut self, now_us: u64) {
        let Some(waiting) = &mut self.waiting else {
            return;
        };
        if waiting.ask_at > now_us {
            return;
        }
        let doubled = waiting.ask_us.saturating_mul(2);
        waiting.ask_us = doubled.min(self.config.longest_ask_us).max(1);
        waiting.ask_at = now_us.saturating_add(waiting.ask_us);
        let (at, missing) = (waiting.at, waiting.missing);
        for shard in shards(missing) {
            self.counters.asked += 1;
            self.transmit(To::Shard(shard), &Message::Ask { at });
        }
    }

    /// The next message that is to be sent.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// The next command that was executed. Of those that are not fetched, one more than
    /// [`ReplicaConfig::queue`] are kept, as many as one call may execute.
    pub fn poll_executed(&mut self) -> Option<Executed> {
        self.executed.pop_front()
    }
}
