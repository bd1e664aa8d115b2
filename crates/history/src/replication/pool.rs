//! The pool of public ports is exact on every replica: a port is never handed out
//! twice, and at the end it is either free or in one mapping. Of mappings that serve one remote
//! endpoint each, that holds for each remote endpoint.

use crate::checker::Checker;
use crate::replication::event::{
    Endpoint, Event, EventKind, PoolRange, Replication, StateEvent, Subject, Violation,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A public endpoint, and the remote endpoint for which it is taken alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Public {
    endpoint: Endpoint,
    remote: Option<Endpoint>,
}

impl Public {
    fn of(endpoint: Endpoint, remote: Option<Endpoint>) -> Self {
        Self { endpoint, remote }
    }
}

impl fmt::Display for Public {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.endpoint)?;
        match &self.remote {
            Some(remote) => write!(f, " with {remote}"),
            None => Ok(()),
        }
    }
}

#[derive(Default)]
struct Replica {
    /// Taken and not freed, with whom each serves.
    taken: BTreeMap<Public, Endpoint>,
    /// The mappings named at the end.
    mapped: BTreeSet<Public>,
    /// True if the end is told.
    ended: bool,
}

impl Replica {
    fn take(&mut self, pools: &[PoolRange], inside: Endpoint, public: Public) -> Option<String> {
        if !pools.iter().any(|pool| pool.contains(&public.endpoint)) {
            return Some(format!("took {public}, which no pool has"));
        }
        let other = self.taken.insert(public, inside)?;
        Some(format!("took {public} for {inside} while {other} has it"))
    }

    fn free(&mut self, public: Public) -> Option<String> {
        match self.taken.remove(&public) {
            Some(_) => None,
            None => Some(format!("freed {public}, which is free")),
        }
    }

    fn map(&mut self, inside: Endpoint, public: Public) -> Option<String> {
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
        let taken = self.taken.keys();
        let taken = taken.filter(|port| pool.contains(&port.endpoint));
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

#[derive(Default)]
pub(crate) struct Pool {
    replicas: BTreeMap<u8, Replica>,
    /// First objection to each replica, with its event.
    found: BTreeMap<u8, (usize, String)>,
    last: usize,
}

impl Pool {
    pub(crate) const NAME: &'static str = "pool";
}

impl Checker<Replication> for Pool {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, system: &Replication, index: usize, event: &Event) {
        self.last = index;
        let EventKind::Of(event) = &event.kind else {
            return;
        };
        let (number, objection) = match *event {
            StateEvent::Taken {
                replica,
                inside,
                public,
                remote,
            } => {
                let public = Public::of(public, remote);
                let of = self.replicas.entry(replica).or_default();
                (replica, of.take(&system.pools, inside, public))
            }
            StateEvent::Freed {
                replica,
                public,
                remote,
            } => {
                let public = Public::of(public, remote);
                let of = self.replicas.entry(replica).or_default();
                (replica, of.free(public))
            }
            StateEvent::Mapped {
                replica,
                inside,
                public,
                remote,
            } => {
                let public = Public::of(public, remote);
                let of = self.replicas.entry(replica).or_default();
                (replica, of.map(inside, public))
            }
            StateEvent::Remaining {
                replica,
                address,
                protocol,
                free,
            } => {
                let of = self.replicas.entry(replica).or_default();
                let mut pools = system.pools.iter();
                let pool = pools.find(|p| p.address == address && p.protocol == protocol);
                let objection = match pool {
                    Some(pool) => of.remain(pool, free),
                    None => Some(format!(
                        "has free {protocol} ports of {address}, which no pool has"
                    )),
                };
                (replica, objection)
            }
            _ => return,
        };
        if let Some(because) = objection {
            self.found.entry(number).or_insert((index, because));
        }
    }

    fn finish(mut self: Box<Self>, _: &Replication) -> Vec<Violation> {
        for (&number, replica) in &self.replicas {
            if let Some(because) = replica.leak() {
                self.found.entry(number).or_insert((self.last, because));
            }
        }
        let violation = |(number, (event, because))| Violation {
            checker: Self::NAME,
            subject: Subject::Replica(number),
            event,
            because,
        };
        self.found.into_iter().map(violation).collect()
    }
}
