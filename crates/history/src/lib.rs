//! Checkers of what happened.
//!
//! A [`History`] is a list of [`Event`]s in the order in which they happened in
//! true time: calls and returns, messages sent and delivered, deaths, and what only one
//! [`System`] has. It says nothing about how it came about: the simulator records one,
//! and so can a run on real machines.
//!
//! [`judge_by`] feeds a history to a list of [`Checker`]s and collects their
//! [`Violation`]s. A system brings its types, its events and its checkers; those of
//! [`replication`] are in its [`checkers`](replication::checkers):
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
//! Those of [`coordination`] are in its [`checkers`](coordination::checkers):
//!
//! | checker | objects when |
//! |---|---|
//! | `outputs` | an answer has no call, or a call has two answers |
//! | `numbers` | a number is given twice, or a later operation has a lower one |
//! | `linearizable` | no log in the order of numbers explains the answers of a group; as `undecided`, when the search is given up |
//! | `tokens` | a lock's token falls |
//! | `prefix` | two members of a configuration have different entries of a number |
//! | `ends` | an operation of a living client has not ended in time |
//! | `serves` | a group does not serve though faults are over |
//!
//! Those of [`multicast`] are in its [`checkers`](multicast::checkers):
//!
//! | checker | objects when |
//! |---|---|
//! | `integrity` | a receiver delivers what was not sent to it, or delivers it twice |
//! | `prefix` | receivers of one group have different orders |
//! | `acyclic` | the orders of all receivers together have a circle |
//! | `finals` | a message has two final timestamps, or a receiver does not deliver in their order |
//! | `log` | a group has two entries at an index, or timestamps that do not grow |
//! | `real-time` | a message is before one that was complete when it was sent |
//! | `genuine` | a group that a message does not address takes part |
//! | `bounds` | a queue or a window has more than its bound |
//! | `agreement` | one receiver delivered a message, and another of its groups never does |
//! | `validity` | a message of a living sender is not delivered |
//! | `ends` | a living sender never learns what became of a message, or a living client is never answered |
//! | `serial` | the store's answers are not those of its operations in the order of their places |
//! | `strict` | no order of the store's operations with the same answers keeps to real time |
//!
//! [`linearization`] searches for an order under any deterministic program, in
//! small histories; the counter's checker has a rule of its own, which a test
//! compares with the search.

mod checker;
pub mod coordination;
mod event;
mod fields;
pub mod multicast;
mod operation;
mod outputs;
pub mod replication;
mod search;
mod serial;

pub use checker::{Checker, Objections, Violation, judge_by};
pub use event::{Event, EventKind, History, Object, System};
pub use fields::{Expectation, TextError};
pub use operation::{Call, Operation, OperationOf, Operations, operations_of};
pub use outputs::Outputs;
pub use search::{LONGEST_SEARCH, Program, SearchError, WIDEST_SEARCH, linearization};
