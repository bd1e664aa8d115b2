//! The whole world in virtual time, from one seed.
//!
//! Switches run a program, replicas keep its state, hosts send packets;
//! links lose, duplicate, exchange and delay, clocks begin anywhere and drift to
//! the bound that the protocol states, switches stall, die and return, and flows
//! change their way. They are a topology of `stateplane-world`, whose net carries what they
//! send. The cores are those that ship: sans-IO, driven by the net instead of sockets. Equal
//! options and seed give an equal trace.
//!
//! [`run`] runs one seed and has the checkers of `stateplane-history` judge it.
//! [`Rule`] names the rules of `docs/replication-protocol.md` that can be turned
//! off, to show that a checker misses them.

pub mod capacity;
mod chain;
mod device;
mod frame;
mod key;
mod model;
mod options;
mod own;
mod p4;
mod places;
mod plan;
mod program;
mod recorder;
mod report;
mod scenario;
mod settings;
mod shrink;
mod simulator;
mod traffic;
mod world;

pub use options::{Class, Options, ProgramKind, Rule, Walk};
pub use own::Own;
pub use report::{Coverage, Report};
pub use scenario::{Cluster, Disks, Scenario};
pub use simulator::{SimError, Simulator, run};
pub use stateplane_setup::SetupError;
pub use stateplane_world::{Chosen, EngineKind, LinkQuality, NotNumbers, Numbers, SettingError};
pub use world::DETECTION;
