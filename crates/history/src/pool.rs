//! The pool of public ports is exact on every replica: a port is never handed out
//! twice, and at the end it is either free or in one mapping.

use crate::checker::{Checker, Subject, Violation};
use crate::event::{Endpoint, EventKind, History, PoolRange};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Replica {
    /// Taken and not freed, with whom each serves.
    taken: BTreeMap<Endpoint, Endpoint>,
    /// The mappings named at the end.
    mapped: BTreeSet<Endpoint>,
    /// Whether the end is told.
    ended: bool,
}

impl Replica {
    fn take(&mut self, pools: &[PoolRange], inside: Endpoint, public: Endpoint) -> Option<String> {
        if !pools.iter().any(|pool| pool.contains(&public)) {
            return Some(format!("took {public}, which no pool has"));
        }
        let other = self.taken.insert(public, inside)?;
        Some(format!("took {public} for {inside} while {other} has it"))
    }

    fn free(&mut self, public: Endpoint) -> Option<String> {
        match self.taken.remove(&public) {
            Some(_) => None,
            None => Some(format!("freed {public}, which is free")),
        }
    }

    fn map(&mut self, inside: Endpoint, public: Endpoint) -> Option<String> {
        self.ended = true;
        if !self.mapped.insert(public) {
            return Some(format!("has two mappings of {public}"));
        }
        match self.taken.get(&public) {
            Some(owner) if *owner == inside => None,
            Some(owner) => Some(format!(
                "maps {public} to {inside}, but it was taken for {owner}"
            )),
            None => Some(format!("maps {public}, which is free")),
        }
    }

    fn remain(&mut self, pool: &PoolRange, free: u64) -> Option<String> {
        self.ended = true;
        let taken = self.taken.keys().filter(|port| pool.contains(port));
        let taken = taken.count() as u64;
        let size = pool.size();
        (taken + free != size).then(|| {
            format!(
                "has {free} free {} ports of {} while {taken} of {size} are taken",
                pool.protocol, pool.address
            )
        })
    }

    fn leak(&self) -> Option<String> {
        let lost = self
            .taken
            .keys()
            .find(|public| !self.mapped.contains(public));
        lost.filter(|_| self.ended)
            .map(|public| format!("lost {public}: it is neither free nor mapped"))
    }
}

pub(crate) fn check(history: &History) -> Vec<Violation> {
    let mut replicas: BTreeMap<u8, Replica> = BTreeMap::new();
    let mut found: BTreeMap<u8, (usize, String)> = BTreeMap::new();
    for (index, event) in history.events.iter().enumerate() {
        let (number, objection) = match event.kind {
            EventKind::Taken {
                replica,
                inside,
                public,
            } => {
                let of = replicas.entry(replica).or_default();
                (replica, of.take(&history.pools, inside, public))
            }
            EventKind::Freed { replica, public } => {
                (replica, replicas.entry(replica).or_default().free(public))
            }
            EventKind::Mapped {
                replica,
                inside,
                public,
            } => {
                let of = replicas.entry(replica).or_default();
                (replica, of.map(inside, public))
            }
            EventKind::Remaining {
                replica,
                address,
                protocol,
                free,
            } => {
                let of = replicas.entry(replica).or_default();
                let mut pools = history.pools.iter();
                let pool = pools.find(|p| p.address == address && p.protocol == protocol);
                let objection = match pool {
                    Some(pool) => of.remain(pool, free),
                    None => Some(format!(
                        "has free {protocol} ports of {address}, which no pool has"
                    )),
                };
                (replica, objection)
            }
            _ => continue,
        };
        if let Some(because) = objection {
            found.entry(number).or_insert((index, because));
        }
    }
    let last = history.events.len().saturating_sub(1);
    for (&number, replica) in &replicas {
        if let Some(because) = replica.leak() {
            found.entry(number).or_insert((last, because));
        }
    }
    found
        .into_iter()
        .map(|(number, (event, because))| Violation {
            checker: Checker::Pool,
            subject: Subject::Replica(number),
            event,
            because,
        })
        .collect()
}
