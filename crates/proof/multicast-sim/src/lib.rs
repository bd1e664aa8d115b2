//! Multicast in virtual time, from one seed.
//!
//! Switches run the program that ships; senders and receivers are those of `stateplane-multicast`.
//! An authority decides epochs, leaders, members, learners and receivers: it does what the rules
//! allow, and much that no controller would. Links lose, duplicate, exchange and delay messages;
//! switches die and return empty, stand still, are cut off, and live on after they were deposed;
//! senders and receivers die, are slow, are taken off lists and join. In the scenario `store` receivers
//! have replicas of the key-value store of `stateplane-multicast-store`, and senders its clients.
//!
//! It stands on `stateplane-world`. Equal options and seed give an equal trace. The checkers of
//! `stateplane_history::multicast` judge each run; [`Rule`] names the rules that can be turned off,
//! to show that a checker misses them.

mod authority;
mod device;
pub mod event;
mod options;
mod parcel;
mod places;
mod plan;
mod receiver;
mod report;
mod scenario;
mod sender;
mod shrink;
mod simulator;
mod world;

pub use options::{Options, PROGRAM, Rule};
pub use report::{Coverage, Report};
pub use scenario::Scenario;
pub use simulator::{SimError, Simulator};
pub use stateplane_multicast_setup::SetupError;
