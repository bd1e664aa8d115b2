//! Checkers of what happened.
//!
//! A [`History`] is a list of [`Event`]s in the order in which they happened in
//! true time: packets in and out, leases granted, accepted and used, ports taken
//! and freed, what the replicas held when a packet left. It says nothing about how
//! it came about: the simulator records one, and so can a run on real machines.
//!
//! [`judge`] asks every [`Checker`] and collects their [`Violation`]s:
//!
//! | checker | objects when |
//! |---|---|
//! | `outputs` | an output has no input, or an input has two outputs |
//! | `counter` | a flow's outputs are not those of a counter (RedPlane §4, Definitions 2 to 4) |
//! | `application` | a flow's outputs are not those of the application, in any order (the same Definitions) |
//! | `nat` | inside and public endpoints are not mapped one to one |
//! | `single-owner` | an exclusive lease overlaps another lease of the flow |
//! | `durable` | a packet left before every replica had the state that it shows |
//! | `pool` | a port is handed out twice, or lost |
//! | `progress` | a write is never acknowledged |
//!
//! [`linearization`] searches for an order under any deterministic program, in
//! small histories; the counter's checker has a rule of its own, which a test
//! compares with the search.
//!
//! [`Document`] is the text form.

mod application;
mod checker;
mod counter;
mod drops;
mod durable;
mod event;
mod nat;
mod operation;
mod outputs;
mod owner;
mod pool;
mod progress;
mod search;
mod serial;
mod text;

pub use application::Application;
pub use checker::{Checker, Subject, Violation, judge};
pub use counter::Counter;
pub use drops::dropped_by_right;
pub use event::{
    Direction, Durability, Endpoint, Event, EventKind, Flow, History, Occupant, PoolRange, Protocol,
};
pub use operation::{Operation, operations_of};
pub use search::{LONGEST_SEARCH, Program, SearchError, WIDEST_SEARCH, linearization};
pub use text::{Document, Expectation, TextError};
