//! Structures that callers see. Padding is named, so that every byte has a value.

use core::ffi::c_void;
use stateplane_multicast::{FinalTime, MessageId};

/// Id of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Id {
    /// Number in the lane.
    pub number: u64,
    /// Slot of the session.
    pub session: u16,
    /// Lane of the session.
    pub lane: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

impl From<MessageId> for Id {
    fn from(id: MessageId) -> Id {
        Id {
            number: id.number,
            session: id.session,
            lane: id.lane,
            reserved: [0; 5],
        }
    }
}

/// Place of a message in the order: of two, the greater timestamp, then the greater group, is
/// later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Place {
    /// The timestamp.
    pub time: u64,
    /// The group whose timestamp it is.
    pub group: u8,
    /// Zero.
    pub reserved: [u8; 7],
}

impl From<FinalTime> for Place {
    fn from(at: FinalTime) -> Place {
        Place {
            time: at.time,
            group: at.group,
            reserved: [0; 7],
        }
    }
}

/// Kind of an event of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum EventKind {
    /// All receivers of all groups have the message.
    Complete = 1,
    /// The message went nowhere.
    Refused = 2,
    /// The message may have been delivered, or be yet.
    Unknown = 3,
}

/// Event of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct SenderEvent {
    /// Its kind, an [`EventKind`].
    pub kind: u32,
    /// Reason of a refusal; else 0.
    pub refusal: u32,
    /// The message.
    pub id: Id,
    /// Place of a complete message, of time 0 if the groups have forgotten it; else zeros.
    pub at: Place,
}

/// A message, as a receiver gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Message {
    /// Its id.
    pub id: Id,
    /// Its place in the order.
    pub at: Place,
    /// The payload: the receiver's, until the next call with it.
    pub payload: *const c_void,
    /// Bytes of the payload.
    pub length: usize,
    /// Map of the groups that it addresses: bit 0 is group 0.
    pub groups: u32,
    /// Zero.
    pub reserved: u32,
}
