//! A replica of a shard.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::mpsc::Receiver;

use stateplane_multicast_store::{Executed, Replica, ReplicaConfig, Snapshot, StoreConfig};

use super::STORE_PORT;
use super::exchange::{Running, Tell};
use crate::clock::boot_time_us;
use crate::multicast_receiver::{
    MulticastReceiver, MulticastReceiverConfig, Received, ReceiverError,
};
use crate::sealing::{Guard, KeysError, SealReport};

/// Messages that wait in a receiver.
const QUEUE: usize = 1024;

/// µs between two looks at a replica that takes no more messages.
const FULL_US: u64 = 500;

/// How a replica reaches its group, other replicas and clients.
#[derive(Debug, Clone)]
pub struct StoreReplicaConfig {
    /// The controllers, at least one.
    pub controllers: Vec<SocketAddrV4>,
    /// The replica's own address, at which no other receiver listens; without one, that from which
    /// the system would send to the first controller.
    pub address: Option<Ipv4Addr>,
    /// UDP and TCP port for other replicas.
    pub port: u16,
    /// The shard, which has the number of its group.
    pub shard: u8,
    /// Shards of the store, more than `shard`.
    pub shards: u8,
    /// Most records of the shard; the same for all its replicas.
    pub records: usize,
    /// All other replicas, with their shards.
    pub peers: Vec<(u8, SocketAddrV4)>,
    /// True if it begins with an empty shard, of which no replica was there before; else it begins
    /// with the state of a peer of its shard.
    pub empty: bool,
}

impl StoreReplicaConfig {
    /// A replica at the usual port with at most 2²⁰ records, which has no peer and takes a peer's
    /// state.
    pub fn new(controllers: Vec<SocketAddrV4>, shard: u8, shards: u8) -> StoreReplicaConfig {
        StoreReplicaConfig {
            controllers,
            address: None,
            port: STORE_PORT,
            shard,
            shards,
            records: StoreConfig::new(shard, shards).most_records,
            peers: Vec::new(),
            empty: false,
        }
    }
}

/// Reason why a replica could not begin, or ended.
#[derive(Debug, thiserror::Error)]
pub enum StoreReplicaError {
    /// The store has no such shard.
    #[error("a store of {shards} shards has no shard {shard}")]
    NoShard {
        /// The shard.
        shard: u8,
        /// Shards of the store.
        shards: u8,
    },
    /// Its receiver could not begin.
    #[error(transparent)]
    Receiver(#[from] ReceiverError),
    /// The file of keys is refused.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// It is on its group's list no more.
    #[error(
        "the replica was taken off the group's list: it was silent or too slow; start it again \
             without --empty"
    )]
    TakenOff,
    /// Replicas of a shard have forgotten what it lacks.
    #[error(
        "the replica is too far behind: replicas of shard {0} do not keep what it lacks; start it \
             again without --empty"
    )]
    Stuck(u8),
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A replica of a shard. Times are µs of [`boot_time_us`].
pub struct StoreReplica {
    config: ReplicaConfig,
    running: Running,
    receiver: MulticastReceiver,
    /// Brings a peer's state, if one is waited for.
    joined: Option<Receiver<Snapshot>>,
}

