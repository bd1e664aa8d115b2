//! The worker that a frame falls to: by the queue that it came to, by its flow, or by the key of the
//! state that it will lock.

mod kind;
mod learned;
#[cfg(test)]
mod tests;

pub(super) use learned::Learned;

use super::flow::{flow_hash, mixed};
use kind::Kind;
use std::sync::Arc;

/// Rule by which frames fall to workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// By key of the state that they lock, as the engine tells it
    /// ([`Engine::state_key`](stateplane_runtime::Engine::state_key)): frames of ports that are not
    /// divided among the workers; of those that are, frames of kinds of which one flow carries the
    /// state of many, if their keys tell them apart.
    #[default]
    Auto,
    /// By flow.
    Flow,
    /// By key, all that have one.
    Key,
}

/// Chooses the workers of the frames that come to one of them.
#[derive(Debug)]
pub(super) struct Steering {
    /// Number of the worker that chooses.
    pub(super) own: usize,
    /// Number of workers.
    pub(super) workers: usize,
    /// Key of the hashes, the same at all workers.
    pub(super) key: u64,
    pub(super) spread: Spread,
    /// Kinds that go by key at divided ports, of all workers.
    pub(super) learned: Arc<Learned>,
    /// Room for a frame that is tried.
    pub(super) buffer: Vec<u8>,
}

impl Steering {
    /// True if frames of divided ports fall to other workers.
    pub(super) fn hands_over_divided(&self) -> bool {
        self.workers > 1
            && match self.spread {
                Spread::Auto => self.learned.has_any(),
                Spread::Flow => false,
                Spread::Key => true,
            }
    }

    /// True if all frames of a port stay, which is `divided` or not.
    pub(super) fn keeps_all(&self, divided: bool) -> bool {
        self.workers == 1 || divided && self.spread == Spread::Flow
    }

    /// The worker of a frame that came to this one by a port which is `divided` or not.
    pub(super) fn worker(
        &mut self,
        divided: bool,
        frame: &[u8],
        mut key_of: impl FnMut(&[u8]) -> Option<u16>,
    ) -> usize {
        let key = match self.spread {
            Spread::Flow => None,
            // Frames of undivided ports are handed over in any case.
            Spread::Auto if divided => {
                let kind = Kind::of(frame);
                if kind.bundles_flows() {
                    let buffer = &mut self.buffer;
                    self.learned.key(kind, frame, buffer, &mut key_of)
                } else {
                    None
                }
            }
            Spread::Auto | Spread::Key => key_of(frame),
        };
        match key {
            Some(key) => self.of_hash(mixed(self.key ^ u64::from(key))),
            None if divided => self.own,
            None => self.of_hash(flow_hash(frame, self.key)),
        }
    }

    fn of_hash(&self, hash: u64) -> usize {
        (hash % self.workers as u64) as usize
    }
}
