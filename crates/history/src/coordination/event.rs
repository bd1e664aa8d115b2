//! Events in groups of records and locks.

use crate::event::{EventKind as AnyEvent, Object, System};
use core::convert::Infallible;
use std::fmt;
use std::sync::Arc;

/// An event's kind in a history of coordination.
pub type EventKind = AnyEvent<Coordination>;
/// An event in a history of coordination.
pub type Event = crate::event::Event<Coordination>;
/// A history of coordination.
pub type History = crate::event::History<Coordination>;
/// An objection of a checker of coordination.
pub type Violation = crate::checker::Violation<Coordination>;

/// Bits of a number below the generation of its group (rule 1).
const COUNT_BITS: u32 = 48;

/// A number as texts show it: generation and count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(pub u64);

impl Number {
    /// Which founding of the group it belongs to.
    pub fn generation(self) -> u64 {
        self.0 >> COUNT_BITS
    }

    /// Reads generation and count, or 0.
    pub(crate) fn read(text: &str) -> Option<u64> {
        if text == "0" {
            return Some(0);
        }
        let (generation, count) = text.split_once(':')?;
        let generation: u16 = generation.parse().ok()?;
        let count: u64 = count.parse().ok()?;
        (count < 1 << COUNT_BITS).then_some(u64::from(generation) << COUNT_BITS | count)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            number => write!(
                f,
                "{}:{}",
                self.generation(),
                number & ((1 << COUNT_BITS) - 1)
            ),
        }
    }
}

/// An enumeration whose values have names in texts.
macro_rules! named {
    (
        $(#[$attribute:meta])*
        $name:ident { $($(#[$variant_attribute:meta])* $variant:ident = $word:literal,)* }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_attribute])* $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// Its name in texts.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            /// The one of that name.
            pub fn from_name(name: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|one| one.name() == name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// Outcome of an operation. All but the last passed the group's chain.
    Outcome {
        /// Done, or, of a read, found.
        Done = "done",
        /// The condition does not hold.
        Mismatch = "mismatch",
        /// There is no such record.
        Absent = "absent",
        /// The lock has another owner.
        Taken = "taken",
        /// The request waits in the lock's queue.
        Queued = "queued",
        /// No place for the record, or in the lock's queue.
        Full = "full",
        /// The record has seen a higher token.
        StaleToken = "stale-token",
        /// The guard's condition does not hold.
        Guarded = "guarded",
        /// The lock is not that holder's, nor is it in the queue.
        NotOwner = "not-owner",
        /// A lock where a value is asked for, or the reverse.
        WrongKind = "wrong-kind",
        /// It took no effect, and never will: its client shut it out.
        Never = "never",
    }
}

named! {
    /// Kind of a record.
    Kind {
        /// There is none.
        None = "none",
        /// A value.
        Value = "value",
        /// A lock with an owner.
        Lock = "lock",
        /// Deleted, and kept for the token that it has seen.
        Empty = "empty",
    }
}

/// Condition on a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// Nothing.
    None,
    /// There is no record.
    Absent,
    /// There is a record.
    Present,
    /// Its number is this one.
    Number(u64),
    /// Its value is this one.
    Value(Arc<[u8]>),
    /// It is a lock with this token.
    Token(u64),
}

/// Another key of the group, and what must hold of its record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guard {
    /// The key.
    pub key: Object,
    /// Condition on it.
    pub condition: Condition,
}

/// An owner of a lock, or one that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Holder {
    /// The session, 0 for none.
    pub session: u32,
    /// Which of the session's holders.
    pub handle: u32,
}

/// Request of a client.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asked {
    /// The record.
    Read,
    /// A new value, if the condition holds.
    Write(Arc<[u8]>, Condition),
    /// No record, if the condition holds.
    Delete(Condition),
    /// The lock; `true` if the request may wait for it.
    Acquire(bool),
    /// The lock is given up, or its queue left.
    Release,
}

/// An operation on a key of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// The key.
    pub key: Object,
    /// The request.
    pub asked: Asked,
    /// Fencing token, 0 without.
    pub token: u64,
    /// Condition on another key.
    pub guard: Option<Guard>,
    /// The client that asks: the owner of a lock that is acquired.
    pub holder: Holder,
    /// True time in µs by which the operation ends, if its client lives.
    pub until: Option<u64>,
}

/// A record as an answer shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its kind.
    pub kind: Kind,
    /// Number of the entry that last changed it, 0 without a record.
    pub number: u64,
    /// Its value, if the answer has it and the record is a value.
    pub value: Option<Arc<[u8]>>,
}

/// Answer to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Outcome of the operation.
    pub outcome: Outcome,
    /// Number of its entry; of a read, of the newest entry that the answerer had; 0 if it never
    /// took effect.
    pub number: u64,
    /// Token of the lock, if the answer tells it.
    pub token: Option<u64>,
    /// The record behind the operation, if the answer tells it.
    pub seen: Option<Seen>,
}

