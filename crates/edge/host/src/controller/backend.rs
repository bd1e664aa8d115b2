//! Decisions of a controller of chains and of coordination's groups, which a back end stores.

use stateplane_groups::Decision;
use stateplane_membership::{self as membership, Version};
use stateplane_wire::control::ChainConfig;

use super::ControllerError;

/// First number of coordination's decisions: behind those of all chains.
const COORDINATION: u32 = 1 << 20;

/// Added to the number of a switch of coordination whose draining is stored: no store server, whose
/// number is its address, has such an address.
const SWITCHES: u32 = 0xf000_0000;

/// First number that a switch of coordination cannot have.
pub(crate) const SWITCHES_END: u32 = u32::MAX - SWITCHES;

/// A decision of one of the systems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    /// Configuration of a chain of the store.
    Chain(ChainConfig),
    /// A decision about coordination's groups and lanes.
    Coordination(Decision),
}

impl Version for Decided {
    fn number(&self) -> u32 {
        match self {
            Decided::Chain(config) => config.number(),
            Decided::Coordination(decision) => COORDINATION + decision.number(),
        }
    }

    fn version(&self) -> u32 {
        match self {
            Decided::Chain(config) => config.version(),
            Decided::Coordination(decision) => decision.version(),
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

/// Number by which draining of switch `number` of coordination is stored.
pub(crate) fn switch_number(number: u32) -> u32 {
    SWITCHES | number
}

/// The switch of coordination, if `stored` is the number of one.
pub(crate) fn switch_of(stored: u32) -> Option<u32> {
    (stored >= SWITCHES).then_some(stored & !SWITCHES)
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
        assert_eq!(switch_of(switch_number(5)), Some(5));
        assert_eq!(switch_of(Ipv4Addr::new(239, 255, 255, 255).to_bits()), None);
        assert!(switch_of(switch_number(SWITCHES_END - 1)).is_some());
    }
}
