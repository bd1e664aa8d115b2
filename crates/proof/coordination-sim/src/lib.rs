//! The coordination service in virtual time, from one seed.
//!
//! Four switches run the program that ships, as in Fig. 8 of NetChain; clients are agents of
//! `stateplane-coordination`; the controller is that of `stateplane-groups`, or an authority that
//! does what the rules allow and no controller would. Links lose, duplicate, exchange and delay
//! messages, also beyond the life of a configuration; some clients watch groups; switches die and return empty, stand still,
//! are cut off from others or from the controller, and live on after they were left out.
//!
//! It stands on `stateplane-world`, as the simulator of replication does. Equal options and seed
//! give an equal trace. The checkers of `stateplane_history::coordination` judge each run;
//! [`Rule`] names the rules that can be turned off, to show that a checker misses them.

#[cfg(test)]
mod attacks;
mod authority;
mod client;
#[cfg(test)]
mod crowd;
mod device;
pub mod event;
#[cfg(test)]
mod filling;
mod options;
mod places;
mod plan;
mod reaping;
mod report;
mod scenario;
mod shrink;
mod simulator;
mod subscriber;
mod world;

pub use options::{Options, PROGRAM, Rule};
pub use report::{Coverage, Report};
pub use scenario::Scenario;
pub use simulator::{SimError, Simulator};
pub use stateplane_coordination_setup::SetupError;