/// Further events of operations and of switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoordinationEvent {
    /// A client gave an operation up: its outcome is unknown, for the time being.
    Unknown {
        /// Number of the client.
        node: u32,
        /// The group.
        group: Object,
        /// Number of the operation.
        operation: u64,
        /// The group's generation that the client knew when it gave the operation up for good, if
        /// the operation belongs to an earlier one: it takes no effect in this one (rule 17).
        before: Option<u16>,
    },
    /// A switch follows a configuration of a group.
    Adopted {
        /// Number of the switch.
        switch: u32,
        /// The group.
        group: Object,
        /// Number of the configuration.
        epoch: u32,
        /// Its part in it.
        part: Part,
    },
    /// A switch has an entry.
    Applied {
        /// Number of the switch.
        switch: u32,
        /// The group.
        group: Object,
        /// Number of the entry.
        number: u64,
        /// Digest of its content.
        digest: u64,
    },
    /// A watch of a whole group told something (rule 23).
    Told {
        /// Number of the client, which has one watch of the group.
        node: u32,
        /// The group.
        group: Object,
        /// The event that it told.
        told: Told,
        /// Number of the entry; of [`Told::Begin`] and [`Told::Compacted`] the first that is told,
        /// of [`Told::End`] the first that was not.
        number: u64,
        /// The key of the record that the entry changed.
        key: Option<Object>,
        /// The record's value, if it is one.
        value: Option<Arc<[u8]>>,
    },
    /// A client lists the records of a group, one scan of some places after the other.
    Scanned {
        /// Number of the client.
        node: u32,
        /// The group.
        group: Object,
        /// Number of the list, unlike all other lists of the group by the client.
        list: u64,
        /// Its progress.
        scanned: Scanned,
        /// Number of the newest entry that the answerer had; 0 of [`Scanned::Begin`].
        number: u64,
        /// The record's key, of [`Scanned::Record`].
        key: Option<Object>,
        /// The record, of [`Scanned::Record`].
        seen: Option<Seen>,
    },
    /// Faults are over, and each group serves again soon.
    Whole,
}

named! {
    /// Progress of a list of a group's records.
    Scanned {
        /// The client asks for the first places.
        Begin = "begin",
        /// There is a record; the client asks for the places behind it.
        Record = "record",
        /// There is no record that the history names; the client asks for the places behind.
        Nothing = "nothing",
        /// There are no more places.
        End = "end",
    }
}

named! {
    /// Event that a watch tells.
    Told {
        /// Entries are told from this number on.
        Begin = "begin",
        /// There is a record, or a new one.
        Put = "put",
        /// There is no record any more.
        Deleted = "deleted",
        /// Entries before this number may be missing.
        Compacted = "compacted",
        /// Nothing is told from this number on.
        End = "end",
    }
}

named! {
    /// Part of a switch in a configuration.
    Part {
        /// A member, with the entries that it had.
        Member = "member",
        /// A member whose group begins, or began anew, empty.
        Founder = "founder",
        /// The switch that joins, empty at first.
        Joiner = "joiner",
    }
}

/// Facts of a run that are known before it begins.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Coordination {
    /// Groups that serve within [`Coordination::serves_within`] once faults are over.
    pub groups: Vec<Object>,
    /// Time in µs after faults within which each group serves.
    pub serves_within: u64,
}

/// A group, and a key of it if the objection is to one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// The group.
    pub group: Object,
    /// The key.
    pub key: Option<Object>,
}

impl From<Object> for Subject {
    fn from(group: Object) -> Self {
        Self { group, key: None }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{}/{key}", self.group),
            None => self.group.fmt(f),
        }
    }
}

impl System for Coordination {
    type Request = Request;
    type Response = Response;
    type Message = Infallible;
    type Event = CoordinationEvent;
    type Subject = Subject;

    fn concerns(subject: &Subject, event: &EventKind) -> bool {
        match event {
            EventKind::Call {
                object, request, ..
            } => {
                let key = subject.key.as_ref();
                *object == subject.group && key.is_none_or(|key| request.concerns(key))
            }
            EventKind::Of(CoordinationEvent::Whole) => true,
            EventKind::Of(
                CoordinationEvent::Unknown { group, .. } | CoordinationEvent::Adopted { group, .. },
            ) => *group == subject.group,
            EventKind::Of(CoordinationEvent::Told { group, key, .. }) => {
                *group == subject.group && (subject.key.is_none() || *key == subject.key)
            }
            EventKind::Of(CoordinationEvent::Scanned { group, key, .. }) => {
                *group == subject.group && (key.is_none() || *key == subject.key)
            }
            EventKind::Of(CoordinationEvent::Applied { group, .. }) => {
                *group == subject.group && subject.key.is_none()
            }
            event => event.object() == Some(&subject.group),
        }
    }
}

impl Request {
    fn concerns(&self, key: &Object) -> bool {
        self.key == *key || self.guard.as_ref().is_some_and(|guard| guard.key == *key)
    }

    /// Numbers of entries that it names.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        let own = match &self.asked {
            Asked::Write(_, condition) | Asked::Delete(condition) => Some(condition),
            _ => None,
        };
        let guard = self.guard.as_ref().map(|guard| &guard.condition);
        let numbers = [own, guard].into_iter().flatten();
        numbers.filter_map(|condition| match condition {
            Condition::Number(number) | Condition::Token(number) => Some(*number),
            _ => None,
        })
    }

    /// True of a read, which takes no number.
    pub fn reads(&self) -> bool {
        self.asked == Asked::Read
    }
}
