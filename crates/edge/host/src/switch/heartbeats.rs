//! A switch's terms with the heads of its chains, as its host has them: heartbeats go through the
//! program, the answers come here, and what follows from them is written for all workers.

use super::forwarding::{Forwarding, Passing};
use super::greeter::GreetingFilter;
use crate::clock::boot_time_us;
use serde::Serialize;
use stateplane_runtime::Engine;
use stateplane_setup::{HEARTBEAT_PORT, Heartbeats, Probe, end_terms};
use stateplane_switch::Switch;
use std::net::Ipv4Addr;

/// µs until it is looked again if all workers have what was written last.
const PASSING: u64 = 1_000;

/// A switch's terms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TermReport {
    /// Shards for which the switch has a term now.
    pub held: u64,
    /// Times that the term for a shard had ended before it went on: its flows asked again for their
    /// leases.
    pub lapses: u64,
    /// The heads of the chains.
    pub heads: Vec<TermHeadReport>,
}

/// A head, as heartbeats find it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TermHeadReport {
    /// Its address.
    pub address: Ipv4Addr,
    /// ms since it last answered a heartbeat, or since the first.
    pub silent_ms: u64,
}

/// Sends heartbeats, and writes what follows.
#[derive(Default)]
pub(super) struct Beats {
    heartbeats: Option<Heartbeats>,
    /// Workers that may not have what was written last.
    passing: Passing,
    /// The chains may have changed since they were looked at.
    stale: bool,
}

impl Beats {
    /// Those of a switch that has yet to be looked at.
    pub(super) fn new() -> Beats {
        Beats {
            stale: true,
            ..Beats::default()
        }
    }

    /// The chains may have changed.
    pub(super) fn note_change(&mut self) {
        self.stale = true;
    }

    /// Looks at the chains if they may have changed; true if there are heartbeats for the first
    /// time.
    pub(super) fn look<E: Engine>(&mut self, switch: &mut Forwarding<E>) -> bool {
        if !std::mem::take(&mut self.stale) {
            return false;
        }
        let now = boot_time_us();
        // A worker that has ended ends the run.
        let found = switch.on_first(move |switch| found(switch, now)).flatten();
        match (&mut self.heartbeats, found) {
            (Some(known), Some(found)) if known.is_same_switch(&found) => {
                known.adopt(now, &found);
                false
            }
            (known, found) => {
                *known = found;
                known.is_some()
            }
        }
    }

    /// The frames that are for the host, if any are.
    pub(super) fn filter(&self) -> Option<GreetingFilter> {
        let heartbeats = self.heartbeats.as_ref()?;
        Some(GreetingFilter {
            port: heartbeats.port(),
            address: heartbeats.address(),
        })
    }

    /// Takes a datagram of the head `from`.
    pub(super) fn hear(&mut self, now: u64, from: Ipv4Addr, datagram: &[u8]) {
        if let Some(heartbeats) = &mut self.heartbeats {
            heartbeats.handle_reply(now, from, datagram);
            while let Some(store) = heartbeats.poll_older() {
                tracing::error!(
                    %store,
                    "the store is older than this switch: it speaks version 1, this switch 2"
                );
            }
        }
    }

    /// The program was changed, and none of its leases counts: see [`end`].
    pub(super) fn program_changed(&mut self) {
        self.stale = true;
        if let Some(heartbeats) = &mut self.heartbeats {
            heartbeats.program_changed(boot_time_us());
        }
    }

    /// Writes what follows from the answers, and sends the heartbeats that are due, once all workers
    /// have what was written before; when the next one is due.
    pub(super) fn serve<E: Engine>(&mut self, switch: &mut Forwarding<E>) -> Option<u64> {
        let heartbeats = self.heartbeats.as_mut()?;
        if !self.passing.is_over() {
            return Some(boot_time_us() + PASSING);
        }
        let writes: Vec<_> = std::iter::from_fn(|| heartbeats.poll_write()).collect();
        if !writes.is_empty() {
            self.passing = switch.write(writes);
            if !self.passing.is_over() {
                return Some(boot_time_us() + PASSING);
            }
        }
        let now = boot_time_us();
        while let Some(frame) = heartbeats.poll_frame(now) {
            switch.handle_made(HEARTBEAT_PORT, frame);
        }
        heartbeats.poll_timeout()
    }

    pub(super) fn report(&self, now: u64) -> Option<TermReport> {
        let heartbeats = self.heartbeats.as_ref()?;
        let shards = heartbeats.chains().map(|(shard, _)| shard);
        let held = shards.filter(|shard| now < heartbeats.term(*shard).deadline);
        let heads = heartbeats.heard().map(|(address, heard)| TermHeadReport {
            address,
            silent_ms: now.saturating_sub(heard) / 1000,
        });
        Some(TermReport {
            held: held.count() as u64,
            lapses: heartbeats.lapses(),
            heads: heads.collect(),
        })
    }
}

/// Lets no lease of a program count that was just put in the place of another one.
pub(super) fn end<E: Engine>(switch: &mut Switch<E>) {
    // A program that is not replicated has no terms.
    let _ = end_terms(switch.engine_mut().state_mut());
}

/// The heartbeats of a switch as its program knows it and its chains.
fn found<E: Engine>(switch: &mut Switch<E>, now: u64) -> Option<Heartbeats> {
    Heartbeats::of(now, switch.engine().state(), Probe::default().shard)
}

#[cfg(test)]
mod tests;
