//! The hosts' half of multicast, without IO: [`Sender`] and [`Receiver`].
//!
//! `docs/multicast-protocol.md` has the rules, by whose numbers code and tests cite them. Both
//! are state machines: `handle_*` takes a message that came, `poll_*` gives what is to be sent and
//! what is to be told. Time is an argument, in µs of any monotonic clock.

mod receiver;
mod sender;

pub use receiver::{Delivery, Ignored, Receiver, ReceiverConfig, Snapshot};
pub use sender::{Call, Event, SendError, Sender, SenderConfig};

/// Id of a message: slot of the session, lane, number (rule 21).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId {
    /// Slot of the session.
    pub session: u16,
    /// Lane of the session.
    pub lane: u8,
    /// Number in the lane, from 1 to 2⁴⁰ - 1.
    pub number: u64,
}

/// Timestamp that orders a message among all: that of the group which committed the greatest, and
/// the group's number (rule 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FinalTime {
    /// The timestamp.
    pub time: u64,
    /// The group whose timestamp it is.
    pub group: u8,
}
