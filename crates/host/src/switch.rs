//! The switch as a process: a [`Switch`](stateplane_switch::Switch) between network
//! interfaces.

mod error;
mod report;
mod server;

pub use error::SwitchServerError;
pub use report::{PacketReport, PortReport, SwitchReport};
pub use server::{Status, SwitchServer};
