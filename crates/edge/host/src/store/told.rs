//! A store server's log of changes: places in chains, silent neighbours, full tables, refused
//! requests, lease storms.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use stateplane_store::{Counters, LongerBacking, Server};

/// µs between looks at what changed.
const PERIOD: u64 = 100_000;

/// µs over which events are counted.
const COUNTED: u64 = 1_000_000;

/// Grants within [`COUNTED`] that are a lease storm: many switches, or one that starts anew, ask
/// for the leases of many flows at once.
const LEASE_STORM: u64 = 5_000;

/// Chains that one line names.
const MOST_NAMED: usize = 8;

/// Picks a counter.
type Of = fn(&Counters) -> u64;

/// Counters that are told when they grow, most once in [`COUNTED`].
const REFUSALS: [(Of, &str); 11] = [
    (
        |it| it.store_full,
        "the table of records is full: requests are refused (`limits.records`)",
    ),
    (
        |it| it.pool_exhausted,
        "no public port is free: requests are refused",
    ),
    (
        |it| it.parking_full,
        "too many requests wait: requests are refused",
    ),
    (
        |it| it.quota_exceeded,
        "tenants have as many records as their quotas allow: requests are refused",
    ),
    (
        |it| it.window_full,
        "too many entries are not on every replica: requests are dropped",
    ),
    (
        |it| it.bad_state,
        "requests are refused: unknown class, or a state of another length",
    ),
    (
        |it| it.wrong_server,
        "requests are refused: this server is not the head of their shards' chains",
    ),
    (
        |it| it.wrong_chain_epoch,
        "requests are refused: they name another chain_epoch",
    ),
    (
        |it| it.wrong_version,
        "requests are dropped: they are of another version of the message",
    ),
    (
        |it| it.malformed,
        "requests are dropped: they are malformed, or sealed where no keys are given",
    ),
    (
        |it| it.chain_malformed,
        "messages of neighbours are dropped: they are malformed",
    ),
];

/// A place in a chain, as it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    epoch: u32,
    length: u8,
    position: u8,
    suspects: bool,
}

/// A change of this server's place in a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Joins,
    Placed { length: u8 },
    Shorter { length: u8, before: u8 },
    Longer { length: u8, before: u8 },
    Moved { length: u8 },
    Left,
    Unheard,
    HeardAgain,
}

impl Change {
    /// Changes from `before` to `place`.
    fn between(before: Option<&Place>, place: &Place) -> impl Iterator<Item = Change> {
        let Place {
            epoch,
            length,
            position,
            suspects,
        } = *place;
        let of_place = match before {
            None if position >= length => Some(Change::Joins),
            None => Some(Change::Placed { length }),
            Some(before) if before.length > length => Some(Change::Shorter {
                length,
                before: before.length,
            }),
            Some(before) if before.length < length => Some(Change::Longer {
                length,
                before: before.length,
            }),
            Some(before) => (before.position != position || before.epoch != epoch)
                .then_some(Change::Moved { length }),
        };
        let suspected = before.filter(|before| before.suspects);
        let of_next = match (suspected, suspects) {
            (None, true) => Some(Change::Unheard),
            (Some(before), false) if before.epoch == epoch => Some(Change::HeardAgain),
            _ => None,
        };
        of_place.into_iter().chain(of_next)
    }

    /// Tells that it befell `chains`.
    fn tell(self, chains: &[u16]) {
        let count = chains.len();
        let named = &chains[..count.min(MOST_NAMED)];
        match self {
            Change::Joins => tracing::info!(chains = ?named, count, "joins chains"),
            Change::Placed { length } => {
                tracing::info!(chains = ?named, count, length, "has a place in chains");
            }
            Change::Shorter { length, before } => {
                tracing::warn!(chains = ?named, count, length, before, "chains are shorter");
            }
            Change::Longer { length, before } => {
                tracing::info!(chains = ?named, count, length, before, "chains are longer");
            }
            Change::Moved { length } => {
                tracing::info!(chains = ?named, count, length, "has another place in chains");
            }
            Change::Left => tracing::warn!(chains = ?named, count, "this server has left chains"),
            Change::Unheard => {
                tracing::warn!(chains = ?named, count, "the next server of chains is not heard");
            }
            Change::HeardAgain => {
                tracing::info!(chains = ?named, count, "the next server of chains is heard again");
            }
        }
    }
}

/// State that was told last.
#[derive(Debug, Default)]
pub(super) struct Told {
    next: u64,
    count_next: u64,
    places: BTreeMap<u16, Place>,
    counters: Counters,
    storm: bool,
}

impl Told {
    /// Tells that `switch` speaks an older version, in which its requests are refused.
    pub(super) fn older(switch: u32, version: u8) {
        tracing::error!(
            "switch {switch} speaks version {version}, this store {}: bring them to one version",
            stateplane_wire::replication::VERSION
        );
    }

    /// Tells that another server asks to be backed for longer than this one backs.
    pub(super) fn longer_backing(longer: &LongerBacking) {
        let LongerBacking { from, asked, given } = longer;
        tracing::error!(
            "the server {from} asks to be backed for {asked} µs, this one backs for {given} µs, and \
             does not answer: bring `backing_ms` to one value"
        );
    }

    /// Tells what changed in `server` until `now`; `false` if it is not time to look.
    pub(super) fn look(&mut self, now: u64, server: &Server) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + PERIOD;
        self.places(now, server);
        if now >= self.count_next {
            self.count_next = now + COUNTED;
            self.events(server.counters());
        }
        true
    }

    /// Tells of a server of a service that falls or rises.
    pub(super) fn health(&self, server: SocketAddrV4, healthy: bool) {
        if healthy {
            tracing::info!(%server, "the server of a service answers again");
        } else {
            tracing::warn!(%server, "the server of a service does not answer, and gets no more flows");
        }
    }

    fn places(&mut self, now: u64, server: &Server) {
        let places = server.replicas().map(|(chain, replica)| {
            let place = replica.place();
            let place = Place {
                epoch: place.epoch,
                length: place.length,
                position: place.position,
                suspects: replica.suspects_successor(now),
            };
            (chain, place)
        });
        let places: BTreeMap<u16, Place> = places.collect();
        self.tell_places(places);
    }

    /// Tells how `places` differ from those before: each change once, with the chains that it
    /// befell.
    fn tell_places(&mut self, places: BTreeMap<u16, Place>) {
        let before = std::mem::replace(&mut self.places, places);
        let mut changes: BTreeMap<Change, Vec<u16>> = BTreeMap::new();
        for (&chain, place) in &self.places {
            for change in Change::between(before.get(&chain), place) {
                changes.entry(change).or_default().push(chain);
            }
        }
        let left = before.keys().filter(|it| !self.places.contains_key(it));
        let left: Vec<u16> = left.copied().collect();
        if !left.is_empty() {
            changes.insert(Change::Left, left);
        }
        for (change, chains) in changes {
            change.tell(&chains);
        }
    }

    fn events(&mut self, counters: Counters) {
        for (of, text) in REFUSALS {
            let count = of(&counters) - of(&self.counters);
            if count > 0 {
                tracing::warn!(count, "{text}");
            }
        }
        let granted = counters.granted - self.counters.granted;
        let storm = granted > LEASE_STORM;
        match (self.storm, storm) {
            (false, true) => tracing::warn!(
                granted,
                "a lease storm: many flows ask for leases at once, as after the failure of a switch"
            ),
            (true, false) => tracing::info!(granted, "the lease storm is over"),
            _ => {}
        }
        self.storm = storm;
        self.counters = counters;
    }
}

#[cfg(test)]
mod tests;
