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
//! Equal topology, calls and seed give equal runs: ties in time are broken by the order of
//! making, and [`Net::trace`] is a number over everything that nodes took and when.
//! Times are µs.

mod clock;
mod instant;
mod link;
mod net;
mod node;
mod schedule;
mod topology;

pub use clock::{Clock, MAX_DRIFT_PPM};
pub use instant::exchange;
pub use link::LinkQuality;
pub use net::{Counters, Loss, Net, Step};
pub use node::{Effect, Node, Nodes, Sent};
pub use schedule::Schedule;
pub use stateplane_random::Random;
pub use topology::{Link, NodePort, NodeSpec, Topology};
