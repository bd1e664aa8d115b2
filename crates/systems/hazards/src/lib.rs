//! Cycle-accurate model of actions on state that take several clock cycles (Cascone, Bifulco and
//! Pontarelli, "Relaxing constraints in stateful network data plane design", 2017).
//!
//! A switch reads packets in chunks, one chunk a cycle, and starts the action of at most one packet
//! a cycle. An action of depth `d` reads its state in its first cycle and writes it in its last, the
//! `d`-th. A *hazard* is a packet whose action starts while that of another packet on the same state
//! is under way. A *lock* makes the packet wait in a queue instead.
//!
//! [`Traffic`] draws packets or takes recorded ones, [`Study`] gives each its state, lock, queue and
//! depth, and [`simulate`] runs them through the pipeline.

mod depth;
mod error;
mod flow;
mod histogram;
mod pipeline;
mod popularity;
mod sizes;
mod study;
mod traffic;

pub use depth::Depths;
pub use error::HazardError;
pub use flow::{Flow, Key, Rest};
pub use histogram::Histogram;
pub use pipeline::{Fate, Outcome, Packet, Queues, UNLOCKED, simulate, simulate_with};
pub use popularity::Popularity;
pub use sizes::{FACEBOOK_ALPHA, LEAST_BYTES, Scale, Sizes};
pub use stateplane_cells::{Cell, CellKey, PathStep, Profile, cells};
pub use study::Study;
pub use traffic::{Record, Recorded, Traffic};
