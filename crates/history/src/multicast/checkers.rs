//! The checkers of multicast, by name.

use super::arrives::{Agreement, Ends, Validity};
use super::bounds::Bounds;
use super::event::{History, Multicast, Violation};
use super::integrity::{Genuine, Integrity};
use super::log::Log;
use super::order::{Acyclic, Finals, Prefix};
use super::real_time::RealTime;
use super::store_order::{Serial, Strict};
use crate::checker::{Checker, judge_by};

/// A delivery is of a message that was sent to the receiver, as it was sent, and the only one.
pub const INTEGRITY: &str = Integrity::NAME;
/// Receivers of a group have one order.
pub const PREFIX: &str = Prefix::NAME;
/// The orders of all receivers together have no circle.
pub const ACYCLIC: &str = Acyclic::NAME;
/// A message has one final timestamp, and each receiver delivers in their order.
pub const FINALS: &str = Finals::NAME;
/// Each group has one log of growing timestamps.
pub const LOG: &str = Log::NAME;
/// A message that is sent when another is complete is behind it.
pub const REAL_TIME: &str = RealTime::NAME;
/// Only groups that a message addresses take part.
pub const GENUINE: &str = Genuine::NAME;
/// Queues and windows have their bounds.
pub const BOUNDS: &str = Bounds::NAME;
/// Receivers deliver what one of them delivered.
pub const AGREEMENT: &str = Agreement::NAME;
/// Messages of senders that live are delivered.
pub const VALIDITY: &str = Validity::NAME;
/// Calls of senders and clients that live end.
pub const ENDS: &str = Ends::NAME;
/// The store answers as one that executes operations in the order of their places.
pub const SERIAL: &str = Serial::NAME;
/// An order of the store's operations keeps to real time.
pub const STRICT: &str = Strict::NAME;

/// Names of all objections.
pub const NAMES: [&str; 13] = [
    INTEGRITY, PREFIX, ACYCLIC, FINALS, LOG, REAL_TIME, GENUINE, BOUNDS, AGREEMENT, VALIDITY, ENDS,
    SERIAL, STRICT,
];

/// A new one of each checker, in the order in which [`judge`] reports.
pub fn all() -> Vec<Box<dyn Checker<Multicast>>> {
    vec![
        Box::<Integrity>::default(),
        Box::<Prefix>::default(),
        Box::<Acyclic>::default(),
        Box::<Finals>::default(),
        Box::<Log>::default(),
        Box::<RealTime>::default(),
        Box::<Genuine>::default(),
        Box::<Bounds>::default(),
        Box::<Agreement>::default(),
        Box::<Validity>::default(),
        Box::<Ends>::default(),
        Box::<Serial>::default(),
        Box::<Strict>::default(),
    ]
}

/// The name of an objection that `name` names.
pub fn named(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|of| *of == name)
}

/// Objections of the checkers of multicast.
pub fn judge(history: &History) -> Vec<Violation> {
    judge_by(history, all())
}
