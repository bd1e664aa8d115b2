//! The whole world in virtual time, from one seed.
//!
//! Two switches run a program, three replicas keep its state, hosts send packets;
//! links lose, duplicate, exchange and delay, clocks begin anywhere and drift to
//! the bound that the protocol states, switches stall, die and return, and flows
//! change their way. The cores are those that ship: sans-IO, driven by a schedule
//! instead of sockets. Equal options and seed give an equal trace.
//!
//! [`run`] runs one seed and has the checkers of `stateplane-history` judge it.
//! [`Rule`] names the rules of `docs/replication-protocol.md` that can be turned
//! off, to show that a checker misses them.

pub mod capacity;
mod chain;
mod chosen;
mod clock;
mod device;
mod frame;
mod key;
mod link;
mod model;
mod options;
mod own;
mod p4;
mod plan;
mod program;
mod recorder;
mod report;
mod scenario;
mod schedule;
mod settings;
mod shrink;
mod simulator;
mod traffic;
mod world;

pub use chosen::{Chosen, NotNumbers, Numbers};
pub use link::LinkQuality;
pub use options::{Class, EngineKind, Options, ProgramKind, Rule, Walk};
pub use own::Own;
pub use report::{Coverage, Report};
pub use scenario::{Cluster, Disks, Scenario};
pub use settings::SettingError;
pub use simulator::{SimError, Simulator, run};
pub use stateplane_setup::SetupError;
pub use world::DETECTION;
