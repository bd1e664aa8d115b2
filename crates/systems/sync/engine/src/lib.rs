//! The engine of sync, without IO: the control plane's view of one group of registers of one
//! switch, and how far it is off (ApproSync, and the rules of `docs/sync-protocol.md`).
//!
//! [`Engine`] takes datagrams and time and gives datagrams and [`Event`]s. [`Engine::told`] says
//! of the view what is promised: no location is farther than `bound` from what the data plane
//! held at a moment at most `age_us` ago.

mod continued;
mod cut;
pub mod election;
mod engine;
mod stage;
mod tracker;
mod write;

pub use continued::{Continued, KeptTotals};
pub use engine::{Counters, Engine, Event, LastView, Ring, Settings, SettingsError, Told};
pub use tracker::Tracker;
pub use write::{Ticket, WriteError};
