//! One replica: what comes in, what goes out, and when it wants to be woken.

mod ahead;
mod apply;
mod chain;
mod compare;
mod decide;
mod feed;
mod idle;
mod install;
mod observe;
mod pairs;
mod persist;
mod place;
mod recall;
mod reclaim;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use core::net::SocketAddrV4;

use foldhash::fast::FixedState;
use stateplane_invariant::{Broken, BrokenCounts, Invariants};
use stateplane_wire::replication::{Packet, Repr};

use crate::config::{ClassConfig, Config, ConfigError};
use crate::counters::Counters;
use crate::creator::creator_of;
use crate::link::Receiver;
use crate::log::Log;
use crate::pair::Ended;
use crate::parking::{Flow, Parking};
use crate::promise::Promises;
use crate::quota::Tenants;
use crate::record::{Holder, Owner, Record};
use crate::service::ServerLoads;
use crate::shard::{Records, Shard};

pub(crate) use ahead::fetch;
use compare::Comparing;
use feed::Feed;
use idle::Question;
use install::Install;
use observe::Changes;
pub(crate) use pairs::standing;
use persist::LONGEST_WINDOW;
pub(crate) use persist::{Restoring, SavedReplica};
pub use place::Place;
use reclaim::Reclaims;

/// Destination of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// To a switch, from the request port.
    Switch(SocketAddrV4),
    /// To the chain port of the replica at this position, from the own one. The
    /// position behind the tail is that of the replica that joins.
    Replica(u8),
}

/// A datagram to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// Destination of the datagram.
    pub to: Destination,
    /// The datagram's bytes, shared with the copy that is kept for resending.
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
    pub(crate) tenants: Tenants,
    /// Servers of services to which the head gives no flows for the time being.
    unhealthy: BTreeSet<SocketAddrV4>,
    pub(crate) parking: Parking,
    /// As head: who waits for the port of an ended connection.
    reclaims: Reclaims,
    /// As head: records whose holders were asked whether they are idle.
    questions: BTreeMap<Flow, Question>,
    /// Promises to switches, which a server lends to all its replicas.
    pub(crate) promises: Promises,
    /// As head it outwaits nobody before (rule 1c).
    outwaits_from: u64,
    /// As head it grants nothing before.
    grants_from: u64,
    /// When it took its place.
    placed: u64,
    /// When the head looks whether a record, of a mapping the outbound one, is
    /// idle.
    expiry_due: BTreeSet<(u64, Flow)>,
    place: Place,
    /// Number of the last entry decided or applied.
    pub(crate) applied: u64,
    /// Number of the entry up to which every replica of the chain has all, as far
    /// as this one knows.
    pub(crate) base: u64,
    /// As tail: number of the last entry answered.
    answered: u64,
    pub(crate) predecessor: Receiver,
    pub(crate) log: Log,
    /// As tail: the replica that joins behind it.
    feed: Option<Feed>,
    /// While it joins: what it has of the snapshot.
    install: Option<Install>,
    /// Changes of records, while observers ask for them.
    changes: Option<Changes>,
    outbox: VecDeque<Transmit>,
    /// Comparison with neighbours after a restart from the disk, until missing entries are known.
    comparing: Option<Comparing>,
    /// Number of an entry that another has, and that this one had: its disk lost it.
    lacks: Option<u64>,
    /// Records for the disk.
    unsaved: VecDeque<Vec<u8>>,
    pub(crate) counters: Counters,
    pub(crate) invariants: Invariants,
    /// Entry after which the digest is to be noted.
    pub(crate) mark: Option<u64>,
    /// The entry and the digest that were noted.
    pub(crate) marked: Option<(u64, u64)>,
}

impl Replica {
    /// An empty replica. `incarnation` must differ from that of every earlier
    /// start of the same replica, or its neighbours may take it for the earlier
    /// one.
    ///
    /// # Errors
    ///
    /// Returns the error of [`Config::check`].
    pub fn new(config: Config, incarnation: u32) -> Result<Replica, ConfigError> {
        config.check()?;
        let place = Place {
            epoch: config.chain_epoch,
            length: config.chain_length,
            position: config.position,
            feeds: false,
        };
        let classes = config
            .classes
            .iter()
            .map(|class| (class.class, class.clone()));
        let limits = &config.limits;
        Ok(Replica {
            classes: classes.collect(),
            incarnation,
            shards: empty_shards(&config, incarnation),
            record_count: 0,
            tenants: Tenants::default(),
            unhealthy: BTreeSet::new(),
            parking: Parking::new(limits),
            reclaims: Reclaims::default(),
            questions: BTreeMap::new(),
            promises: Promises::default(),
            outwaits_from: 0,
            grants_from: 0,
            placed: 0,
            expiry_due: BTreeSet::new(),
            place,
            applied: 0,
            base: 0,
            answered: 0,
            predecessor: Receiver::new(limits.link_window, 0),
            log: Log::new(limits.resend_first, limits.resend_bound),
            feed: None,
            install: None,
            changes: None,
            outbox: VecDeque::new(),
            comparing: None,
            lacks: None,
            unsaved: VecDeque::new(),
            counters: Counters::default(),
            invariants: Invariants::new(config.authentic),
            mark: None,
            marked: None,
            config,
        })
    }

    /// True unless `server` was reported as unhealthy.
    pub fn is_healthy(&self, server: SocketAddrV4) -> bool {
        !self.unhealthy.contains(&server)
    }

    /// Sets whether `server`, of any service, gets new flows while this replica is the head.
    /// Servers are healthy until they are reported as unhealthy. The flows of a server stay with
    /// it.
    pub fn set_healthy(&mut self, server: SocketAddrV4, healthy: bool) {
        if healthy {
            self.unhealthy.remove(&server)
        } else {
            self.unhealthy.insert(server)
        };
    }

