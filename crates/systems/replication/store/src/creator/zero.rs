//! Records of zero state.

use stateplane_wire::chain::Creation;
use stateplane_wire::replication::Key;

use super::{Creator, Made, Setting};
use crate::config::ClassConfig;
use crate::record::State;
use crate::shard::Shard;

pub(super) const KIND: u8 = 0;

/// A record of zero state.
pub(super) const CREATION: Creation = Creation {
    kind: KIND,
    payload: [0; 6],
};

pub(super) struct Zero;

impl Creator for Zero {
    fn kind(&self) -> u8 {
        KIND
    }

    fn fingerprint(&self, _: &ClassConfig) -> [u8; 3] {
        [0, 0, 0]
    }

    fn choose(&self, _: &Setting<'_>, _: &ClassConfig, _: &Key) -> Option<Creation> {
        Some(CREATION)
    }

    fn create(&self, _: &mut Shard, class: &ClassConfig, _: &Key, _: [u8; 6]) -> Option<Made> {
        Some(Made {
            state: State::from_elem(0, class.state_length.into()),
            other: None,
        })
    }
}
