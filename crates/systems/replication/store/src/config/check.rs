//! Contradictions in a configuration.

use std::collections::{BTreeMap, BTreeSet};

use super::{Config, ConfigError, FirstLease, MOST_CLOCK_PPM, NatPool};
use crate::creator::creator_of;
use crate::pool::shard_ports;

/// Least µs of a promise. Heartbeats are half of it apart, and a shorter one would end with any
/// delay.
const LEAST_TERM: u32 = 10_000;

impl Config {
    /// Checks that a replica can run with this configuration.
    ///
    /// # Errors
    ///
    /// The first contradiction found, as a [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_chain()?;
        self.check_classes()?;
        if let Some(pool) = &self.nat {
            self.check_pool(pool)?;
        }
        if self.term < LEAST_TERM {
            return Err(ConfigError::Term { term: self.term });
        }
        if self.backing <= self.term {
            return Err(ConfigError::Backing {
                backing: self.backing,
                term: self.term,
            });
        }
        if self.clock_ppm > MOST_CLOCK_PPM {
            return Err(ConfigError::ClockBound {
                ppm: self.clock_ppm,
            });
        }
        let limits = &self.limits;
        for (name, value) in [
            ("limit of records", limits.records as u64),
            ("limit of holders", limits.holders.into()),
            ("share of ports that is low", limits.pool_low.into()),
            (
                "limit of parked requests per flow",
                limits.parked_per_flow as u64,
            ),
            ("limit of parked bytes", limits.parked_bytes as u64),
            (
                "limit of parked bytes per switch",
                limits.parked_bytes_per_switch as u64,
            ),
            ("limit of a datagram", limits.datagram as u64),
            ("link window", limits.link_window as u64),
            ("length of a batch", limits.batch as u64),
            (
                "limit of entries for a joining replica",
                limits.join_backlog as u64,
            ),
            (
                "limit of changes for observers",
                limits.observed_changes as u64,
            ),
            ("time of silence", limits.silence),
            ("first time between recalls", limits.recall_first),
            ("time until a shard is withheld", limits.withhold_after),
            (
                "time between questions for backing",
                limits.backing_interval,
            ),
            ("bound of the time between recalls", limits.recall_bound),
            ("first resend time", limits.resend_first),
            ("bound of the resend time", limits.resend_bound),
        ] {
            if value == 0 {
                return Err(ConfigError::Zero { name });
            }
        }
        Ok(())
    }

    fn check_chain(&self) -> Result<(), ConfigError> {
        if self.chain_length == 0 {
            return Err(ConfigError::EmptyChain);
        }
        if self.position >= self.chain_length {
            return Err(ConfigError::Position {
                position: self.position,
                length: self.chain_length,
            });
        }
        if !self.shards.is_power_of_two() {
            return Err(ConfigError::ShardCount {
                shards: self.shards,
            });
        }
        match self.served.last() {
            None => Err(ConfigError::NothingServed),
            Some(&shard) if shard >= self.shards => Err(ConfigError::ServedShard {
                shard,
                shards: self.shards,
            }),
            Some(_) => Ok(()),
        }
    }

    fn check_classes(&self) -> Result<(), ConfigError> {
        let mut by_number = BTreeMap::new();
        for class in &self.classes {
            if by_number.insert(class.class, class).is_some() {
                return Err(ConfigError::DuplicateClass { class: class.class });
            }
        }
        for class in &self.classes {
            if let Some(quota) = class.quota.filter(|quota| !quota.is_valid()) {
                return Err(ConfigError::Quota {
                    class: class.class,
                    quota,
                });
            }
            let states = class.idle.in_state.iter();
            if let Some(beyond) = states
                .map(|of| of.byte)
                .find(|byte| *byte >= class.state_length)
            {
                return Err(ConfigError::StateByte {
                    class: class.class,
                    byte: beyond,
                    length: class.state_length,
                });
            }
            if let Some(creator) = creator_of(class) {
                creator.check(self, class)?;
            }
        }
        let mut classes = self.classes.iter();
        let given = classes.any(|class| matches!(class.first_lease, FirstLease::Server { .. }));
        match self.services.first() {
            Some(service) if !given => Err(ConfigError::UnusedService {
                service: service.id,
            }),
            _ => Ok(()),
        }
    }

    fn check_pool(&self, pool: &NatPool) -> Result<(), ConfigError> {
        if pool.addresses.is_empty() || pool.first_port > pool.last_port || pool.last_port == 0 {
            return Err(ConfigError::EmptyPool {
                addresses: pool.addresses.len(),
                first: pool.first_port,
                last: pool.last_port,
            });
        }
        if pool.first_port == 0 {
            return Err(ConfigError::PortZero);
        }
        let mut seen = BTreeSet::new();
        for &address in &pool.addresses {
            if !seen.insert(address) {
                return Err(ConfigError::DuplicateAddress { address });
            }
        }
        for &shard in &self.served {
            if shard_ports(shard, self.shards, pool).is_none() {
                let width = 65_536 / u32::from(self.shards);
                return Err(ConfigError::EmptyShardPool {
                    shard,
                    owned_first: u32::from(shard) * width,
                    owned_last: (u32::from(shard) + 1) * width - 1,
                    first: pool.first_port,
                    last: pool.last_port,
                });
            }
        }
        Ok(())
    }
}
