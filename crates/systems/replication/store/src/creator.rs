//! Creators of first states: what a first lease request of a flow without a record makes.
//!
//! The head lets the creator of the flow's class choose; the choice travels in the chain
//! entry as a kind and a payload that only the creator reads; every replica lets the
//! creator carry it out. A creator may have state in the shard, which follows from the
//! entries alone, and is the same at every replica.
//!
//! A new creator is a file beside `ports.rs`, a line in [`creator_of`], and a
//! [`FirstLease`] by which classes ask for it.

mod connections;
mod ports;
mod server;
mod zero;

use std::collections::BTreeSet;

use core::net::SocketAddrV4;

use stateplane_wire::chain::Creation;
use stateplane_wire::replication::Key;

use crate::config::{ClassConfig, Config, ConfigError, FirstLease};
use crate::record::State;
use crate::shard::Shard;

/// Every creator, as the creator of the records of `class`; `None` if no request makes any.
pub(crate) fn creator_of(class: &ClassConfig) -> Option<&'static dyn Creator> {
    match class.first_lease {
        FirstLease::None => None,
        FirstLease::Zero => Some(&zero::Zero),
        FirstLease::NatOutbound { .. } => Some(&ports::PortPool),
        FirstLease::NatDependent { .. } => Some(&connections::ConnectionPorts),
        FirstLease::Server { .. } => Some(&server::ServerChoice),
    }
}

/// The creator that carries `creation` out for a flow of `class`. Any class may have
/// records of zero state.
pub(crate) fn creator_for(
    class: &ClassConfig,
    creation: &Creation,
) -> Option<&'static dyn Creator> {
    if creation.kind == zero::KIND {
        return Some(&zero::Zero);
    }
    creator_of(class).filter(|creator| creator.kind() == creation.kind)
}

/// Facts on which a choice of the head may depend.
pub(crate) struct Setting<'a> {
    pub(crate) config: &'a Config,
    /// Number of the shard.
    pub(crate) number: u16,
    pub(crate) shard: &'a Shard,
    /// Servers that get no flows for the time being.
    pub(crate) unhealthy: &'a BTreeSet<SocketAddrV4>,
}

/// First states that a creation makes.
pub(crate) struct Made {
    /// State of the flow's record.
    pub(crate) state: State,
    /// Key and state of a second record, which lives as long as the first.
    pub(crate) other: Option<(Key, State)>,
}

/// Makes first states.
pub(crate) trait Creator {
    /// Kind of its creations in chain entries.
    fn kind(&self) -> u8;

    /// Number of records that a creation makes.
    fn records(&self) -> usize {
        1
    }

    /// Number of `class` among configurations: the creator, and its arguments.
    fn fingerprint(&self, class: &ClassConfig) -> [u8; 3];

    /// Refuses a class that it cannot serve.
    fn check(&self, _config: &Config, _class: &ClassConfig) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Gives the empty shard `number` the state that the creator keeps there.
    fn prepare(&self, _config: &Config, _number: u16, _shard: &mut Shard) {}

    /// The head's choice for `key`, which changes nothing; `None` if nothing is left.
    fn choose(&self, setting: &Setting<'_>, class: &ClassConfig, key: &Key) -> Option<Creation>;

    /// Carries a choice out; `None` if it contradicts the shard's state.
    fn create(
        &self,
        shard: &mut Shard,
        class: &ClassConfig,
        key: &Key,
        payload: [u8; 6],
    ) -> Option<Made>;

    /// True if little is left of what `creation` for `key` took from.
    fn is_low(&self, _setting: &Setting<'_>, _key: &Key, _creation: &Creation) -> bool {
        false
    }

    /// True if [`Creator::count`] depends on the state.
    fn follows_state(&self) -> bool {
        false
    }

    /// Notes that `key` has a record of `state`, or has it no more.
    fn count(
        &self,
        _shard: &mut Shard,
        _class: &ClassConfig,
        _key: &Key,
        _state: &[u8],
        _made: bool,
    ) {
    }

    /// Takes back what the record of `state`, whose second record had the key `other`, was
    /// made of.
    fn forget(&self, _shard: &mut Shard, _state: &[u8], _other: Option<&Key>) {}
}

#[cfg(test)]
mod tests;
