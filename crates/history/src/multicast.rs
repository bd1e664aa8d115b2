//! Histories of ordered multicast (`docs/multicast-protocol.md`): what hosts sent and delivered,
//! which groups took part, what members committed.
//!
//! Subjects of objections are messages, receivers and groups.

mod arrives;
mod bounds;
pub mod checkers;
mod event;
mod integrity;
mod log;
mod order;
mod real_time;
mod store;
mod store_order;
mod store_text;
mod text;

pub use checkers::judge;
pub use event::{
    Entry, Event, EventKind, Filled, Final, History, Multicast, MulticastEvent, Subject, Violation,
};
pub use store::{Request, Response};
pub use text::Document;
