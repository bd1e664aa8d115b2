//! The operations that an agent carries out.

use core::net::Ipv4Addr;

use stateplane_wire::coordination::{Key, flag};

/// Place of a record: its key, its group, and the name that stands before its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The record's key.
    pub key: Key,
    /// The virtual group; `None` for the one that the key's hash gives ([`crate::group_of`]).
    pub group: Option<u16>,
    /// Bytes that stand before the value on the wire and name the record in full; empty if the
    /// key does. The agent compares them, adds them to what it writes and takes them off what it
    /// reads.
    pub prefix: Vec<u8>,
}

impl Place {
    /// The place of `key` in the group that its hash gives.
    pub fn of(key: Key) -> Place {
        Place {
            key,
            group: None,
            prefix: Vec::new(),
        }
    }

    /// The place of `key` in `group`.
    pub fn within(group: u16, key: Key) -> Place {
        Place {
            group: Some(group),
            ..Place::of(key)
        }
    }
}

/// Condition on a record for a write or a deletion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum When {
    /// Nothing.
    #[default]
    Always,
    /// There is no record.
    Absent,
    /// There is a record.
    Present,
    /// The number of the record is this one.
    Number(u64),
    /// The value of the record is this one. Up to 16 bytes are compared by the switch; longer
    /// ones by the agent, which reads the record and writes on condition of its number, and
    /// again if that changed in between.
    Value(Vec<u8>),
}

/// Condition on another record of the same group, judged in the same pass (rule 21).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// There is no record of this key.
    Absent(Key),
    /// There is a record of this key.
    Present(Key),
    /// The record of this key has this number.
    Number(Key, u64),
    /// The record of this key is a lock whose owner has this token.
    Token(Key, u64),
}

/// The one that acquires or holds a lock: a session, and one of its handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Owner {
    /// Number of the session.
    pub session: u32,
    /// Which of the session's holders it is.
    pub handle: u32,
}

/// A new value for a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Write {
    /// The value.
    pub value: Vec<u8>,
    /// Condition on the record.
    pub when: When,
    /// Condition on another record.
    pub guard: Option<Guard>,
    /// The fencing token of the writer, 0 without.
    pub token: u64,
    /// The session that owns the record: it is deleted when the session ends. 0 for none.
    pub session: u32,
}

/// The end of a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delete {
    /// Condition on the record.
    pub when: When,
    /// Condition on another record.
    pub guard: Option<Guard>,
    /// The fencing token of the writer, 0 without.
    pub token: u64,
}

/// How a read is made linearizable (rule 14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reading {
    /// The answerer alone answers while its lease lasts, which needs the bound of clocks; else
    /// the read passes the chain.
    #[default]
    Leased,
    /// The read passes all members of the chain. No clock is needed.
    Chain,
    /// Not linearizable: one of the members answers from what it has, whichever is asked. Answers
    /// bear the number up to which it has the group's entries ([`Answer::newest`](crate::Answer)).
    Stale,
    /// As [`Reading::Stale`], but by this member alone. A switch that is no member refuses.
    Of(Ipv4Addr),
}

impl Reading {
    /// Flags of the request.
    pub(crate) fn flags(self) -> u8 {
        match self {
            Reading::Leased => flag::LEASED,
            Reading::Chain => 0,
            Reading::Stale | Reading::Of(_) => flag::STALE,
        }
    }
}

/// Action on a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The record.
    Read(Reading),
    /// A new value.
    Write(Write),
    /// No record.
    Delete(Delete),
    /// The lock, for an owner.
    Acquire {
        /// The owner that wants it.
        owner: Owner,
        /// True if the owner may queue for it; else the lock of another is
        /// [`Outcome::Taken`](stateplane_wire::coordination::Outcome::Taken).
        wait: bool,
    },
    /// An owner gives the lock up, or leaves its queue.
    Release {
        /// The owner that has it or waits for it.
        owner: Owner,
    },
    /// A lane of the place's group begins another life: its requests are forgotten, and those of
    /// its earlier lives are refused (rule 19).
    LaneNext {
        /// The lane, as the controller numbers it.
        lane: u16,
        /// Its new incarnation.
        incarnation: u16,
    },
    /// The first record of the place's group at or behind a slot.
    Scan {
        /// The slot from which the switch searches.
        slot: u16,
        /// How the answer is made linearizable.
        reading: Reading,
    },
    /// The entries of the place's group, as [`Event::Entry`](crate::Event::Entry): those to come,
    /// for 3 s, and up to 16 from this number on that the answerer has; 0: only those to come
    /// (rule 23).
    Watch(u64),
    /// No more entries of the place's group.
    Unwatch,
}

/// The lane that bears a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lane {
    /// Any that is idle.
    #[default]
    Any,
    /// This one of the agent's, counted from 0, modulo their number: requests of one lane and
    /// group are made one after the other, in the order of submission.
    Kept(u32),
}

/// An operation on one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The record.
    pub place: Place,
    /// The action on it.
    pub action: Action,
    /// The lane that bears it. Reads need none.
    pub lane: Lane,
}

impl Operation {
    /// An operation on any lane; of a lock, on the lane that belongs to the owner's handle.
    pub fn new(place: Place, action: Action) -> Operation {
        let lane = match &action {
            Action::Acquire { owner, .. } | Action::Release { owner } => Lane::Kept(owner.handle),
            _ => Lane::Any,
        };
        Operation {
            place,
            action,
            lane,
        }
    }

    /// A leased read.
    pub fn read(place: Place) -> Operation {
        Operation::new(place, Action::Read(Reading::Leased))
    }

    /// A write without any condition.
    pub fn put(place: Place, value: &[u8]) -> Operation {
        Operation::write(place, value, When::Always)
    }

    /// A write on a condition.
    pub fn write(place: Place, value: &[u8], when: When) -> Operation {
        let write = Write {
            value: value.to_vec(),
            when,
            ..Write::default()
        };
        Operation::new(place, Action::Write(write))
    }

    /// A deletion on a condition.
    pub fn delete(place: Place, when: When) -> Operation {
        let delete = Delete {
            when,
            ..Delete::default()
        };
        Operation::new(place, Action::Delete(delete))
    }

    /// A request for a lock.
    pub fn acquire(place: Place, owner: Owner, wait: bool) -> Operation {
        Operation::new(place, Action::Acquire { owner, wait })
    }

    /// The end of a hold, or of waiting for it.
    pub fn release(place: Place, owner: Owner) -> Operation {
        Operation::new(place, Action::Release { owner })
    }
}

impl Action {
    /// The one switch that may answer.
    pub(crate) fn member(&self) -> Option<Ipv4Addr> {
        match self {
            Action::Read(Reading::Of(member))
            | Action::Scan {
                reading: Reading::Of(member),
                ..
            } => Some(*member),
            _ => None,
        }
    }

    /// True if the chain numbers it: it needs a lane, and may have taken effect when its answer
    /// is lost.
    pub fn is_numbered(&self) -> bool {
        !matches!(
            self,
            Action::Read(_) | Action::Scan { .. } | Action::Watch(_) | Action::Unwatch
        )
    }
}
