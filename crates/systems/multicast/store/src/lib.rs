//! A key-value store over shards, without IO. Each shard is a group of multicast; each receiver of
//! the group is a [`Replica`] of the shard.
//!
//! Every operation is one message to the groups of the shards whose keys it names, and replicas
//! execute messages in the order of multicast. An operation of one shard is executed at once. One of
//! several shards is executed when a replica of each shard has come to it: replicas send each other
//! what they have at that place ([`Part`]). So every replica knows what the operation reads, and all
//! decide alike; and nothing behind it is answered before all its shards have come to it. The latter
//! makes the store strictly serializable: multicast alone orders messages of different hosts in real
//! time only if they share a group (`docs/multicast-protocol.md`, rule 17). It is the rule of
//! Scalable State Machine Replication (Bezerra, Pedone, van Renesse, DSN 2014).
//!
//! A client has one operation under way, and repeats it until an answer comes. Replicas keep the
//! last number of each client with its answer, so it is executed at most once.

mod client;
mod message;
mod replica;
mod shard;
mod snapshot;
mod store;
mod table;

/// Port of replicas, of UDP for messages and of TCP for states, unless another is given.
pub const STORE_PORT: u16 = 4801;

pub use client::{Busy, Client, ClientConfig, Reply};
pub use message::{
    Command, Found, Key, MAX_KEY, MAX_KEYS, MAX_VALUE, Message, Operation, Outcome, Part, Reason,
    Value, Verdict,
};
pub use replica::{Executed, Replica, ReplicaConfig, ReplicaCounters, To, Transmit};
pub use shard::{MAX_SHARDS, shard_of};
pub use snapshot::Snapshot;
pub use store::{Store, StoreConfig};
pub use table::{Malformed, Row};