impl StoreReplica {
    /// Opens a replica, and waits until its receiver is listed, until `end` at most. With a file of
    /// `keys` only sealed messages are sent and taken. `tell` gets the time and each command that is
    /// executed, before its client is answered; it must be quick.
    ///
    /// # Errors
    ///
    /// [`StoreReplicaError`].
    pub fn open(
        config: StoreReplicaConfig,
        keys: Option<&Path>,
        end: u64,
        tell: impl FnMut(u64, &Executed) + Send + 'static,
    ) -> Result<StoreReplica, StoreReplicaError> {
        let (shard, shards) = (config.shard, config.shards);
        if shard >= shards {
            return Err(StoreReplicaError::NoShard { shard, shards });
        }
        // Two ends, of which each has peers of its own: switches and controllers, and the others.
        let guard = || keys.map(Guard::read).transpose();
        let (switches, others) = (guard()?, guard()?);
        let own = config.address.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let own = SocketAddrV4::new(own, config.port);
        let tell: Tell = Box::new(tell);
        let running = Running::open(own, others, config.peers, tell)?;
        let receiver = MulticastReceiverConfig {
            controllers: config.controllers,
            address: config.address,
            group: shard,
            queue: QUEUE,
        };
        let store = ReplicaConfig::new(StoreConfig {
            most_records: config.records,
            ..StoreConfig::new(shard, shards)
        });
        let mut replica = StoreReplica {
            config: store,
            running,
            receiver: MulticastReceiver::connect(receiver, switches, end)?,
            joined: None,
        };
        let after = replica.after();
        if config.empty {
            replica.running.exchange.state().replica = Some(Replica::behind(store, after));
        } else {
            replica.joined = Some(replica.running.join(store.store, after)?);
        }
        Ok(replica)
    }

    /// Timestamp behind which it gets all messages.
    pub fn after(&self) -> u64 {
        self.receiver.after()
    }

    /// True once it executes commands.
    pub fn is_ready(&self) -> bool {
        self.running.exchange.state().replica.is_some()
    }

    /// Counts of sealed messages, if messages are sealed: with switches and controllers, and with
    /// replicas and clients.
    pub fn seals(&self) -> Option<[SealReport; 2]> {
        Some([self.receiver.seals()?, self.running.exchange.seals()?])
    }

    /// Reads the file of keys again if it changed, at most once a second.
    ///
    /// # Errors
    ///
    /// The new file's, once for each change; the keys so far stay.
    pub fn look(&mut self) -> Result<(), KeysError> {
        // Both ends have to see a change.
        let receiver = self.receiver.look();
        self.running.exchange.look().and(receiver)
    }

    /// Executes what came; then waits until a datagram comes, something is due, or `until`.
    ///
    /// # Errors
    ///
    /// [`StoreReplicaError::TakenOff`] and [`StoreReplicaError::Stuck`] end it for good;
    /// [`StoreReplicaError::Io`].
    pub fn step(&mut self, until: u64) -> Result<(), StoreReplicaError> {
        let joined = self.joined.as_ref().and_then(|it| it.try_recv().ok());
        if let Some(state) = joined {
            self.joined = None;
            self.running.exchange.state().replica = Some(Replica::joining(self.config, state));
        }
        let until = if self.execute()? {
            until
        } else {
            until.min(boot_time_us() + FULL_US)
        };
        Ok(self.receiver.step(until)?)
    }

    /// Hands the messages that the receiver has to the replica, as many as it takes; gives true if it
    /// takes more, or has no state to take them.
    fn execute(&mut self) -> Result<bool, StoreReplicaError> {
        let mut state = self.running.exchange.state();
        let Some(replica) = &mut state.replica else {
            return Ok(true);
        };
        let now = boot_time_us();
        while replica.has_room() {
            match self.receiver.poll() {
                Some(Received::Message {
                    at,
                    destinations,
                    payload,
                    ..
                }) => replica.handle_delivery(now, at, destinations, payload),
                Some(Received::TakenOff) => return Err(StoreReplicaError::TakenOff),
                None => break,
            }
        }
        if let Some(time) = self.receiver.passed() {
            replica.handle_passed(time);
        }
        let (room, stuck) = (replica.has_room(), replica.stuck());
        self.running.exchange.send(&mut state);
        match stuck {
            Some((_, shard)) => Err(StoreReplicaError::Stuck(shard)),
            None => Ok(room),
        }
    }

    /// Leaves the list, and waits for that until `end`.
    pub fn close(self, end: u64) {
        drop(self.running);
        self.receiver.leave(end);
    }
}
