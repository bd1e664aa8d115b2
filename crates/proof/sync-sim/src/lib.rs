//! Sync in virtual time, from one seed.
//!
//! A switch runs the packet counter, or a program that `stateplane sync` has instrumented; engines of
//! `stateplane-sync` keep views of its two groups.
//! The link between them loses, duplicates, exchanges and delays messages; switch and engines
//! start anew; an engine that was replaced lives on; of engines that stand by for each other the one that
//! leads stands still, dies and returns. The simulator reads the registers at each
//! mark, and judges all that an engine tells of its view: no bound, number of locations or age is
//! too small, each window is whole and delivered once, a write that ended is seen, a staged one is whole
//! and made once, and when traffic has stopped the view is exact.
//!
//! Equal options and seed give an equal trace. [`Rule`] names the rules of the switch that can be
//! turned off, to show that the judge misses them.

mod device;
mod engines;
mod judge;
mod options;
mod program;

mod report;
mod scenario;
mod simulator;
mod staged;
mod standby;
mod totals;
mod world;

pub use options::{Options, PROGRAM, Rule};
pub use program::Program;
pub use report::{Coverage, Report};
pub use scenario::Scenario;
pub use simulator::{SimError, Simulator};
