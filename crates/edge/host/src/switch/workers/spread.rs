//! The worker that a frame falls to: by the queue that it came to, by its flow, or by the key of the
//! state that it will lock.

mod kind;
mod probe;
mod samples;
#[cfg(test)]
mod tests;

use super::flow::{flow_hash, mixed};
use kind::Kind;
use probe::{Found, probe};
use stateplane_switch::Port;

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

/// Frames of a port that fall to workers by key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ByKey {
    #[default]
    None,
    /// Those of these kinds, by their numbers.
    Kinds([bool; Kind::ALL.len()]),
    All,
}

impl ByKey {
    fn of_kinds(is_in: impl Fn(Kind) -> bool) -> ByKey {
        let kinds = Kind::ALL.map(is_in);
        if kinds.contains(&true) {
            ByKey::Kinds(kinds)
        } else {
            ByKey::None
        }
    }

    fn has(&self, frame: &[u8]) -> bool {
        match self {
            ByKey::None => false,
            ByKey::Kinds(kinds) => kinds[Kind::of(frame) as usize],
            ByKey::All => true,
        }
    }
}

/// Frames that fall to workers by key while one program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// At ports that are divided.
    divided: ByKey,
    /// At others.
    undivided: ByKey,
}

impl Rules {
    /// Those that `spread` asks for with the program whose keys `key_of` tells at `ports`.
    pub(super) fn new(
        spread: Spread,
        ports: &[Port],
        key_of: impl FnMut(Port, &[u8]) -> Option<u16>,
    ) -> Rules {
        match spread {
            Spread::Flow => Rules::default(),
            Spread::Key => Rules {
                divided: ByKey::All,
                undivided: ByKey::All,
            },
            Spread::Auto => Rules::found(&probe(ports, key_of)),
        }
    }

    fn found(found: &Found) -> Rules {
        let is_constant = |kind: Kind| {
            let kind = kind as usize;
            found.keyed[kind] && !found.varied[kind]
        };
        Rules {
            divided: ByKey::of_kinds(|kind| kind.bundles_flows() && found.hidden[kind as usize]),
            // They are handed over in any case. One lock for all frames is no reason for one worker.
            undivided: ByKey::of_kinds(|kind| !is_constant(kind)),
        }
    }

    /// Names of the kinds that go by key at divided ports too, if it is not all of them.
    fn kinds(&self) -> Vec<&'static str> {
        let ByKey::Kinds(kinds) = &self.divided else {
            return Vec::new();
        };
        let all = Kind::ALL.iter().zip(kinds);
        let by_key = all.filter(|(_, is_in)| **is_in);
        by_key.map(|(kind, _)| kind.name()).collect()
    }

    /// Logs the kinds of frames that go by key at divided ports too, if there are any.
    pub(super) fn tell(&self) {
        let kinds = self.kinds();
        if !kinds.is_empty() {
            let kinds = kinds.join(", ");
            tracing::info!(
                kinds,
                "frames of these kinds go to the worker of the state that they lock"
            );
        }
    }
}

/// What one worker knows to choose a frame's worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steering {
    /// Number of the worker that chooses.
    pub(super) own: usize,
    /// Number of workers.
    pub(super) workers: usize,
    /// Key of the hashes, the same at all workers.
    pub(super) key: u64,
    pub(super) rules: Rules,
}

impl Steering {
    /// True if frames of divided ports may fall to other workers.
    pub(super) fn hands_over_divided(&self) -> bool {
        self.workers > 1 && self.rules.divided != ByKey::None
    }

    /// True if all frames of a port stay, which is `divided` or not.
    pub(super) fn keeps_all(&self, divided: bool) -> bool {
        self.workers == 1 || divided && !self.hands_over_divided()
    }

    /// The worker of a frame that came to this one by a port which is `divided` or not.
    pub(super) fn worker(
        &self,
        divided: bool,
        frame: &[u8],
        key_of: impl FnOnce(&[u8]) -> Option<u16>,
    ) -> usize {
        let by_key = if divided {
            &self.rules.divided
        } else {
            &self.rules.undivided
        };
        if by_key.has(frame)
            && let Some(key) = key_of(frame)
        {
            return self.of_hash(mixed(self.key ^ u64::from(key)));
        }
        if divided {
            self.own
        } else {
            self.of_hash(flow_hash(frame, self.key))
        }
    }

    fn of_hash(&self, hash: u64) -> usize {
        (hash % self.workers as u64) as usize
    }
}
