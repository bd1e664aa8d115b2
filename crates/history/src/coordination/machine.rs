//! A group as a sequential machine: what its head decides, entry by entry (rules 3, 20, 21).

use crate::coordination::event::{
    Asked, Condition, Guard, Holder, Kind, Outcome, Request, Response, Seen,
};
use crate::event::Object;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Requests that wait for a lock at most (rule 20).
pub const WAITERS: usize = 14;

/// A record.
///
/// Numbers are `None` where a search does not know them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    /// Number of the entry that last changed it.
    pub number: Option<u64>,
    /// Highest token that it has seen.
    pub seen_token: u64,
    /// Its content.
    pub content: Content,
}

/// Content of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Content {
    /// A value.
    Value(Arc<[u8]>),
    /// A lock.
    Lock {
        /// The owner.
        owner: Holder,
        /// Number of the entry that made the owner.
        token: Option<u64>,
        /// Owners that wait, in the order of their coming.
        waiters: Vec<Holder>,
    },
    /// Deleted, and kept for its token.
    Empty,
}

/// The records of a group by key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Group(BTreeMap<Object, Record>);

/// Decision of the head, and the record of the key afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The outcome.
    pub outcome: Outcome,
    /// The record, if the outcome changed it.
    pub change: Option<Option<Record>>,
}

impl Decision {
    fn refused(outcome: Outcome) -> Self {
        Self {
            outcome,
            change: None,
        }
    }

    fn done(record: Option<Record>) -> Self {
        Self {
            outcome: Outcome::Done,
            change: Some(record),
        }
    }
}

/// The record, unless it is only kept for its token.
fn present(record: Option<&Record>) -> Option<&Record> {
    record.filter(|record| record.content != Content::Empty)
}

fn holds(condition: &Condition, record: Option<&Record>) -> bool {
    let record = present(record);
    match condition {
        Condition::None => true,
        Condition::Absent => record.is_none(),
        Condition::Present => record.is_some(),
        Condition::Number(number) => record.is_some_and(|of| of.number == Some(*number)),
        Condition::Value(value) => {
            record.is_some_and(|of| matches!(&of.content, Content::Value(own) if own == value))
        }
        Condition::Token(asked) => record.is_some_and(
            |of| matches!(of.content, Content::Lock { token, .. } if token == Some(*asked)),
        ),
    }
}

impl Group {
    /// The record of `key`.
    pub fn record(&self, key: &Object) -> Option<&Record> {
        self.0.get(key)
    }

    /// The head's decision about `request`, whose entry has `number`.
    ///
    /// Places for records are not counted: [`Group::may_be_full`] tells where a switch without
    /// one refuses.
    pub fn decide(&self, request: &Request, number: Option<u64>) -> Decision {
        let record = self.0.get(&request.key);
        if let Some(Guard { key, condition }) = &request.guard
            && !holds(condition, self.0.get(key))
        {
            return Decision::refused(Outcome::Guarded);
        }
        match &request.asked {
            Asked::Read => Decision::refused(match present(record) {
                Some(_) => Outcome::Done,
                None => Outcome::Absent,
            }),
            Asked::Write(value, condition) => {
                let content = Content::Value(value.clone());
                Self::written(record, request.token, condition, number, Some(content))
            }
            Asked::Delete(condition) => {
                Self::written(record, request.token, condition, number, None)
            }
            Asked::Acquire(wait) => Self::acquired(record, request.holder, *wait, number),
            Asked::Release => Self::released(record, request.holder, number),
        }
    }

    /// True if the head may refuse `request` because no place for the record is free.
    pub fn may_be_full(&self, request: &Request) -> bool {
        let makes = matches!(request.asked, Asked::Write(..) | Asked::Acquire(_));
        makes && !self.0.contains_key(&request.key)
    }

    fn written(
        record: Option<&Record>,
        token: u64,
        condition: &Condition,
        number: Option<u64>,
        content: Option<Content>,
    ) -> Decision {
        let seen_token = record.map_or(0, |record| record.seen_token);
        if token < seen_token {
            return Decision::refused(Outcome::StaleToken);
        }
        if record.is_some_and(|record| matches!(record.content, Content::Lock { .. })) {
            return Decision::refused(Outcome::WrongKind);
        }
        if !holds(condition, record) {
            return Decision::refused(Outcome::Mismatch);
        }
        let seen_token = seen_token.max(token);
        match content {
            None if present(record).is_none() => Decision::refused(Outcome::Absent),
            None if seen_token == 0 => Decision::done(None),
            content => Decision::done(Some(Record {
                number,
                seen_token,
                content: content.unwrap_or(Content::Empty),
            })),
        }
    }