    /// Does what is due at `now`: grants to requests that waited, forgets idle
    /// records, resends to the successor.
    pub fn handle_timeout(&mut self, now: u64) {
        if self.is_silenced() {
            return;
        }
        self.run_due(now);
        self.resend(now);
        self.ask_neighbours(now);
    }

    /// The next datagram to send at `now`. Entries that came since the last call
    /// share datagrams.
    pub fn poll_transmit(&mut self, now: u64) -> Option<Transmit> {
        if self.is_silenced() {
            return None;
        }
        self.outbox
            .pop_front()
            .or_else(|| self.next_update(now))
            .or_else(|| self.next_part(now))
            .or_else(|| self.acknowledgement())
    }

    /// When [`Replica::handle_timeout`] has something to do next, in µs.
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.is_silenced() {
            return None;
        }
        let mut due = self.log.next_due();
        if let Some(at) = self.feed.as_ref().and_then(Feed::next_due) {
            due = Some(due.map_or(at, |earliest| earliest.min(at)));
        }
        if let Some(at) = self.comparing.as_ref().map(Comparing::due) {
            due = Some(due.map_or(at, |earliest| earliest.min(at)));
        }
        if self.is_head() && !self.window_is_full() {
            let idle = self.expiry_due.first().map(|(at, _)| *at);
            for at in [self.parking.next_due(), idle].into_iter().flatten() {
                due = Some(due.map_or(at, |earliest| earliest.min(at)));
            }
        }
        due
    }

    /// Counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The broken invariant that silences this replica.
    pub fn silenced(&self) -> Option<Broken> {
        self.invariants.silenced()
    }

    pub(crate) fn is_silenced(&self) -> bool {
        self.silenced().is_some()
    }

    /// The next broken invariant to report; each is given once.
    pub fn poll_broken(&mut self) -> Option<Broken> {
        self.invariants.poll()
    }

    /// Counters of broken invariants since the start.
    pub fn broken(&self) -> BrokenCounts {
        self.invariants.counts()
    }

    /// The configuration that it runs with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// True if this replica is the head of its chain, which decides requests.
    pub fn is_head(&self) -> bool {
        self.place.position == 0 && self.install.is_none()
    }

    /// True if this replica is the tail of its chain, which answers requests.
    pub fn is_tail(&self) -> bool {
        self.place.position + 1 == self.place.length && self.install.is_none()
    }

    /// Promises at `now` to outwait no lease of that start of a switch for the configured time
    /// (rule 1); `false` if too many are remembered. A server's replicas share promises.
    pub fn promise(&mut self, now: u64, switch: u32, incarnation: u32) -> bool {
        let until = now.saturating_add(self.config.lengthened(self.config.term));
        self.promises.promise(now, (switch, incarnation), until)
    }

    pub(crate) fn grants_from(&self) -> u64 {
        self.grants_from
    }

    /// The time from which `owner`'s lease of a flow of `shard` may be outwaited, unless more is
    /// promised meanwhile.
    pub fn outwaits(&self, shard: u16, owner: &Owner) -> u64 {
        let faults = &self.config.faults;
        let promised = self.promises.until(shard, owner);
        let term = self.config.lengthened(self.config.term);
        let forgotten = faults.promise_per_chain && promised < self.placed.saturating_add(term);
        if faults.forget_promises || forgotten {
            self.outwaits_from
        } else {
            self.outwaits_from.max(promised)
        }
    }

    /// The same of a holder: 0 if its lease is over.
    pub(crate) fn until(&self, shard: u16, holder: &Holder) -> u64 {
        if holder.over {
            0
        } else {
            self.outwaits(shard, &holder.owner)
        }
    }

    /// The time from which every lease of `record` may be outwaited; 0 if there is none.
    fn over(&self, shard: u16, record: &Record) -> u64 {
        let holders = record.lease.holders().iter();
        let over = holders.map(|holder| self.until(shard, holder));
        over.max().unwrap_or(0)
    }

    /// True if the head must decide nothing until its successor has acknowledged more entries.
    fn window_is_full(&self) -> bool {
        self.awaits_successor()
            || self.is_silenced()
            || self.unacknowledged() >= self.config.limits.link_window as u64
    }

    /// Greatest number of entries kept for the successor, twice what the window, a copy, or the
    /// window of before a restart need.
    fn most_kept(&self) -> usize {
        let limits = &self.config.limits;
        let restored = if self.config.durable {
            LONGEST_WINDOW
        } else {
            0
        };
        2 * limits.link_window.max(limits.join_backlog).max(restored)
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

/// The shards that `config` serves, without records, whose keys are hashed as `seed` says.
fn empty_shards(config: &Config, seed: u32) -> BTreeMap<u16, Shard> {
    let shards = config.served.iter().map(|&number| {
        let mut shard = Shard {
            epoch: config.first_epoch,
            records: Records::with_hasher(FixedState::with_seed(seed.into())),
            pools: None,
            remote_ports: None,
            ended: Ended::default(),
            loads: ServerLoads::default(),
        };
        for creator in config.classes.iter().filter_map(creator_of) {
            creator.prepare(config, number, &mut shard);
        }
        (number, shard)
    });
    shards.collect()
}

/// The reply to `request` with all that replies echo, apart from the packet.
pub(crate) fn echo<'a>(request: &Packet<'a>, chain_epoch: u32) -> Repr<'a> {
    Repr {
        chain_epoch,
        shared: false,
        code: 0,
        lease_epoch: 0,
        sequence: 0,
        age: 0,
        state: &[],
        packet: None,
        ..Repr::parse(request)
    }
}

#[cfg(test)]
mod tests;
