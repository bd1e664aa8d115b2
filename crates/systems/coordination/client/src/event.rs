//! Events that an agent tells of its operations.

use stateplane_wire::coordination::{Key, Kind, Outcome};

use crate::Owner;

/// Names an operation of one agent. Tickets are not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A record as a reply shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its key.
    pub key: Key,
    /// Its kind.
    pub kind: Kind,
    /// Number of the entry that last changed it: its version.
    pub number: u64,
    /// The owner's token of a lock, else the highest token that the record has seen.
    pub token: u64,
    /// The session that owns it, 0 without.
    pub session: u32,
    /// Its value, without the name that stands before it.
    pub value: Vec<u8>,
}

impl Record {
    /// Owner and queue, if the record is a lock.
    pub fn lock(&self) -> Option<LockState> {
        (self.kind == Kind::Lock)
            .then(|| LockState::parse(&self.value))
            .flatten()
    }
}

/// Owner and queue of a lock (rule 20).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockState {
    /// The owner that holds it.
    pub owner: Owner,
    /// The fencing token: number of the entry that made the owner.
    pub token: u64,
    /// The owners that wait, first come first served.
    pub waiters: Vec<Owner>,
}

impl LockState {
    /// Reads the value of a lock's record; `None` if it is too short to have an owner.
    pub fn parse(value: &[u8]) -> Option<LockState> {
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let owner = |bytes: &[u8]| Owner {
            session: number(&bytes[..4]) as u32,
            handle: number(&bytes[4..8]) as u32,
        };
        let (front, queue) = value.split_at_checked(16)?;
        Some(LockState {
            owner: owner(front),
            token: number(&front[8..]),
            waiters: queue
                .chunks_exact(8)
                .map(owner)
                .take_while(|waiter| *waiter != Owner::default())
                .collect(),
        })
    }
}

/// The answer to an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its outcome, one that is final ([`Outcome::is_final`]).
    pub outcome: Outcome,
    /// Number of the operation's entry: for [`Outcome::Done`] of a write, the record's version.
    /// 0 of reads, and of what the agent judged by a read. Of a watch: the oldest entry that the
    /// answering switch has.
    pub number: u64,
    /// Number of the newest entry that the answering switch had.
    pub newest: u64,
    /// Of a lock: the token of its owner.
    pub token: u64,
    /// The record, if there is one and the reply shows it: an answer that was lost and is asked
    /// again has none.
    pub record: Option<Record>,
    /// Of a scan: the place of the record, or the place from which to go on.
    pub slot: u16,
    /// Of a scan: more records may follow.
    pub more: bool,
}

impl Answer {
    /// Of a scan: the slot from which the next scan goes on, unless no records are behind.
    pub fn next_slot(&self) -> Option<u16> {
        match (&self.record, self.more) {
            (Some(_), _) => self.slot.checked_add(1),
            (None, true) => Some(self.slot),
            (None, false) => None,
        }
    }
}

/// An entry of a group's log, as a client that watches the group gets it (rule 23).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Number of the newest entry that the switch had.
    pub newest: u64,
    /// True if the entry changed its record; of failures, and of what is about lanes alone, there
    /// are entries too.
    pub changes: bool,
    /// The entry's number and, if it changed it, the record: of kind [`Kind::None`] or
    /// [`Kind::Empty`] if it was deleted. A name longer than a key stands before the value.
    pub record: Record,
}

/// Fate of an operation whose answer did not come in time (rule 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was carried out, with this outcome.
    Executed {
        /// Its outcome.
        outcome: Outcome,
        /// Its number.
        number: u64,
        /// Its token, of a lock.
        token: u64,
    },
    /// It was not carried out, and will not be.
    Never,
    /// Nobody knows any more: the group was founded anew, or the lane ended with its session.
    Lost,
}

/// Why an operation ended without an answer although it had time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The session's lanes have a later incarnation: a reaper ended the session (rule 19). Of an
    /// operation that was sent more than once it is not known whether it took effect before.
    #[error("the session was ended")]
    LaneEnded,
    /// The group was founded anew after its members were lost (rule 17). An operation on its
    /// former contents has no meaning any more.
    #[error("the group was founded anew")]
    Refounded,
    /// Another name has the same key, by an accident of the hash.
    #[error("another name has the same key")]
    Clash,
}

/// Event of an agent. Each operation has exactly one of `Answered`, `Expired`, `Unknown` and `Failed`;
/// one that is `Unknown` and was a write has one `Resolved` later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The operation was carried out, or was decided not to be.
    Answered {
        /// The operation.
        ticket: Ticket,
        /// Its answer.
        answer: Answer,
    },
    /// The operation took no effect, and will not: its deadline passed, or its lanes ended, while it
    /// was read or waited for a lane.
    Expired {
        /// The operation.
        ticket: Ticket,
        /// The last refusal, if a switch refused.
        refusal: Option<Outcome>,
    },
    /// The deadline passed, or the lanes ended, and whether the operation took effect, or will, is
    /// not known.
    Unknown {
        /// The operation.
        ticket: Ticket,
        /// The last refusal, if a switch refused.
        refusal: Option<Outcome>,
    },
    /// Fate of an operation that was [`Event::Unknown`]. It cannot take effect later.
    Resolved {
        /// The operation.
        ticket: Ticket,
        /// Its fate.
        fate: Fate,
    },
    /// The operation ended without an answer.
    Failed {
        /// The operation.
        ticket: Ticket,
        /// Why.
        reason: Reason,
    },
    /// An entry of a group that the agent watches. They come in any order, more than once, or not
    /// at all.
    Entry {
        /// The group.
        group: u16,
        /// The entry.
        entry: Entry,
    },
    /// The chain of `group` is not known, or is out of date: the controller should be asked.
    ChainWanted {
        /// The group.
        group: u16,
    },
    /// The lanes are of no more use: a reaper moved them on, or their requests are used up. A
    /// new session is needed.
    LanesEnded,
}

impl Event {
    /// The operation that the event is about, if it is about one.
    pub fn ticket(&self) -> Option<Ticket> {
        match self {
            Event::Answered { ticket, .. }
            | Event::Expired { ticket, .. }
            | Event::Unknown { ticket, .. }
            | Event::Resolved { ticket, .. }
            | Event::Failed { ticket, .. } => Some(*ticket),
            Event::Entry { .. } | Event::ChainWanted { .. } | Event::LanesEnded => None,
        }
    }
}
