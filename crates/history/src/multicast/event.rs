//! Events of ordered multicast.

use super::store::{Request, Response};
use crate::event::{Object, System};
use core::convert::Infallible;
use std::fmt;

/// An event of multicast.
pub type Event = crate::event::Event<Multicast>;
/// Kind of an event of multicast.
pub type EventKind = crate::event::EventKind<Multicast>;
/// A history of multicast.
pub type History = crate::event::History<Multicast>;
/// An objection to a history of multicast.
pub type Violation = crate::checker::Violation<Multicast>;

/// Final timestamp of a message: the order of all (rule 13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Final {
    /// The timestamp.
    pub time: u64,
    /// The group that committed it.
    pub group: u8,
}

impl fmt::Display for Final {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.time, self.group)
    }
}

impl Final {
    /// Reads what [`fmt::Display`] writes.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (time, group) = text.split_once(':')?;
        Some(Self {
            time: time.parse().ok()?,
            group: group.parse().ok()?,
        })
    }
}

/// An entry of a group's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Place in the log.
    pub index: u32,
    /// Epoch in which it was appended.
    pub term: u32,
    /// Its timestamp.
    pub time: u64,
    /// Number of the message; 0 of a no-op.
    pub message: u64,
}

/// An event of multicast. Messages have the numbers that their senders' events give them, nodes
/// those of the run; a receiver is a node in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MulticastEvent {
    /// A host sends a message.
    Sent {
        /// Number of the host.
        node: u32,
        /// Number of the message, from 1; each has its own.
        message: u64,
        /// Map of the groups that it addresses.
        to: u32,
        /// Digest of its payload.
        digest: u64,
    },
    /// A host learns that all receivers have a message.
    Completed {
        /// Number of the host.
        node: u32,
        /// Number of the message.
        message: u64,
    },
    /// A host learns that a message went nowhere.
    Refused {
        /// Number of the host.
        node: u32,
        /// Number of the message.
        message: u64,
    },
    /// A receiver begins: at the start of its group, with all that a peer delivered, or at a place
    /// in the order.
    Joined {
        /// Number of the host.
        node: u32,
        /// The group.
        group: u8,
        /// Number of the peer.
        peer: Option<u32>,
        /// Timestamp behind which it gets all messages, and up to which none.
        after: Option<u64>,
    },
    /// A receiver was taken off its group's list.
    Left {
        /// Number of the host.
        node: u32,
        /// The group.
        group: u8,
    },
    /// A receiver delivers a message to its program.
    Delivered {
        /// Number of the host.
        node: u32,
        /// The group.
        group: u8,
        /// Number of the message.
        message: u64,
        /// Its place in the order.
        at: Final,
        /// Digest of its payload.
        digest: u64,
    },
    /// A switch takes a message for a group, the first time.
    Took {
        /// Number of the switch.
        node: u32,
        /// The group for which the message is.
        group: u8,
        /// Number of the message.
        message: u64,
    },
    /// A member has an entry and knows that it is committed.
    Committed {
        /// Number of the switch.
        node: u32,
        /// The group.
        group: u8,
        /// The entry.
        entry: Entry,
    },
    /// A replica of the store executes an operation, not one that was executed before.
    Executed {
        /// Number of the host.
        node: u32,
        /// The group, which is the shard.
        group: u8,
        /// Number of the operation.
        operation: u64,
        /// Its place in the order.
        at: Final,
    },
    /// Messages that wait for a receiver's program, or entries of a member's window: more than
    /// before.
    Fills {
        /// Number of the host or the switch.
        node: u32,
        /// The group.
        group: u8,
        /// The bounded thing that is filled: a queue or a window.
        what: Filled,
        /// Messages or entries.
        count: u64,
    },
    /// Faults are over.
    Whole,
}

/// A bounded part of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Filled {
    /// The queue of a receiver.
    Queue,
    /// The window of a member.
    Window,
    /// Copies that a switch holds of a slot.
    Held,
}

impl Filled {
    /// All of them, with their names in texts.
    pub(super) const ALL: [(Filled, &'static str); 3] = [
        (Filled::Queue, "queue"),
        (Filled::Window, "window"),
        (Filled::Held, "held"),
    ];
}

impl fmt::Display for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(filled, _)| filled == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

/// Facts of a run that are known before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Multicast {
    /// Time in µs after [`MulticastEvent::Whole`] within which every message arrives that has to.
    pub within: u64,
    /// Most messages in a receiver's queue.
    pub queue: u64,
    /// Most entries in a member's window.
    pub window: u64,
}

/// Subject of an objection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A message.
    Message(u64),
    /// A node, as a receiver or member of a group.
    Node(u32, u8),
    /// A group.
    Group(u8),
    /// An operation of the store.
    Operation(u64),
    /// Another thing, by name.
    Other(Object),
}

impl From<Object> for Subject {
    fn from(name: Object) -> Self {
        Self::Other(name)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message) => write!(f, "message {message}"),
            Self::Node(node, group) => write!(f, "node {node} in group {group}"),
            Self::Group(group) => write!(f, "group {group}"),
            Self::Operation(operation) => write!(f, "operation {operation}"),
            Self::Other(name) => name.fmt(f),
        }
    }
}

impl MulticastEvent {
    /// The message that the event is about.
    fn message(&self) -> Option<u64> {
        match self {
            Self::Sent { message, .. }
            | Self::Completed { message, .. }
            | Self::Refused { message, .. }
            | Self::Delivered { message, .. }
            | Self::Took { message, .. } => Some(*message),
            Self::Committed { entry, .. } => Some(entry.message),
            _ => None,
        }
    }

    /// The node in a group that the event is about.
    fn place(&self) -> Option<(u32, u8)> {
        match self {
            Self::Joined { node, group, .. }
            | Self::Left { node, group }
            | Self::Delivered { node, group, .. }
            | Self::Committed { node, group, .. }
            | Self::Executed { node, group, .. }
            | Self::Fills { node, group, .. } => Some((*node, *group)),
            _ => None,
        }
    }
}

impl System for Multicast {
    type Request = Request;
    type Response = Response;
    type Message = Infallible;
    type Event = MulticastEvent;
    type Subject = Subject;

    fn concerns(subject: &Subject, event: &EventKind) -> bool {
        let event = match event {
            EventKind::Of(event) => event,
            EventKind::Call { operation, .. } | EventKind::Return { operation, .. } => {
                return *subject == Subject::Operation(*operation);
            }
            _ => return false,
        };
        match subject {
            _ if *event == MulticastEvent::Whole => true,
            Subject::Message(message) => event.message() == Some(*message),
            Subject::Node(node, group) => event.place() == Some((*node, *group)),
            Subject::Group(group) => event.place().is_some_and(|(_, of)| of == *group),
            Subject::Operation(operation) => {
                matches!(event, MulticastEvent::Executed { operation: of, .. } if of == operation)
            }
            Subject::Other(_) => false,
        }
    }
}
