//! One replica: what comes in, what goes out, and when it wants to be woken.

mod apply;
mod chain;
mod decide;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use core::net::SocketAddrV4;

use stateplane_wire::replication::{Packet, Repr};

use crate::config::{ClassConfig, Config, ConfigError, FirstLease};
use crate::counters::Counters;
use crate::link::{Receiver, Sender};
use crate::parking::{Flow, Parking};
use crate::pool::Pools;
use crate::shard::Shard;

/// Where a datagram goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// To a switch, from the request port.
    Switch(SocketAddrV4),
    /// To the chain port of the replica at this position, from the own one.
    Replica(u8),
}

/// A datagram to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// Where it goes.
    pub to: Destination,
    /// What it is; shared with the copy that is kept for resending.
    pub bytes: Arc<Vec<u8>>,
}

/// One replica of a chain.
///
/// After each `handle_*`, take everything out with [`Replica::poll_transmit`],
/// then ask [`Replica::poll_timeout`] when to call [`Replica::handle_timeout`].
/// Times never decrease from call to call.
#[derive(Debug, Clone)]
pub struct Replica {
    pub(crate) config: Config,
    pub(crate) classes: BTreeMap<u8, ClassConfig>,
    incarnation: u32,
    pub(crate) shards: BTreeMap<u16, Shard>,
    pub(crate) record_count: usize,
    pub(crate) parking: Parking,
    /// When the head looks whether a record, of a mapping the outbound one, is
    /// idle.
    expiry_due: BTreeSet<(u64, Flow)>,
    pub(crate) predecessor: Receiver,
    pub(crate) successor: Sender,
    outbox: VecDeque<Transmit>,
    pub(crate) counters: Counters,
}

impl Replica {
    /// An empty replica. `incarnation` must differ from that of every earlier
    /// start of the same replica, or its neighbours may take it for the earlier
    /// one.
    ///
    /// # Errors
    ///
    /// What [`Config::check`] finds.
    pub fn new(config: Config, incarnation: u32) -> Result<Replica, ConfigError> {
        config.check()?;
        let uses_pool =
            |class: &ClassConfig| matches!(class.first_lease, FirstLease::NatOutbound { .. });
        let pool = config.nat.as_ref();
        let pool = pool.filter(|_| config.classes.iter().any(uses_pool));
        let shards = config.served.iter().map(|&number| {
            let shard = Shard {
                epoch: 0,
                records: BTreeMap::new(),
                pools: pool.and_then(|pool| Pools::new(number, config.shards, pool)),
            };
            (number, shard)
        });
        let classes = config
            .classes
            .iter()
            .map(|class| (class.class, class.clone()));
        let limits = &config.limits;
        Ok(Replica {
            classes: classes.collect(),
            incarnation,
            shards: shards.collect(),
            record_count: 0,
            parking: Parking::new(limits.parked_per_flow, limits.parked_bytes),
            expiry_due: BTreeSet::new(),
            predecessor: Receiver::new(limits.link_window),
            successor: Sender::new(limits.link_window, limits.resend_first, limits.resend_bound),
            outbox: VecDeque::new(),
            counters: Counters::default(),
            config,
        })
    }

    /// Does what is due at `now`: grants to requests that waited, forgets idle
    /// records, resends to the successor.
    pub fn handle_timeout(&mut self, now: u64) {
        self.run_due(now);
        self.resend(now);
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.pop_front().or_else(|| self.acknowledgement())
    }

    /// When [`Replica::handle_timeout`] has something to do next, in µs.
    pub fn poll_timeout(&self) -> Option<u64> {
        let mut due = self.successor.next_due();
        if self.is_head() && !self.window_is_full() {
            let idle = self.expiry_due.first().map(|(at, _)| *at);
            for at in [self.parking.next_due(), idle].into_iter().flatten() {
                due = Some(due.map_or(at, |earliest| earliest.min(at)));
            }
        }
        due
    }

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The configuration that it runs with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether it decides.
    pub fn is_head(&self) -> bool {
        self.config.position == 0
    }

    /// Whether it answers.
    pub fn is_tail(&self) -> bool {
        self.config.position + 1 == self.config.chain_length
    }

    fn window_is_full(&self) -> bool {
        !self.is_tail() && self.successor.is_full()
    }

    fn transmit(&mut self, to: Destination, bytes: Arc<Vec<u8>>) {
        self.outbox.push_back(Transmit { to, bytes });
    }

    /// Sends `reply` to a switch. The caller has made sure that it fits.
    fn reply(&mut self, to: SocketAddrV4, reply: &Repr<'_>) {
        if let Ok(bytes) = reply.to_vec() {
            self.counters.replies += 1;
            self.transmit(Destination::Switch(to), Arc::new(bytes));
        }
    }
}

/// The reply to `request` with all that replies echo, apart from the packet.
fn echo<'a>(request: &Packet<'a>, chain_epoch: u32) -> Repr<'a> {
    Repr {
        chain_epoch,
        shared: false,
        code: 0,
        lease_epoch: 0,
        sequence: 0,
        parked: 0,
        period: 0,
        state: &[],
        packet: None,
        ..Repr::parse(request)
    }
}

#[cfg(test)]
mod tests;
