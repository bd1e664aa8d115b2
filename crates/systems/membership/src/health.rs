//! Liveness of servers, by their heartbeats.

use std::collections::{BTreeMap, BTreeSet};

use core::net::SocketAddrV4;

use crate::Start;

/// Earlier starts remembered of each server, so that a late heartbeat is not taken
/// for that of a new start.
const FORMER: usize = 8;

/// Greatest distance of two successive heartbeats of a server, in numbers, of which those
/// between were lost. One beyond it is not what the server would send next.
const LONGEST_GAP: u64 = 1 << 16;

/// Runs of numbers remembered of each server.
const RUNS: usize = 8;

/// Servers remembered at most. Heartbeats of others are not heard while none of these can
/// be forgotten.
pub const MOST_SERVERS: usize = 1024;

/// A server that was heard, or that a stored configuration names.
#[derive(Debug, Clone)]
pub struct Health<S> {
    /// Its present start.
    pub start: S,
    /// Source of its heartbeats, and destination of its configurations.
    pub control: Option<SocketAddrV4>,
    /// Time in µs of its last heartbeat.
    pub heard: u64,
    /// True if it was not silent for the detection time.
    pub alive: bool,
    numbers: Numbers,
    /// Incarnations of earlier starts, with the number of the last heartbeat of each.
    former: Vec<(u32, u64)>,
    /// True if nothing is to be placed on the server.
    pub drained: bool,
}

/// All servers, by number.
#[derive(Debug, Clone)]
pub struct Servers<S> {
    /// The servers remembered.
    pub all: BTreeMap<u32, Health<S>>,
    /// Numbers of servers, known or not, on which nothing is to be placed.
    drained: BTreeSet<u32>,
    last: Option<u64>,
}

/// Content of a heartbeat beside its statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    /// The heartbeat is late, of an earlier start, or not of the server.
    Old,
    /// No change.
    Same,
    /// The server is new, started again, or was taken for dead.
    Changed,
}

/// Numbers of the heartbeats heard of one start of a server. They grow, unless one was not
/// the server's own.
#[derive(Debug, Clone, Default)]
struct Numbers {
    last: u64,
    /// First and last of each run of numbers without a gap of more than [`LONGEST_GAP`], the
    /// one that went on most recently last.
    runs: Vec<(u64, u64)>,
}

impl Numbers {
    /// True if a heartbeat of this number was received, or one that the server sent after it.
    fn have(&self, number: u64) -> bool {
        let mut runs = self.runs.iter();
        runs.any(|(first, last)| (*first..=*last).contains(&number))
    }

    fn add(&mut self, number: u64) {
        self.last = number;
        let goes_on = |(_, last): &(u64, u64)| {
            let ahead = number.checked_sub(*last);
            ahead.is_some_and(|ahead| ahead <= LONGEST_GAP)
        };
        match self.runs.iter().position(goes_on) {
            Some(at) => {
                let (first, _) = self.runs.remove(at);
                self.runs.push((first, number));
            }
            None => {
                if self.runs.len() == RUNS {
                    self.runs.remove(0);
                }
                self.runs.push((number, number));
            }
        }
    }
}

impl<S: Start> Health<S> {
    /// Another start takes the place of the present one.
    fn supersede(&mut self, incarnation: u32) {
        let before = self.start.incarnation();
        self.former.retain(|(former, _)| *former != incarnation);
        if before != incarnation {
            self.former.push((before, self.numbers.last));
        }
        if self.former.len() > FORMER {
            self.former.remove(0);
        }
    }
}

impl<S> Default for Servers<S> {
    fn default() -> Servers<S> {
        Servers {
            all: BTreeMap::new(),
            drained: BTreeSet::new(),
            last: None,
        }
    }
}

impl<S: Start> Servers<S> {
    /// Remembers a server of a stored configuration: it is taken for alive until it is silent.
    pub fn remember(&mut self, now: u64, start: S) {
        let server = start.server();
        let drained = self.drained.contains(&server);
        self.all.entry(server).or_insert(Health {
            start,
            control: None,
            heard: now,
            alive: true,
            numbers: Numbers::default(),
            former: Vec::new(),
            drained,
        });
    }

