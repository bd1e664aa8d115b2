//! Events of any system.
//!
//! Calls, returns, messages and deaths are the same for all systems; what a call asks and
//! a return answers, and the events that one system alone has, are the [`System`]'s types.

use std::fmt;
use std::sync::Arc;

/// Name of an object: a flow, a key, a group of receivers. Any word without white space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object(pub Arc<str>);

impl Object {
    /// The object named `name`.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A system whose histories are judged. The value is what is known of a run before it
/// begins.
pub trait System: Clone + fmt::Debug + Eq {
    /// Request of a call.
    type Request: Clone + fmt::Debug + Eq;
    /// Answer of a return.
    type Response: Clone + fmt::Debug + Eq;
    /// Content of a message.
    type Message: Clone + fmt::Debug + Eq;
    /// Events that only this system has.
    type Event: Clone + fmt::Debug + Eq;
    /// Subject of a violation.
    type Subject: Clone + fmt::Debug + fmt::Display + Ord + From<Object>;

    /// True if `event` helps to understand a violation about `subject`.
    fn concerns(subject: &Self::Subject, event: &EventKind<Self>) -> bool;
}

/// Kind of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind<S: System> {
    /// A node took an operation on. Without a [`Return`](Self::Return) its outcome is
    /// unknown: it may or may not have taken effect.
    Call {
        /// Number of the node.
        node: u32,
        /// Object of the operation.
        object: Object,
        /// Number of the operation; each call has its own.
        operation: u64,
        /// The request.
        request: S::Request,
    },
    /// A node gave the answer of an operation.
    Return {
        /// Number of the node, not always that of the call.
        node: u32,
        /// Object of the operation.
        object: Object,
        /// Number of the operation.
        operation: u64,
        /// The answer.
        response: S::Response,
    },
    /// A node sent a message to a group.
    Send {
        /// Number of the sender.
        node: u32,
        /// The group.
        object: Object,
        /// Number of the message; each has its own.
        message: u64,
        /// Its content.
        content: S::Message,
    },
    /// A node delivered a message to its application. The events of one node and group
    /// are its delivery order.
    Deliver {
        /// Number of the receiver.
        node: u32,
        /// The group.
        object: Object,
        /// Number of the message.
        message: u64,
        /// Place that the system gave it in the order of the group, if it did.
        place: Option<u64>,
        /// Its content.
        content: S::Message,
    },
    /// A node lost everything.
    Died {
        /// Number of the node.
        node: u32,
    },
    /// An event of this system alone.
    Of(S::Event),
}

impl<S: System> EventKind<S> {
    /// The object of a call, a return or a message.
    pub fn object(&self) -> Option<&Object> {
        match self {
            Self::Call { object, .. }
            | Self::Return { object, .. }
            | Self::Send { object, .. }
            | Self::Deliver { object, .. } => Some(object),
            Self::Died { .. } | Self::Of(_) => None,
        }
    }
}

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<S: System> {
    /// True time in µs.
    pub at: u64,
    /// Kind of the event.
    pub kind: EventKind<S>,
}

/// Everything that happened.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct History<S: System> {
    /// Facts that are known before the first event.
    pub system: S,
    /// The events in the order of true time. Of two at the same µs, the first
    /// happened first.
    pub events: Vec<Event<S>>,
}
