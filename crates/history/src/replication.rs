//! Histories of switches whose state is replicated: leases, what the store holds, public
//! ports of a NAT, and what the applications let out.

mod application;
pub mod checkers;
mod counter;
mod drops;
mod durable;
mod event;
mod linearizable;
mod nat;
mod owner;
mod pool;
mod progress;
mod text;

pub use crate::fields::{Expectation, TextError};
pub use application::{Application, Machine};
pub use checkers::judge;
pub use counter::Counter;
pub use drops::dropped_by_right;
pub use event::{
    Direction, Durability, Endpoint, Event, EventKind, Flow, History, Occupant, PoolRange,
    Protocol, Released, Replication, StateEvent, Subject, Violation,
};
pub use text::Document;
