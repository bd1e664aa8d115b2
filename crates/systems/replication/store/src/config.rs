//! Configuration that a replica gets when it starts.

mod check;
mod classes;
mod error;
mod limits;
#[cfg(test)]
mod tests;

pub use classes::{ClassConfig, FirstLease, IdleTimeouts, NatPool, StateTimeout};
pub use error::ConfigError;
pub use limits::{Faults, Limits};

use std::collections::BTreeSet;

use crate::service::Service;

/// Greatest bound of clock rates, in parts per million: a tenth.
pub const MOST_CLOCK_PPM: u32 = 100_000;

/// µs for which a TCP connection that is not open, or has ended, may be silent (RFC 5382 REQ-5).
pub const TCP_TRANSITORY: u64 = 240_000_000;

/// Bytes of state of both records of a NAT mapping: an address and a port.
pub const NAT_STATE_LENGTH: u16 = 6;

/// Bytes of state of both records of a mapping that names the remote endpoint too: an address, a
/// port, and what the record's side of a TCP connection has sent.
pub const NAT_DEPENDENT_STATE_LENGTH: u16 = NAT_STATE_LENGTH + 1;

/// The configuration of one replica. All replicas of a chain have the same one,
/// apart from `position`. Length, position and epoch are those of the start;
/// [`crate::Replica::reconfigure`] changes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Number of replicas in the chain, from 1.
    pub chain_length: u8,
    /// This replica's position, 0 is the head.
    pub position: u8,
    /// Number of the chain in messages between replicas.
    pub chain: u16,
    /// Configuration number of the chain when the replica starts (rule 21).
    pub chain_epoch: u32,
    /// Number of shards, the parts of the key space; a power of two up to 32768.
    pub shards: u16,
    /// The shards that this chain keeps.
    pub served: BTreeSet<u16>,
    /// Settings of the flow classes.
    pub classes: Vec<ClassConfig>,
    /// The public ports, for classes whose first lease makes a mapping.
    pub nat: Option<NatPool>,
    /// Servers of each service, for classes whose first lease assigns the flow to a server.
    pub services: Vec<Service>,
    /// µs for which a head promises a switch to outwait none of its leases, from 1 (rule 1).
    pub term: u32,
    /// µs for which a server backs the head of a chain that it follows, and for which a new head
    /// outwaits nobody, more than `term` (rules 1b and 1c).
    pub backing: u32,
    /// µs of the leases that an older version of the store granted: on its data nobody is
    /// outwaited for as long.
    pub older_lease: u32,
    /// Number drawn at each start of the process, from which that of its streams of rows follows
    /// (rule 1a).
    pub stream: u32,
    /// By how much the rate of any clock, a switch's or a server's, may differ from
    /// true time, in parts per million, up to [`MOST_CLOCK_PPM`] (rule 1). Switches
    /// allow for 900; what is beyond that the store waits longer.
    pub clock_ppm: u32,
    /// True if the store asks a holder to release a lease that blocks another request (rule 19);
    /// otherwise the store waits until the lease expires.
    pub recall: bool,
    /// Idle time in µs after which a record may be evicted to make room for another one. `None`: no
    /// record is evicted, and the request is refused. Only a record that has an idle timeout and no
    /// holder is evicted; the request is refused if the head finds none among those that it
    /// examines.
    pub evict_after: Option<u64>,
    /// Sequence number of a record's first state. 1, unless a test wants to see
    /// the numbers wrap.
    pub first_sequence: u32,
    /// Epoch of each shard before its first grant. 0, unless a test wants to see the
    /// numbers wrap.
    pub first_epoch: u32,
    /// True if every entry must be on the disk before any message that follows from it is sent.
    pub durable: bool,
    /// True if messages between replicas, and of the controller, come from members alone: they are
    /// sealed, or nobody else reaches the network. Then a message that contradicts the state shows
    /// a broken invariant, which silences a replica; otherwise a stranger may have sent it.
    pub authentic: bool,
    /// Bounds of everything that grows.
    pub limits: Limits,
    /// Rules turned off, for tests.
    pub faults: Faults,
}

