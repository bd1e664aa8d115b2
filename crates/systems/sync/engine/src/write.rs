//! Writes: one at a time to the switch, and until the view has them (rules 19 to 23).

use crate::engine::Settings;
use stateplane_wire::sync::{Operation, Outcome, Value};
use std::collections::VecDeque;

/// Most writes that wait.
const MOST: usize = 1024;

/// Names a write of one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// Why a write is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// So many wait already.
    #[error("{0} writes wait already; wait for one of them to end")]
    Full(usize),
    /// No value, or more than one message takes.
    #[error("a write has 1 to {0} values, SET_IF_EQUAL one")]
    Count(u32),
    /// The group has no such location.
    #[error("the group has no location {0}")]
    Location(u32),
    /// Another engine has a higher term.
    #[error("another engine has a higher term")]
    Fenced,
    /// The switch refuses writes and cuts (rule 32).
    #[error("the switch refuses writes and cuts")]
    ReadOnly,
}

impl WriteError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            WriteError::Full(_) => "SYNC010",
            WriteError::Count(_) => "SYNC011",
            WriteError::Location(_) => "SYNC012",
            WriteError::Fenced => "SYNC013",
            WriteError::ReadOnly => "SYNC014",
        }
    }
}

#[derive(Debug)]
struct Write {
    ticket: Ticket,
    operation: Operation,
    values: Vec<Value>,
    expected: u64,
}

/// A write that goes to the switch.
#[derive(Debug)]
pub(crate) struct Due<'a> {
    pub(crate) number: u64,
    pub(crate) operation: Operation,
    pub(crate) expected: u64,
    pub(crate) values: &'a [Value],
}

/// A write that was taken, whose locations have not all had a later value.
#[derive(Debug)]
struct Unseen {
    ticket: Ticket,
    outcome: Outcome,
    stamp: u64,
    locations: Vec<u32>,
}

#[derive(Debug, Default)]
pub(crate) struct Writes {
    tickets: u64,
    /// Number of the last write that the switch took.
    last: u64,
    waiting: VecDeque<Write>,
    /// When the first of them was sent last.
    sent: Option<u64>,
    unseen: Vec<Unseen>,
}

impl Writes {
    /// The switch's last number of this term is `last`.
    pub(crate) fn begin(&mut self, last: u64) {
        self.last = last;
        self.sent = None;
    }

    /// The switch started anew: what became of writes that were sent to it is unknown.
    pub(crate) fn forget(&mut self) -> impl Iterator<Item = Ticket> + use<> {
        let sent = self.sent.take().and_then(|_| self.waiting.pop_front());
        let sent = sent.map(|write| write.ticket);
        let unseen: Vec<Ticket> = self.unseen.drain(..).map(|write| write.ticket).collect();
        unseen.into_iter().chain(sent)
    }

    /// The switch takes no writes: those that wait.
    pub(crate) fn refuse(&mut self) -> impl Iterator<Item = Ticket> + use<> {
        self.sent = None;
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().map(|write| write.ticket)
    }

    /// The name of another write.
    pub(crate) fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    pub(crate) fn add(
        &mut self,
        settings: &Settings,
        operation: Operation,
        values: &[(u32, u64)],
        expected: u64,
    ) -> Result<Ticket, WriteError> {
        let most = match operation {
            Operation::SetIfEqual => 1,
            Operation::Set | Operation::Add => settings.batch,
        };
        if values.is_empty() || values.len() > most as usize {
            return Err(WriteError::Count(settings.batch));
        }
        settings.check_locations(values)?;
        if self.waiting.len() + self.unseen.len() >= MOST {
            return Err(WriteError::Full(MOST));
        }
        let ticket = self.ticket();
        let values = values.iter();
        let values = values.map(|&(index, value)| Value { index, value });
        self.waiting.push_back(Write {
            ticket,
            operation,
            values: values.collect(),
            expected,
        });
        Ok(ticket)
    }

    /// The write that is to be sent, if it was not sent for `retry` µs.
    pub(crate) fn due(&mut self, now: u64, retry: u64) -> Option<Due<'_>> {
        if self.sent.is_some_and(|at| now < at + retry) {
            return None;
        }
        let write = self.waiting.front()?;
        self.sent = Some(now);
        Some(Due {
            number: self.last + 1,
            operation: write.operation,
            expected: write.expected,
            values: &write.values,
        })
    }

    /// The switch answered write `number`: the write, if it has ended with that.
    pub(crate) fn answered(
        &mut self,
        number: u64,
        outcome: Outcome,
        stamp: u64,
        newest: impl Fn(u32) -> u64,
    ) -> Option<(Ticket, Outcome)> {
        let is_next = number == self.last + 1 && outcome.is_final() && self.sent.is_some();
        let write = is_next.then(|| self.waiting.pop_front()).flatten()?;
        self.last = number;
        self.sent = None;
        let locations = write.values.iter().map(|value| value.index);
        let locations: Vec<u32> = locations.filter(|at| newest(*at) <= stamp).collect();
        if locations.is_empty() {
            return Some((write.ticket, outcome));
        }
        self.unseen.push(Unseen {
            ticket: write.ticket,
            outcome,
            stamp,
            locations,
        });
        None
    }

    /// The view has a value of a location with a stamp. Writes that have ended with it.
    pub(crate) fn seen(
        &mut self,
        (location, stamp): (u32, u64),
    ) -> impl Iterator<Item = (Ticket, Outcome)> + use<> {
        let mut ended = Vec::new();
        if !self.unseen.is_empty() {
            self.unseen.retain_mut(|write| {
                if stamp > write.stamp {
                    write.locations.retain(|at| *at != location);
                }
                if write.locations.is_empty() {
                    ended.push((write.ticket, write.outcome));
                }
                !write.locations.is_empty()
            });
        }
        ended.into_iter()
    }
}
