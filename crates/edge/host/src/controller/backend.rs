//! Storage of a controller's decisions that outlives the controller.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use stateplane_wire::control::ChainConfig;

use super::ControllerError;

/// Maximum number of decisions that are stored at once.
pub const MOST_RECORDS: usize = 64;

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Configuration of a chain.
    Config(ChainConfig),
    /// Request that a server lose its shards, or its withdrawal.
    Drained {
        /// Number of the server.
        server: u32,
        /// True if the server is to lose its shards.
        drained: bool,
    },
}

/// All decisions in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// The newest configuration of each chain.
    pub configs: BTreeMap<u16, ChainConfig>,
    /// Numbers of the servers that are to lose their shards.
    pub drained: BTreeSet<u32>,
}

impl Kept {
    /// Adds a decision.
    pub fn add(&mut self, record: Record) {
        match record {
            Record::Config(config) => {
                let newest = self.configs.get(&config.chain);
                if newest.is_none_or(|newest| newest.epoch < config.epoch) {
                    self.configs.insert(config.chain, config);
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
    pub fn records(&self) -> impl Iterator<Item = Record> {
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
    /// Waits until this controller leads, and returns the decisions so far; `None` if `stop` was
    /// set meanwhile. They contain everything that [`store`](Self::store) accepted from any
    /// controller before.
    ///
    /// # Errors
    ///
    /// [`ControllerError`] if that cannot be found out.
    fn lead(&mut self, stop: &AtomicBool) -> Result<Option<Kept>, ControllerError>;

    /// True if this controller still leads, as far as it knows. What keeps two that both believe so
    /// from harm is [`store`](Self::store).
    fn leads(&self) -> bool;

    /// True if other controllers store their decisions there too.
    fn is_shared(&self) -> bool;

    /// Keeps `records`, at most [`MOST_RECORDS`], all or none. No configuration is kept
    /// that does not follow the last one of its chain.
    ///
    /// # Errors
    ///
    /// [`ControllerError`] if it is not certain whether they are kept, and will not be:
    /// the controller must then stop.
    fn store(&mut self, records: &[Record]) -> Result<Stored, ControllerError>;
}
