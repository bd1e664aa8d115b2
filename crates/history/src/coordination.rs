//! Histories of a key-value and lock service whose groups are logs (`docs/coordination-protocol.md`).
//!
//! An object is a virtual group: it is linearizable as a whole, and nothing is ordered across
//! groups.

pub mod checkers;
mod ends;
mod event;
mod linearizable;
mod lines;
mod lists;
mod machine;
mod numbers;
mod prefix;
mod scans;
mod text;
mod tokens;
mod watches;

pub use checkers::judge;
pub use event::{
    Asked, Condition, Coordination, CoordinationEvent, Event, EventKind, Guard, History, Holder,
    Kind, Number, Outcome, Part, Request, Response, Scanned, Seen, Subject, Told, Violation,
};
pub use linearizable::{LONGEST_LIST, WIDEST_SEARCH};
pub use lines::{LinesError, read_lines, write_lines};
pub use machine::{Content, Decision, Group, Record, WAITERS};
pub use text::Document;
