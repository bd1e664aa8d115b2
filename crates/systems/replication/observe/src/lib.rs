//! An observer of the chains of a store, without IO: the control plane's view of all flows that the
//! store keeps, and changes of them (rule 30 of `docs/sync-protocol.md`).
//!
//! [`Observer`] takes datagrams and time and gives datagrams and [`Event`]s. It asks the tail of each
//! chain for the records that changed. The tail does not wait for it, and keeps a bounded list of
//! changes: an observer that falls behind reads all records anew. [`Observer::told`] says how old the
//! view is: at a moment no longer ago, each flow had exactly the state that the view has.
//!
//! # As of
//!
//! A server that was cut out of its chain may not know it. So before each question the observer sends
//! a probe to the head, which passes every replica, and asks the tail that answered it. A state that
//! any switch was told to be written before the probe was sent is in the tail's answer.
//!
//! # Snapshots
//!
//! Switches in bounded inconsistency write snapshots of register arrays to the store, element by
//! element. [`Snapshots`] puts them together: each complete one is a window of what a switch counted,
//! which the store keeps, whether an observer runs or not.
//!
//! # Changes
//!
//! [`Observer::begin`] takes the flow's lease as any switch does, writes, and gives the lease up. It has
//! no term: another switch that asks for the lease meanwhile gets it, and the write is fenced.

mod chain;
mod change;
mod flow;
mod observer;
mod settings;
mod snapshots;

pub use change::{Change, ChangeError, Operation, Outcome};
pub use flow::Flow;
pub use observer::{Counters, Event, Observer, Told};
pub use settings::{Faults, MOST_STORES, Settings, SettingsError};
pub use snapshots::{Complete, MOST_ELEMENTS, MOST_LIVES, Snapshots};
pub use stateplane_store::{Life, Merge};
pub use stateplane_wire::observe::Holding;
