//! The state store: one replica of a chain, as a state machine without IO.
//!
//! A [`Replica`] is driven from outside: datagrams and the time go in through
//! `handle_*`, datagrams and the time of the next wake-up come out of `poll_*`.
//! Equal configuration and inputs give equal outputs. Times are microseconds of
//! a monotonic clock of the replica's own.
//!
//! `docs/replication-protocol.md` is the contract; where the code follows one of
//! its rules it names the rule's number. The head of the chain decides (grants,
//! parks, refuses, takes ports, forgets idle records) and sends every decision
//! down the chain as an entry; every replica applies the entries in order; the
//! tail alone answers (rules 11 and 20).
//!
//! A replica keeps its state in memory. One that restarts is empty and is not
//! taken back into its chain: its neighbours see another incarnation, or numbers
//! that do not begin at 1, and refuse. A chain of one replica has no such
//! neighbour, so its state ends with its process. With [`Config::durable`] the host
//! keeps on a disk what [`Server::poll_record`] gives, and [`Recovery`] makes the same
//! server of it again: to its neighbours it was slow.
//!
//! A replica that finds an invariant broken in production falls silent
//! ([`Replica::silenced`]): it takes, answers, forwards and saves nothing more. Its server tells
//! the controller that the chain's state is lost here, so that others go on.

mod config;
mod counters;
mod creator;
mod digest;
mod inspect;
mod link;
mod log;
mod pair;
mod parking;
mod pool;
mod promise;
mod quota;
mod record;
mod remote_ports;
mod replica;
mod saved;
mod serial;
mod server;
mod service;
mod shard;
mod snapshot;

pub use config::{
    ClassConfig, Config, ConfigError, Faults, FirstLease, IdleTimeouts, Limits, MOST_CLOCK_PPM,
    NAT_DEPENDENT_STATE_LENGTH, NAT_STATE_LENGTH, NatPool, StateTimeout, TCP_TRANSITORY,
};
pub use counters::Counters;
pub use inspect::AuditError;
pub use pool::{Pools, shard_of_port, shard_ports};
pub use quota::Quota;
pub use record::{Holder, Lease, Owner, Record};
pub use replica::{Destination, Place, Replica, Transmit};
pub use saved::RecoveryError;
pub use serial::newer;
pub use server::{
    Datagram, LongerBacking, LostEntries, Recipient, Recovery, SavedState, Server, ServerCounters,
    Setup, StateCopy,
};
pub use service::{SERVER_STATE_LENGTH, Service, ServiceAt, ServiceId, ServiceServer};
pub use snapshot::{
    Life, Merge, Snapshot, merge_snapshots, newest_snapshots, snapshot_content, snapshot_place,
};
