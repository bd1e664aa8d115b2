//! One shard: its records, and what its clients did last.

use crate::message::{Command, Found, Key, Operation, Outcome, Part, Reason, Value, Verdict};
use crate::shard::shard_of;
use stateplane_multicast::FinalTime;
use std::collections::{BTreeMap, BTreeSet};

/// Sizes of a shard. All replicas of all shards have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreConfig {
    /// The shard, which is its group.
    pub shard: u8,
    /// Shards of the store, 1 to [`crate::MAX_SHARDS`].
    pub shards: u8,
    /// Most records.
    pub most_records: usize,
    /// Most clients that are known: of more, those are forgotten whose last operations are oldest.
    pub most_clients: usize,
}

impl StoreConfig {
    /// A shard of a million records and 65,536 clients.
    pub fn new(shard: u8, shards: u8) -> StoreConfig {
        StoreConfig {
            shard,
            shards,
            most_records: 1 << 20,
            most_clients: 1 << 16,
        }
    }
}

/// The last operation of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Last {
    pub(crate) opened: FinalTime,
    pub(crate) number: u64,
    pub(crate) at: FinalTime,
    pub(crate) outcome: Outcome,
}

/// The state of a shard: equal commands in an equal order, with equal parts, give equal states and
/// outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    pub(crate) config: StoreConfig,
    /// Place of the last command.
    pub(crate) at: FinalTime,
    pub(crate) records: BTreeMap<Key, Value>,
    pub(crate) clients: BTreeMap<u64, Last>,
    /// Clients by the places of their last operations.
    pub(crate) recent: BTreeSet<(FinalTime, u64)>,
}

/// The parts of all shards of a command.
pub(crate) type Parts = BTreeMap<u8, Part>;

impl Store {
    /// An empty shard.
    pub fn new(config: StoreConfig) -> Store {
        Store {
            config,
            at: FinalTime { time: 0, group: 0 },
            records: BTreeMap::new(),
            clients: BTreeMap::new(),
            recent: BTreeSet::new(),
        }
    }

    /// Place of the last command.
    pub fn at(&self) -> FinalTime {
        self.at
    }

    /// Records of the shard.
    pub fn records(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.records.iter()
    }

    /// Clients that are known.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    fn verdict(&self, command: &Command) -> Verdict {
        if command.operation == (Operation::Open {}) {
            return match self.clients.get(&command.client) {
                // It opened, and perhaps went on; this is a late copy.
                Some(_) => Verdict::Again {},
                None => Verdict::New {},
            };
        }
        match self.clients.get(&command.client) {
            Some(last) if last.opened == command.opened => match command.number {
                number if number == last.number => Verdict::Again {},
                number if number < last.number => Verdict::Late {},
                _ => Verdict::New {},
            },
            _ => Verdict::Forgotten {},
        }
    }

    /// The shard's part of a command at its place.
    pub(crate) fn part(&self, at: FinalTime, command: &Command) -> Part {
        let keys = command.operation.keys().into_iter();
        let own = keys.filter(|key| shard_of(key, self.config.shards) == self.config.shard);
        Part {
            at,
            shard: self.config.shard,
            verdict: self.verdict(command),
            room: self.records.len() < self.config.most_records,
            values: own.map(|key| self.records.get(key).cloned()).collect(),
        }
    }

    /// Executes a command with the parts of all its shards; gives the outcome, and the place at
    /// which it was executed first.
    pub(crate) fn execute(
        &mut self,
        at: FinalTime,
        command: &Command,
        parts: &Parts,
    ) -> (FinalTime, Outcome) {
        self.at = at;
        let refused = |reason| (at, Outcome::Refused { reason });
        let any = |verdict: Verdict| parts.values().any(|part| part.verdict == verdict);
        // The shards of a command judge together: it is executed in all of them or in none.
        if any(Verdict::Again {}) {
            return match self.clients.get(&command.client) {
                Some(last) if last.number == command.number => (last.at, last.outcome.clone()),
                Some(_) => refused(Reason::Late {}),
                None => refused(Reason::Forgotten {}),
            };
        }
        if any(Verdict::Forgotten {}) {
            return refused(Reason::Forgotten {});
        }
        if any(Verdict::Late {}) {
            return refused(Reason::Late {});
        }
        let (outcome, writes) = self.decide(command, parts);
        for (key, value) in writes {
            if shard_of(&key, self.config.shards) != self.config.shard {
                continue;
            }
            match value {
                Some(value) => _ = self.records.insert(key, value),
                None => _ = self.records.remove(&key),
            }
        }
        let opened = match command.operation {
            Operation::Open {} => at,
            _ => command.opened,
        };
        self.remember(
            command.client,
            Last {
                opened,
                number: command.number,
                at,
                outcome: outcome.clone(),
            },
        );
        (at, outcome)
    }

    fn remember(&mut self, client: u64, last: Last) {
        let at = last.at;
        if let Some(before) = self.clients.insert(client, last) {
            self.recent.remove(&(before.at, client));
        }
        self.recent.insert((at, client));
        while self.clients.len() > self.config.most_clients.max(1) {
            if let Some((_, oldest)) = self.recent.pop_first() {
                self.clients.remove(&oldest);
            }
        }
    }

    /// The outcome of a command that is to be executed, and what it writes in all its shards.
    fn decide(&self, command: &Command, parts: &Parts) -> (Outcome, Vec<(Key, Found)>) {
        let shards = self.config.shards;
        let mut left: BTreeMap<u8, core::slice::Iter<'_, Found>> = BTreeMap::new();
        for part in parts.values() {
            left.insert(part.shard, part.values.iter());
        }
        let keys = command.operation.keys().into_iter();
        let values: Vec<Found> = keys
            .map(|key| left.get_mut(&shard_of(key, shards))?.next()?.clone())
            .collect();
        let room = |key: &Key| {
            parts
                .get(&shard_of(key, shards))
                .is_none_or(|part| part.room)
        };
        let full = Outcome::Refused {
            reason: Reason::Full {},
        };
        let of = |at: usize| values.get(at).cloned().flatten();
        match &command.operation {
            Operation::Open {} => (Outcome::Opened {}, Vec::new()),
            Operation::Get { .. } | Operation::Read { .. } => {
                (Outcome::Values { values }, Vec::new())
            }
            Operation::Put { key, .. } if of(0).is_none() && !room(key) => (full, Vec::new()),
            Operation::Put { key, value } => {
                (Outcome::Done {}, vec![(key.clone(), Some(value.clone()))])
            }
            Operation::Delete { key } => (Outcome::Done {}, vec![(key.clone(), None)]),
            Operation::Swap {
                key,
                expected,
                value,
            } => {
                let done = of(0) == *expected;
                if done && of(0).is_none() && value.is_some() && !room(key) {
                    return (full, Vec::new());
                }
                let writes = done.then(|| (key.clone(), value.clone()));
                (
                    Outcome::Decided { done, values },
                    writes.into_iter().collect(),
                )
            }
            Operation::Move { from, to } => {
                let done = of(0).is_some() && of(1).is_none() && from != to;
                let within = shard_of(from, shards) == shard_of(to, shards);
                if done && !within && !room(to) {
                    return (full, Vec::new());
                }
                let writes = if done {
                    vec![(from.clone(), None), (to.clone(), of(0))]
                } else {
                    Vec::new()
                };
                (Outcome::Decided { done, values }, writes)
            }
        }
    }
}
