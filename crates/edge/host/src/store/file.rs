//! The section `[replication]` of a deployment.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::Deserialize;
use stateplane_chains::Settings;
use stateplane_store::{Config, Limits, NatPool};
use stateplane_wire::{chain, replication};

use super::StoreError;
use crate::controller::{ControllerError, ControllerFile};
use crate::deployment::Deployment;

mod class;
mod service;
mod switch;

pub use class::{
    ClassFile, FirstLeaseFile, IdleFile, IdleInStateFile, ProtocolFile, QuotaFile, ServiceAtFile,
};
pub use service::{HealthFile, ServiceFile, ServiceServerFile};
pub use switch::{DeploymentServerFile, DeploymentSwitchFile, InitError};

/// The section `[replication]` of a deployment: what store servers keep, and in which chains.
///
/// ```
/// let file = r#"
///     listen = "10.0.0.11"                # this server's address
///
///     [replication]
///     chain = ["10.0.0.11", "10.0.0.12", "10.0.0.13"]   # head first
///     chain_epoch = 1                     # configuration number of the chain
///     shards = 4                          # parts of the key space, a power of two
///     term_ms = 100                       # for how long a head waits for a silent switch
///     clock_ppm = 900                     # how far off any clock's rate may be
///     recall = true                       # ask owners for leases that others need
///
///     [[replication.class]]
///     id = 1                              # byte 0 of the flow key
///     state_length = 6
///     first_lease = "nat-outbound"        # or "zero", "none"
///     inbound_class = 2
///     shared_only = true
///     idle_timeout_s = { default = 300, tcp = 7440, udp = 300 }
///     quota = { records = 2000, tenant_first = 2, tenant_length = 4 }   # for each inside address
///
///     [[replication.class]]
///     id = 2
///     state_length = 6
///     first_lease = "none"
///     shared_only = true
///
///     [[replication.class]]
///     id = 5
///     state_length = 6
///     first_lease = "server"              # begins with a server's address and port
///     service_at = { address = 6, port = 12 }   # bytes of the key that name the service
///     idle_timeout_s = { default = 300, tcp = 7440 }
///
///     [[replication.service]]
///     address = "198.51.100.1"
///     protocol = "tcp"
///     port = 80
///     servers = [
///         { address = "10.0.2.1", port = 8080, weight = 2 },
///         { address = "10.0.2.2", port = 8080, most = 10000 },
///     ]
///     health = { interval_ms = 2000, timeout_ms = 500, fall = 3, rise = 2 }   # by TCP
///
///     [replication.nat]
///     addresses = ["203.0.113.1"]
///     first_port = 1024
///     last_port = 65535
/// "#;
/// let deployment =
///     stateplane_host::deployment::Deployment::parse("store.toml".as_ref(), file)?;
/// assert_eq!(deployment.replica_config()?.position, 0);
/// # Ok::<(), stateplane_host::store::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreFile {
    /// UDP port for switches; 4793 unless set.
    #[serde(default = "request_port")]
    pub request_port: u16,
    /// UDP port for neighbours, the same on all replicas; 4794 unless set.
    #[serde(default = "chain_port")]
    pub chain_port: u16,
    /// Addresses of the replicas, head first; of a chain that never changes. Left out
    /// where a controller makes the chains.
    #[serde(default)]
    pub chain: Vec<Ipv4Addr>,
    /// Members of each chain that a controller makes; 3 unless set.
    #[serde(default = "three")]
    pub replicas: u8,
    /// Servers that must be there before a controller makes the first chains; as many as
    /// `replicas` unless set.
    pub founders: Option<u16>,
    /// ms after which a controller gives the shards of a dead server to another; 10000 unless set.
    #[serde(default = "ten_thousand")]
    pub replace_after_ms: u32,
    /// Folder that keeps the state, of this server alone; without it the state is gone
    /// when the process ends.
    pub data: Option<PathBuf>,
    /// MiB written to the folder after which a snapshot takes their place; 256 unless set.
    pub snapshot_after_mb: Option<u32>,
    /// This server's place in the chain, from 0; found by `listen` unless set.
    pub position: Option<u8>,
    /// Configuration number of the chain; 1 unless set.
    #[serde(default = "one")]
    pub chain_epoch: u32,
    /// Parts of the key space, a power of two; 1 unless set.
    #[serde(default = "one_shard")]
    pub shards: u16,
    /// The shards that the chain keeps; all unless set.
    pub serve: Option<Vec<u16>>,
    /// ms for which the head of a chain promises a switch, with each heartbeat, that it outwaits
    /// none of its leases: for at most as long the flows of a dead switch wait; 100 unless set.
    #[serde(default = "hundred")]
    pub term_ms: u32,
    /// ms for which a server backs the head of a chain that it follows, and for which a new head
    /// outwaits nobody; at least `term_ms`, the controller's `detection_ms` and 100 together, which
    /// it is unless set; without a controller 200 stand for its `detection_ms`.
    pub backing_ms: Option<u32>,
    /// By how many parts per million the rate of any switch's or server's clock may
    /// differ from true time; 900 unless set. A greater bound makes the store wait
    /// longer for the end of leases.
    #[serde(default = "clock_ppm")]
    pub clock_ppm: u32,
    /// True if an owner is asked to release a lease when another switch needs it; `true` unless
    /// set. Otherwise the other waits until the lease has run out.
    #[serde(default = "yes")]
    pub recall: bool,
    /// Settings of the flow classes.
    #[serde(default)]
    pub class: Vec<ClassFile>,
    /// Services and their servers, for classes with `first_lease = "server"`.
    #[serde(default)]
    pub service: Vec<ServiceFile>,
    /// Public endpoints for classes with `first_lease = "nat-outbound"`.
    pub nat: Option<NatFile>,
    /// Bounds of everything that grows.
    #[serde(default)]
    pub limits: LimitsFile,
    /// The switches, for `stateplane init`.
    #[serde(default)]
    pub switch: Vec<DeploymentSwitchFile>,
    /// The servers as switches reach them, for `stateplane init`.
    #[serde(default)]
    pub server: Vec<DeploymentServerFile>,
}