    /// Lets nothing more be placed on `server`, known or not, or lets it take part again.
    pub fn drain(&mut self, server: u32, drained: bool) {
        if drained {
            self.drained.insert(server)
        } else {
            self.drained.remove(&server)
        };
        if let Some(health) = self.all.get_mut(&server) {
            health.drained = drained;
        }
    }

    /// True if nothing is to be placed on `server`, known or not.
    pub fn is_drained(&self, server: u32) -> bool {
        self.drained.contains(&server)
    }

    /// Takes a heartbeat. While a server sends heartbeats, one that contradicts them is ignored: it
    /// is of another start or has other addresses. If no other heartbeat came for half of
    /// `detection`, the server has restarted, or the earlier heartbeats were forged; then a number
    /// that is lower than the last, but was not heard before, counts too, unless it is an earlier
    /// start's.
    pub fn heard(
        &mut self,
        now: u64,
        from: SocketAddrV4,
        start: S,
        number: u64,
        detection: u64,
    ) -> Beat {
        let (server, incarnation) = (start.server(), start.incarnation());
        let fresh = !self.all.contains_key(&server);
        self.remember(now, start);
        let Some(health) = self.all.get_mut(&server) else {
            return Beat::Old;
        };
        let unheard = health.control.is_none();
        let silent = unheard || now.saturating_sub(health.heard) >= detection.div_ceil(2);
        if health.start != start {
            let mut former = health.former.iter();
            let former = former.find(|(former, _)| *former == incarnation);
            if !silent || former.is_some_and(|(_, last)| number <= *last) {
                return Beat::Old;
            }
            health.supersede(incarnation);
            health.numbers = Numbers::default();
        } else if number <= health.numbers.last && (!silent || health.numbers.have(number)) {
            return Beat::Old;
        }
        let changed = fresh || unheard || !health.alive || health.start != start;
        health.start = start;
        health.numbers.add(number);
        health.control = Some(from);
        health.heard = now;
        health.alive = true;
        if changed { Beat::Changed } else { Beat::Same }
    }

    /// Makes room for a server that is heard for the first time; returns false if there is none. It
    /// forgets a dead server that no configuration names, as `is_named` tells.
    pub fn make_room(&mut self, server: u32, is_named: impl Fn(u32) -> bool) -> bool {
        if self.all.contains_key(&server) || self.all.len() < MOST_SERVERS {
            return true;
        }
        let mut dead = self.all.iter().filter(|(_, health)| !health.alive);
        let forgotten = dead.find(|(number, _)| !is_named(**number));
        let forgotten = forgotten.map(|(number, _)| *number);
        forgotten.is_some_and(|number| self.all.remove(&number).is_some())
    }

    /// True if this start of a server is alive.
    pub fn is_alive(&self, start: &S) -> bool {
        let health = self.all.get(&start.server());
        health.is_some_and(|h| h.alive && h.start.incarnation() == start.incarnation())
    }

    /// True if `server` was taken for dead, or forgotten, and silent for `patience`.
    pub fn is_gone(&self, now: u64, server: u32, patience: u64) -> bool {
        let health = self.all.get(&server);
        health.is_none_or(|h| !h.alive && h.heard.saturating_add(patience) <= now)
    }

    /// A time in which the controller itself did not run is nobody's silence.
    pub fn excuse_own_absence(&mut self, now: u64, detection: u64) {
        let last = self.last.replace(now).unwrap_or(now);
        let absent = now.saturating_sub(last);
        if absent > detection / 2 {
            for health in self.all.values_mut() {
                health.heard = health.heard.saturating_add(absent).min(now);
            }
        }
    }

    /// Takes those for dead that were silent for `detection`; `true` if there are
    /// new ones.
    pub fn bury(&mut self, now: u64, detection: u64) -> bool {
        let mut died = false;
        for health in self.all.values_mut() {
            if health.alive && now.saturating_sub(health.heard) >= detection {
                health.alive = false;
                died = true;
            }
        }
        died
    }

    /// When [`Servers::bury`] may find one.
    pub fn next_death(&self, detection: u64) -> Option<u64> {
        let alive = self.all.values().filter(|health| health.alive);
        alive
            .map(|health| health.heard.saturating_add(detection))
            .min()
    }
}
