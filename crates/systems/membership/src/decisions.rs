//! Decisions of a controller that outlive it, and the election of the one that makes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

/// Maximum number of decisions that are stored at once.
pub const MOST_RECORDS: usize = 64;

/// One version of the configuration of something that is placed on servers.
pub trait Version {
    /// Number of what is configured.
    fn number(&self) -> u32;

    /// Number of the version: of two, the greater one counts.
    fn version(&self) -> u32;
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<V> {
    /// A version of a configuration.
    Config(V),
    /// Request that nothing be placed on a server, or its withdrawal.
    Drained {
        /// Number of the server.
        server: u32,
        /// True if nothing is to be placed on the server.
        drained: bool,
    },
}

/// All decisions in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept<V> {
    /// The newest version of each configuration, by number of what is configured.
    pub configs: BTreeMap<u32, V>,
    /// Numbers of the servers on which nothing is to be placed.
    pub drained: BTreeSet<u32>,
}

impl<V> Default for Kept<V> {
    fn default() -> Kept<V> {
        Kept {
            configs: BTreeMap::new(),
            drained: BTreeSet::new(),
        }
    }
}

impl<V: Version + Clone> Kept<V> {
    /// Adds a decision.
    pub fn add(&mut self, record: Record<V>) {
        match record {
            Record::Config(config) => {
                let newest = self.configs.get(&config.number());
                if newest.is_none_or(|newest| newest.version() < config.version()) {
                    self.configs.insert(config.number(), config);
                }
            }
            Record::Drained { server, drained } => {
                if drained {
                    self.drained.insert(server)
                } else {
                    self.drained.remove(&server)
                };
            }
        }
    }

    /// The decisions, one by one.
    pub fn records(&self) -> impl Iterator<Item = Record<V>> {
        let configs = self.configs.values().cloned().map(Record::Config);
        let drained = self.drained.iter().map(|server| Record::Drained {
            server: *server,
            drained: true,
        });
        configs.chain(drained)
    }
}

/// Result of storing decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// A later controller will find them.
    Kept,
    /// Another controller leads, or the result of storing is unknown: this controller has to read
    /// the decisions again before it decides more.
    LeadAnew,
}

/// Keeps decisions, and says which of several controllers may make them.
pub trait Backend {
    /// The decision.
    type Version: Version;
    /// Reason why decisions can be neither kept nor read.
    type Error;

    /// Waits until this controller leads, and returns the decisions so far; `None` if `stop` was
    /// set meanwhile. They contain everything that [`store`](Self::store) accepted from any
    /// controller before.
    ///
    /// # Errors
    ///
    /// [`Backend::Error`] if that cannot be found out.
    fn lead(&mut self, stop: &AtomicBool) -> Result<Option<Kept<Self::Version>>, Self::Error>;

    /// True if this controller still leads, as far as it knows. What keeps two that both believe so
    /// from harm is [`store`](Self::store).
    fn leads(&self) -> bool;

    /// True if other controllers store their decisions there too.
    fn is_shared(&self) -> bool;

    /// Keeps `records`, at most [`MOST_RECORDS`], all or none. No version of a configuration is
    /// kept that does not follow the last one.
    ///
    /// # Errors
    ///
    /// [`Backend::Error`] if it is not certain whether they are kept, and will not be:
    /// the controller must then stop.
    fn store(&mut self, records: &[Record<Self::Version>]) -> Result<Stored, Self::Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number and version.
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Config(u16, u32);

    impl Version for Config {
        fn number(&self) -> u32 {
            self.0.into()
        }

        fn version(&self) -> u32 {
            self.1
        }
    }

    #[test]
    fn the_newest_version_of_each_configuration_is_in_force() {
        let mut kept = Kept::default();
        for config in [Config(1, 2), Config(2, 7), Config(1, 1), Config(1, 3)] {
            kept.add(Record::Config(config));
        }
        for (server, drained) in [(5, true), (6, true), (5, false)] {
            kept.add(Record::Drained { server, drained });
        }
        let records: Vec<Record<Config>> = kept.records().collect();
        let drained = Record::Drained {
            server: 6,
            drained: true,
        };
        let [first, second] = [Config(1, 3), Config(2, 7)].map(Record::Config);
        assert_eq!(records, [first, second, drained]);
    }
}
