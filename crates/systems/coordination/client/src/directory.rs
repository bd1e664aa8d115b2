//! Which switches keep which group.

use core::net::Ipv4Addr;

use sha2::{Digest, Sha256};
use stateplane_wire::coordination::{Key, MAX_CHAIN};

/// The group of a key that names none: the first 8 bytes of SHA-256 over the key's 16 bytes, as a
/// big-endian number, modulo the number of groups.
///
/// `groups` is at least 1.
///
/// ```
/// use stateplane_coordination::group_of;
/// use stateplane_wire::coordination::Key;
///
/// assert_eq!(group_of(&Key([0; 16]), 64), 21);
/// ```
pub fn group_of(key: &Key, groups: u16) -> u16 {
    let hash = Sha256::digest(key.0);
    let prefix = hash
        .iter()
        .take(8)
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    (prefix % u64::from(groups.max(1))) as u16
}

/// The chain of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The group.
    pub group: u16,
    /// Its founding (rule 17).
    pub generation: u16,
    /// Its configuration number (rule 9).
    pub epoch: u32,
    /// Its members, head first.
    pub members: Vec<Ipv4Addr>,
    /// The switch that joins, if one does.
    pub joining: Option<Ipv4Addr>,
}

impl Chain {
    fn is_newer_than(&self, other: &Chain) -> bool {
        (self.generation, self.epoch) > (other.generation, other.epoch)
    }

    /// Members, and the one that joins, in the order of the chain.
    pub(crate) fn switches(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.members.iter().copied().chain(self.joining)
    }
}

/// Changes that an agent made for a chain that it was told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Learnt {
    Nothing,
    /// Another configuration of the same founding.
    Chain,
    /// The first that is known.
    First,
    /// Another founding.
    Founding,
}

/// The chains of all groups, as far as they are known.
#[derive(Debug)]
pub(crate) struct Directory {
    chains: Vec<Option<Chain>>,
}

impl Directory {
    pub fn new(groups: u16) -> Directory {
        Directory {
            chains: vec![None; groups.into()],
        }
    }

    pub fn chain(&self, group: u16) -> Option<&Chain> {
        self.chains.get(usize::from(group))?.as_ref()
    }

    /// Takes a chain that is newer than the one known; one without members, or with more than a
    /// message names, is no chain.
    pub fn learn(&mut self, chain: Chain) -> Learnt {
        let switches = chain.switches().count();
        let Some(known) = self.chains.get_mut(usize::from(chain.group)) else {
            return Learnt::Nothing;
        };
        let usable = !chain.members.is_empty() && switches <= MAX_CHAIN && chain.epoch > 0;
        if !usable
            || known
                .as_ref()
                .is_some_and(|known| !chain.is_newer_than(known))
        {
            return Learnt::Nothing;
        }
        let generation = chain.generation;
        match known.replace(chain) {
            None => Learnt::First,
            Some(known) if known.generation == generation => Learnt::Chain,
            Some(_) => Learnt::Founding,
        }
    }
}