/// Public endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NatFile {
    /// Public addresses.
    pub addresses: Vec<Ipv4Addr>,
    /// First port of each; 1024 unless set.
    #[serde(default = "first_port")]
    pub first_port: u16,
    /// Last port of each; 65535 unless set.
    #[serde(default = "last_port")]
    pub last_port: u16,
}

/// Bounds; what is not set has the default of [`Limits`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsFile {
    /// Records, over all shards.
    pub records: Option<usize>,
    /// Seconds of idleness after which a record makes room when the store is full;
    /// unless set, requests are refused then.
    pub evict_after_s: Option<u32>,
    /// Percent of free ports below which a warning is counted (`pool_low`).
    pub pool_low_percent: Option<u8>,
    /// Holders of one shared lease.
    pub holders: Option<u16>,
    /// Requests that wait for one flow.
    pub parked_per_flow: Option<usize>,
    /// Bytes of all requests that wait.
    pub parked_bytes: Option<usize>,
    /// Bytes of all requests of one switch that wait.
    pub parked_bytes_per_switch: Option<usize>,
    /// Maximum number of entries in flight to the successor.
    pub link_window: Option<usize>,
    /// Bytes of entries that share a datagram to the successor.
    pub batch: Option<usize>,
    /// ms until unacknowledged entries are resent for the first time.
    pub resend_first_ms: Option<u32>,
    /// ms beyond which that time does not double.
    pub resend_bound_ms: Option<u32>,
}

fn request_port() -> u16 {
    replication::PORT
}

fn chain_port() -> u16 {
    chain::PORT
}

fn three() -> u8 {
    3
}

fn ten_thousand() -> u32 {
    10_000
}