    fn acquired(
        record: Option<&Record>,
        holder: Holder,
        wait: bool,
        number: Option<u64>,
    ) -> Decision {
        let Some(record) = record else {
            return Decision::done(Some(Record {
                number,
                seen_token: 0,
                content: Content::Lock {
                    owner: holder,
                    token: number,
                    waiters: Vec::new(),
                },
            }));
        };
        // A record that is kept for its token is none of a lock either.
        let Content::Lock {
            owner,
            token,
            waiters,
        } = &record.content
        else {
            return Decision::refused(Outcome::WrongKind);
        };
        if *owner == holder {
            return Decision::refused(Outcome::Done);
        }
        if waiters.contains(&holder) {
            return Decision::refused(if wait {
                Outcome::Queued
            } else {
                Outcome::Taken
            });
        }
        if !wait {
            return Decision::refused(Outcome::Taken);
        }
        if waiters.len() >= WAITERS {
            return Decision::refused(Outcome::Full);
        }
        let mut waiters = waiters.clone();
        waiters.push(holder);
        let content = Content::Lock {
            owner: *owner,
            token: *token,
            waiters,
        };
        Decision {
            outcome: Outcome::Queued,
            change: Some(Some(Record {
                number,
                content,
                ..record.clone()
            })),
        }
    }

    fn released(record: Option<&Record>, holder: Holder, number: Option<u64>) -> Decision {
        let Some(record) = record else {
            return Decision::refused(Outcome::Absent);
        };
        let Content::Lock {
            owner,
            token,
            waiters,
        } = &record.content
        else {
            return Decision::refused(Outcome::WrongKind);
        };
        let mut waiters = waiters.clone();
        let content = if *owner == holder {
            if waiters.is_empty() {
                return Decision::done(None);
            }
            Content::Lock {
                owner: waiters.remove(0),
                token: number,
                waiters,
            }
        } else if let Some(place) = waiters.iter().position(|waiter| *waiter == holder) {
            waiters.remove(place);
            Content::Lock {
                owner: *owner,
                token: *token,
                waiters,
            }
        } else {
            return Decision::refused(Outcome::NotOwner);
        };
        Decision::done(Some(Record {
            number,
            content,
            ..record.clone()
        }))
    }

    /// The group with what `decision` changes of `key`.
    pub fn apply(&mut self, key: &Object, decision: &Decision) {
        match &decision.change {
            None => {}
            Some(None) => {
                self.0.remove(key);
            }
            Some(Some(record)) => {
                self.0.insert(key.clone(), record.clone());
            }
        }
    }

    /// The record of `key` as an answer shows it.
    pub fn seen(&self, key: &Object) -> Seen {
        let Some(record) = self.0.get(key) else {
            return Seen {
                kind: Kind::None,
                number: 0,
                value: None,
            };
        };
        let (kind, value) = match &record.content {
            Content::Value(value) => (Kind::Value, Some(value.clone())),
            Content::Lock { .. } => (Kind::Lock, None),
            Content::Empty => (Kind::Empty, None),
        };
        Seen {
            kind,
            number: record.number.unwrap_or(0),
            value,
        }
    }

    /// Token of the lock `key`; `None` if there is no lock, and 0 if it is not known.
    pub fn token(&self, key: &Object) -> Option<u64> {
        match self.0.get(key)?.content {
            Content::Lock { token, .. } => Some(token.unwrap_or(0)),
            _ => None,
        }
    }

    /// Executes `request` as entry `number` and answers it whole; a read is answered as with
    /// `number` the newest.
    pub fn execute(&mut self, request: &Request, number: u64) -> Response {
        let decision = self.decide(request, Some(number));
        self.apply(&request.key, &decision);
        Response {
            outcome: decision.outcome,
            number,
            token: self.token(&request.key),
            seen: Some(self.seen(&request.key)),
        }
    }
}
