//! Terms: for how long a switch may use what the heads of its chains granted.
//!
//! A lease lasts while the switch's term with the shard's head lasts (rules 1 to 1d of
//! `docs/replication-protocol.md`). [`Terms`] is the switch's half, one state machine without
//! IO that simulators and the host drive alike: it sends heartbeats, takes the replies, and
//! says of each shard since when and until when the switch has a term. [`Stream`] and
//! [`Received`] are the rows that replies carry, at their sender and their receiver; servers
//! use them among themselves too.
//!
//! Times are µs of the switch's own clock, below 2^48, and never decrease from call to call.

mod rows;
mod terms;

pub use rows::{Received, Stream};
pub use terms::{Faults, Term, Terms};
