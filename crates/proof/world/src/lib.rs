//! Nodes and links in virtual time: what the simulations of all systems stand on.
//!
//! A [`Topology`] is data: any number of nodes, any links between their ports. A [`Net`]
//! carries messages over the links, which lose, duplicate, exchange and delay them
//! ([`LinkQuality`]); keeps what waits before a node, its [`Clock`], its timer, and its
//! faults: death, return, standstill, cut links, ports that are down. Nodes themselves are
//! cores without IO ([`Node`]) that a driver owns: [`Net::next_before`] says which node takes
//! which message or timeout, the driver gives it to the core, and [`Net::poll`] takes what the
//! core sends and arms its timer. [`Nodes`] is the driver of nodes that only send each other
//! messages; a driver that observes more, as the simulator of replication does, has its own
//! loop.
//!
//! Options that the simulators share are here too: the part of a plan that is executed
//! ([`Chosen`]), settings as text ([`changed`]), the engine of switches ([`EngineKind`]), rules that
//! are turned off ([`rules!`]), the command that repeats a run ([`Command`]); and switches whose program
//! several workers run ([`Workers`]).
//!
//! Equal topology, calls and seed give equal runs: ties in time are broken by the order of
//! making, and [`Net::trace`] is a number over everything that nodes took and when.
//! Times are µs.

mod chosen;
mod clock;
mod command;
mod engine;
mod instant;
mod link;
mod net;
mod node;
mod rules;
mod schedule;
mod settings;
mod shrink;
mod topology;
mod workers;

pub use chosen::{Chosen, NotNumbers, Numbers};
pub use clock::{Clock, MAX_DRIFT_PPM};
pub use command::Command;
pub use engine::EngineKind;
pub use instant::exchange;
pub use link::LinkQuality;
pub use net::{Counters, Loss, Net, Step};
pub use node::{Effect, Node, Nodes, Sent};
pub use schedule::Schedule;
pub use settings::{NONE, SettingError, changed, differences};
pub use shrink::{Rerun, Shrinking, Step as ShrinkingStep};
pub use stateplane_random::Random;
pub use topology::{Link, NodePort, NodeSpec, Topology};
pub use workers::Workers;
