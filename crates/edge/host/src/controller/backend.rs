//! Decisions of a controller of chains, of coordination's groups and of multicast's, which a back end
//! stores.

use stateplane_groups::Decision;
use stateplane_membership::{self as membership, Version};
use stateplane_multicast_groups as multicast;
use stateplane_wire::control::ChainConfig;

use super::ControllerError;

/// First number of coordination's decisions: behind those of all chains.
const COORDINATION: u32 = 1 << 20;

/// First number of multicast's decisions: behind those of coordination.
const MULTICAST: u32 = 1 << 21;

/// Added to the number of a switch of coordination whose draining is stored: no store server, whose
/// number is its address, has such an address.
const SWITCHES: u32 = 0xf000_0000;

/// Added too to the number of a switch of multicast.
const OF_MULTICAST: u32 = 0x0800_0000;

/// First number that a switch of coordination or multicast cannot have.
pub(crate) const SWITCHES_END: u32 = OF_MULTICAST;

/// A decision of one of the systems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    /// Configuration of a chain of the store.
    Chain(ChainConfig),
    /// A decision about coordination's groups and lanes.
    Coordination(Decision),
    /// A decision about multicast's groups and sessions.
    Multicast(multicast::Decision),
}

impl Version for Decided {
    fn number(&self) -> u32 {
        match self {
            Decided::Chain(config) => config.number(),
            Decided::Coordination(decision) => COORDINATION + decision.number(),
            Decided::Multicast(decision) => MULTICAST + decision.number(),
        }
    }

    fn version(&self) -> u32 {
        match self {
            Decided::Chain(config) => config.version(),
            Decided::Coordination(decision) => decision.version(),
            Decided::Multicast(decision) => decision.version(),
        }
    }
}

/// A decision about a chain, a group, a store server or a switch.
pub type Record = membership::Record<Decided>;

/// All decisions in force.
pub type Kept = membership::Kept<Decided>;

/// A back end that keeps a controller's decisions.
pub trait DecisionBackend: membership::Backend<Version = Decided, Error = ControllerError> {}

impl<B> DecisionBackend for B where
    B: membership::Backend<Version = Decided, Error = ControllerError>
{
}

/// A server or switch whose draining is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drainable {
    /// A store server, by its number.
    Server(u32),
    /// A switch of coordination, by its number.
    Coordination(u32),
    /// A switch of multicast, by its number.
    Multicast(u32),
}

impl Drainable {
    /// Number by which its draining is stored.
    pub(crate) fn number(self) -> u32 {
        match self {
            Drainable::Server(number) => number,
            Drainable::Coordination(number) => SWITCHES | number,
            Drainable::Multicast(number) => SWITCHES | OF_MULTICAST | number,
        }
    }

    /// That of which `stored` is the number.
    pub(crate) fn of(stored: u32) -> Drainable {
        match (stored >= SWITCHES, stored & OF_MULTICAST != 0) {
            (false, _) => Drainable::Server(stored),
            (true, false) => Drainable::Coordination(stored & !SWITCHES),
            (true, true) => Drainable::Multicast(stored & !SWITCHES & !OF_MULTICAST),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use stateplane_groups::LaneBook;

    use super::*;

    #[test]
    fn numbers_of_systems_do_not_meet() {
        let chain = Decided::Chain(ChainConfig {
            chain: u16::MAX,
            epoch: 7,
            members: Vec::new(),
            joining: None,
        });
        let lanes = Decision::Lanes(LaneBook {
            version: 9,
            ..LaneBook::default()
        });
        let lanes = Decided::Coordination(lanes);
        assert_eq!((chain.number(), chain.version()), (0xffff, 7));
        assert_eq!(
            (lanes.number(), lanes.version()),
            (COORDINATION + 0x1_0000, 9)
        );
        let slots = multicast::SlotBook {
            version: 9,
            ..multicast::SlotBook::default()
        };
        let slots = Decided::Multicast(multicast::Decision::Slots(slots));
        assert_eq!((slots.number(), slots.version()), (MULTICAST + 0x100, 9));
        assert!(lanes.number() < MULTICAST);
    }

    #[test]
    fn numbers_of_what_is_drained_do_not_meet() {
        let last = Ipv4Addr::new(239, 255, 255, 255).to_bits();
        let drainable = [
            Drainable::Server(last),
            Drainable::Coordination(5),
            Drainable::Coordination(SWITCHES_END - 1),
            Drainable::Multicast(5),
            Drainable::Multicast(SWITCHES_END - 1),
        ];
        for one in drainable {
            assert_eq!(Drainable::of(one.number()), one);
        }
    }
}