fn clock_ppm() -> u32 {
    900
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

fn one_shard() -> u16 {
    1
}

fn hundred() -> u32 {
    100
}

fn first_port() -> u16 {
    1024
}

fn last_port() -> u16 {
    65_535
}

/// ms by which a backing outlives the detection of a dead member and a promise.
const SLACK_MS: u32 = 100;

/// ms that stand for the detection of a dead member where no controller detects any.
const DETECTION_MS: u32 = 200;

/// A time of the file in µs.
fn micros(name: &'static str, ms: u32) -> Result<u32, StoreError> {
    ms.checked_mul(1000).ok_or(StoreError::TooLong {
        name,
        value: ms.into(),
        most: (u32::MAX / 1000).into(),
    })
}

impl StoreFile {
    /// The settings of the controller of the chains, checked. `controller` is the deployment's
    /// section of that name.
    ///
    /// # Errors
    ///
    /// [`ControllerError::Settings`]; [`ControllerError::TooLong`] for heartbeats
    /// so rare that a live server would be taken for dead; [`ControllerError::ShortBacking`] if
    /// the death of one member of a chain would end the head's promises.
    pub fn settings(&self, controller: &ControllerFile) -> Result<Settings, ControllerError> {
        let settings = Settings {
            founders: self.founders.unwrap_or(self.replicas.into()),
            detection: controller.detection()?,
            replace_after: u64::from(self.replace_after_ms) * 1000,
            ..Settings::new(self.shards, self.replicas)
        };
        settings.check()?;
        let least_ms = self.least_backing_ms(controller.detection_ms);
        match self.backing_ms {
            Some(backing_ms) if backing_ms < least_ms => Err(ControllerError::ShortBacking {
                backing_ms,
                term_ms: self.term_ms,
                detection_ms: controller.detection_ms,
                least_ms,
            }),
            _ => Ok(settings),
        }
    }

    /// ms for which a backing has to last.
    fn least_backing_ms(&self, detection_ms: u32) -> u32 {
        let before = self.term_ms.saturating_add(detection_ms);
        before.saturating_add(SLACK_MS)
    }

    /// The configuration of a replica at `place` of a chain of `length`, checked. A controller
    /// detects dead servers within `detection_ms`.
    fn config(&self, length: u8, place: u8, detection_ms: u32) -> Result<Config, StoreError> {
        let mut config = Config::new(length, place).with_shards(self.shards);
        config.chain_epoch = self.chain_epoch;
        config.term = micros("term_ms", self.term_ms)?;
        let backing_ms = self.backing_ms;
        let backing_ms = backing_ms.unwrap_or_else(|| self.least_backing_ms(detection_ms));
        config.backing = micros("backing_ms", backing_ms)?;
        config.recall = self.recall;
        config.clock_ppm = self.clock_ppm;
        if let Some(serve) = &self.serve {
            config.served = serve.iter().copied().collect();
        }
        for class in &self.class {
            config.classes.push(class.config()?);
        }
        config.services = self.service.iter().map(ServiceFile::config).collect();
        config.nat = self.nat.as_ref().map(|nat| NatPool {
            addresses: nat.addresses.clone(),
            first_port: nat.first_port,
            last_port: nat.last_port,
        });
        config.limits = self.limits.limits();
        let evict_after = self.limits.evict_after_s;
        config.evict_after = evict_after.map(|seconds| u64::from(seconds) * 1_000_000);
        config.check()?;
        Ok(config)
    }

    /// Place of the server with the address `listen` in the chain that never changes.
    fn place(&self, listen: Ipv4Addr) -> Result<u8, StoreError> {
        for (at, &address) in self.chain.iter().enumerate() {
            if self.chain[..at].contains(&address) {
                return Err(StoreError::TwiceInChain { address });
            }
        }
        let Some(position) = self.position else {
            let found = self.chain.iter().position(|a| *a == listen);
            return found.and_then(|at| u8::try_from(at).ok()).ok_or_else(|| {
                StoreError::NotInChain {
                    listen,
                    chain: self.chain.clone(),
                }
            });
        };
        match self.chain.get(usize::from(position)) {
            Some(&there) if there != listen && !listen.is_unspecified() => {
                Err(StoreError::WrongPlace {
                    position,
                    there,
                    listen,
                })
            }
            _ => Ok(position),
        }
    }
}

impl Deployment {
    /// The configuration of the replica at `listen`, checked; where a controller makes the
    /// chains, what is common to all replicas.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] that names the settings that contradict each other, or the
    /// missing section `[replication]`.
    pub fn replica_config(&self) -> Result<Config, StoreError> {
        let file = self.replication()?;
        if let Some(controller) = &self.controller {
            return file.config(1, 0, controller.detection_ms);
        }
        let length = file.chain.len();
        let fits = u8::try_from(length).map_err(|_| StoreError::LongChain { length })?;
        file.config(fits, file.place(self.listen)?, DETECTION_MS)
    }

    /// The store server's own address: where it listens, or that of its place in the chain;
    /// unspecified if neither says one.
    pub(super) fn store_address(&self) -> Ipv4Addr {
        let place = self.replication.as_ref().and_then(|file| {
            let position = file.position?;
            file.chain.get(usize::from(position))
        });
        match (self.listen.is_unspecified(), place) {
            (true, Some(address)) => *address,
            _ => self.listen,
        }
    }
}

impl LimitsFile {
    fn limits(&self) -> Limits {
        let default = Limits::default();
        let micros = |ms: Option<u32>, default| ms.map_or(default, |ms| u64::from(ms) * 1000);
        Limits {
            records: self.records.unwrap_or(default.records),
            holders: self.holders.unwrap_or(default.holders),
            pool_low: self.pool_low_percent.unwrap_or(default.pool_low),
            parked_per_flow: self.parked_per_flow.unwrap_or(default.parked_per_flow),
            parked_bytes: self.parked_bytes.unwrap_or(default.parked_bytes),
            parked_bytes_per_switch: self
                .parked_bytes_per_switch
                .unwrap_or(default.parked_bytes_per_switch),
            link_window: self.link_window.unwrap_or(default.link_window),
            batch: self.batch.unwrap_or(default.batch),
            resend_first: micros(self.resend_first_ms, default.resend_first),
            resend_bound: micros(self.resend_bound_ms, default.resend_bound),
            ..default
        }
    }
}

#[cfg(test)]
mod tests;
