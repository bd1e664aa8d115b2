//! A store server's log of changes: places in chains, silent neighbours, full tables, refused
//! requests, lease storms.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use stateplane_store::{Counters, Server};

/// µs between looks at what changed.
const PERIOD: u64 = 100_000;

/// µs over which events are counted.
const COUNTED: u64 = 1_000_000;

/// Grants within [`COUNTED`] that are a lease storm: many switches, or one that starts anew, ask
/// for the leases of many flows at once.
const LEASE_STORM: u64 = 5_000;

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

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct Told {
    next: u64,
    count_next: u64,
    places: BTreeMap<u16, Place>,
    counters: Counters,
    storm: bool,
}

impl Told {
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
        for (&chain, place) in &places {
            let before = self.places.get(&chain);
            if before != Some(place) {
                tell_place(chain, before, place);
            }
        }
        for (chain, place) in &self.places {
            if !places.contains_key(chain) {
                let epoch = place.epoch;
                tracing::warn!(chain, epoch, "this server has left the chain");
            }
        }
        self.places = places;
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

fn tell_place(chain: u16, before: Option<&Place>, place: &Place) {
    let Place {
        epoch,
        length,
        position,
        suspects,
    } = *place;
    match before {
        None if position >= length => tracing::info!(chain, epoch, "joins the chain"),
        None => tracing::info!(chain, epoch, position, length, "has a place in the chain"),
        Some(before) if before.length > length => tracing::warn!(
            chain,
            epoch,
            position,
            length,
            before = before.length,
            "the chain is shorter"
        ),
        Some(before) if before.length < length => tracing::info!(
            chain,
            epoch,
            position,
            length,
            before = before.length,
            "the chain is longer"
        ),
        Some(before) if before.position != position || before.epoch != epoch => {
            tracing::info!(chain, epoch, position, length, "another place in the chain");
        }
        Some(_) => {}
    }
    match (before.is_some_and(|before| before.suspects), suspects) {
        (false, true) => tracing::warn!(chain, epoch, "the next server of the chain is not heard"),
        (true, false) if before.is_some_and(|before| before.epoch == epoch) => {
            tracing::info!(chain, epoch, "the next server of the chain is heard again");
        }
        _ => {}
    }
}
