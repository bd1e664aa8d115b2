//! Membership without IO: what a controller of any system needs to know of its servers, and to
//! decide about what is placed on them.
//!
//! * [`Servers`]: health by heartbeats, over any [`Start`] of a server.
//! * [`Ring`]: placement of things, known by numbers, on servers.
//! * [`Claims`]: what servers say that they follow, and this controller never decided.
//! * [`Version`], [`Record`], [`Kept`], [`Backend`]: numbered versions of configurations, their
//!   storage, and the election of the controller that makes them.
//!
//! A system decides itself what the things are and which configuration follows another; see
//! `stateplane-chains`.

mod claims;
mod decisions;
mod health;
mod placement;

pub use claims::Claims;
pub use decisions::{Backend, Kept, MOST_RECORDS, Record, Stored, Version};
pub use health::{Beat, Health, MOST_SERVERS, Servers};
pub use placement::Ring;

use stateplane_wire::control::{ChainConfig, Member};

/// One start of a server.
pub trait Start: Copy + PartialEq {
    /// Number of the server.
    fn server(&self) -> u32;

    /// Number of the start, unlike those of the server's other starts.
    fn incarnation(&self) -> u32;
}

impl Start for Member {
    fn server(&self) -> u32 {
        self.server
    }

    fn incarnation(&self) -> u32 {
        self.incarnation
    }
}

impl Version for ChainConfig {
    fn number(&self) -> u32 {
        self.chain.into()
    }

    fn version(&self) -> u32 {
        self.epoch
    }
}