impl Config {
    /// A configuration of one shard without classes, with default limits.
    pub fn new(chain_length: u8, position: u8) -> Config {
        Config {
            chain_length,
            position,
            chain: 0,
            chain_epoch: 1,
            shards: 1,
            served: BTreeSet::from([0]),
            classes: Vec::new(),
            nat: None,
            services: Vec::new(),
            term: 100_000,
            backing: 400_000,
            older_lease: 1_000_000,
            stream: 1,
            clock_ppm: 900,
            recall: true,
            evict_after: None,
            first_sequence: 1,
            first_epoch: 0,
            durable: false,
            authentic: false,
            limits: Limits::default(),
            faults: Faults::default(),
        }
    }

    /// Divides the key space into `shards` parts and serves them all.
    #[must_use]
    pub fn with_shards(mut self, shards: u16) -> Config {
        self.shards = shards;
        self.served = (0..shards).collect();
        self
    }

    /// Adds a class.
    #[must_use]
    pub fn with_class(mut self, class: ClassConfig) -> Config {
        self.classes.push(class);
        self
    }

    /// Adds a NAT: a pool, the class of its outbound keys and that of its inbound
    /// keys, with the timeouts of [`IdleTimeouts::nat`].
    #[must_use]
    pub fn with_nat(self, pool: NatPool, outbound_class: u8, inbound_class: u8) -> Config {
        let outbound = FirstLease::NatOutbound { inbound_class };
        let classes = [
            (outbound_class, outbound),
            (inbound_class, FirstLease::None),
        ];
        self.with_mappings(pool, classes, NAT_STATE_LENGTH, true)
    }

    /// Adds a NAT whose mappings name the remote endpoint too: a pool, the class of its outbound
    /// keys and that of its inbound keys, with the timeouts of [`IdleTimeouts::nat`] and 4 min for
    /// connections that are not open (RFC 5382 REQ-5).
    #[must_use]
    pub fn with_dependent_nat(
        self,
        pool: NatPool,
        outbound_class: u8,
        inbound_class: u8,
    ) -> Config {
        let outbound = FirstLease::NatDependent {
            inbound_class,
            tcp_transitory: TCP_TRANSITORY,
        };
        let classes = [
            (outbound_class, outbound),
            (inbound_class, FirstLease::None),
        ];
        self.with_mappings(pool, classes, NAT_DEPENDENT_STATE_LENGTH, false)
    }

    fn with_mappings(
        mut self,
        pool: NatPool,
        classes: [(u8, FirstLease); 2],
        state_length: u16,
        shared_only: bool,
    ) -> Config {
        let classes = classes.map(|(class, first_lease)| ClassConfig {
            class,
            state_length,
            first_lease,
            shared_only,
            idle: IdleTimeouts::nat(),
            quota: None,
        });
        self.classes.extend(classes);
        self.nat = Some(pool);
        self
    }

    /// µs by a server's clock that are no shorter than 511/512 of `time` by any other clock
    /// (rule 1).
    ///
    /// The other counts 511/512 of `time`, by a clock that may be slow; the result is counted by
    /// a clock that may be fast. With at most 900 ppm that is `time`.
    pub(crate) fn lengthened(&self, time: u32) -> u64 {
        let time = u64::from(time);
        // Of what the other leaves out more than 2 µs remain then.
        if self.clock_ppm <= 900 && time >= 20_000 {
            return time;
        }
        let ppm = u64::from(self.clock_ppm);
        let slow = 512 * (1_000_000 - ppm);
        let fast = 511 * (1_000_000 + ppm);
        // The other rounds up by less than 1 µs.
        time.max((time * fast).div_ceil(slow) + 2)
    }

    /// µs after a question for backing during which the head promises on the answer: what a
    /// promise leaves of the backing, on the safe side of any clock's rate (rule 1b).
    pub(crate) fn backed_time(&self) -> u64 {
        let left = u64::from(self.backing.saturating_sub(self.term));
        left - left.div_ceil(512)
    }
}
