//! Writes of more values than a message has: staged at the switch, and taken by a cut (rule 19).

use crate::write::{Ticket, WriteError};
use stateplane_wire::sync::Value;
use std::collections::{BTreeMap, VecDeque};

/// Most writes that wait.
const MOST: usize = 64;

/// Pieces that are with the switch at one time.
const PIECES: usize = 64;

/// The write whose values are staged.
#[derive(Debug)]
struct Staging {
    ticket: Ticket,
    /// Its number in the term, which no other staging has.
    number: u64,
    values: Vec<Value>,
    /// First piece that was not sent.
    next: usize,
    /// When pieces that were not acknowledged were sent.
    sent: BTreeMap<usize, u64>,
    /// The cut was asked for.
    is_cut: bool,
}

/// Staged writes, one at a time at the switch.
#[derive(Debug, Default)]
pub(crate) struct Stages {
    /// Number of the last staging in the engine's term.
    number: u64,
    waiting: VecDeque<(Ticket, Vec<Value>)>,
    staging: Option<Staging>,
}

impl Stages {
    /// Takes a write; of a location that it names twice the last value counts.
    pub(crate) fn add(&mut self, ticket: Ticket, values: &[(u32, u64)]) -> Result<(), WriteError> {
        if self.waiting.len() + usize::from(self.staging.is_some()) >= MOST {
            return Err(WriteError::Full(MOST));
        }
        let last: BTreeMap<u32, u64> = values.iter().copied().collect();
        let values = last.into_iter();
        let values = values.map(|(index, value)| Value { index, value });
        self.waiting.push_back((ticket, values.collect()));
        Ok(())
    }

    /// Numbers of the pieces, of `batch` values each, that are to be sent, with that of the staging.
    pub(crate) fn due(&mut self, now: u64, retry: u64, batch: usize) -> (u64, Vec<usize>) {
        if self.staging.is_none()
            && let Some((ticket, values)) = self.waiting.pop_front()
        {
            self.stage(ticket, values);
        }
        let Some(staging) = &mut self.staging else {
            return (0, Vec::new());
        };
        let mut due = Vec::new();
        for (piece, sent) in &mut staging.sent {
            if now >= *sent + retry {
                *sent = now;
                due.push(*piece);
            }
        }
        let pieces = staging.values.len().div_ceil(batch);
        while staging.sent.len() < PIECES && staging.next < pieces {
            staging.sent.insert(staging.next, now);
            due.push(staging.next);
            staging.next += 1;
        }
        (staging.number, due)
    }

    fn stage(&mut self, ticket: Ticket, values: Vec<Value>) {
        self.number += 1;
        self.staging = Some(Staging {
            ticket,
            number: self.number,
            values,
            next: 0,
            sent: BTreeMap::new(),
            is_cut: false,
        });
    }

    /// The values of a piece.
    pub(crate) fn piece(&self, piece: usize, batch: usize) -> &[Value] {
        let staging = self.staging.as_ref();
        let piece = staging.and_then(|staging| staging.values.chunks(batch).nth(piece));
        piece.unwrap_or_default()
    }

    /// The switch has a piece.
    pub(crate) fn staged(&mut self, number: u64, piece: u64) {
        let staging = self.staging.as_mut();
        if let Some(staging) = staging.filter(|staging| staging.number == number)
            && let Ok(piece) = usize::try_from(piece)
        {
            staging.sent.remove(&piece);
        }
    }

    /// Number and locations of the staging whose cut is to be asked for: the switch has all of it.
    pub(crate) fn whole(&self, batch: usize) -> Option<(u64, u64)> {
        let staging = self.staging.as_ref()?;
        let pieces = staging.values.len().div_ceil(batch);
        let is_whole = staging.next == pieces && staging.sent.is_empty() && !staging.is_cut;
        is_whole.then_some((staging.number, staging.values.len() as u64))
    }

    /// The cut is asked for.
    pub(crate) fn cutting(&mut self) {
        if let Some(staging) = &mut self.staging {
            staging.is_cut = true;
        }
    }

    /// The view crosses the cut: the values that it gives, and the write that ends. `None` if no cut
    /// was asked for.
    pub(crate) fn crossed(&mut self) -> Option<(Ticket, Vec<Value>)> {
        let staging = self.staging.take_if(|staging| staging.is_cut)?;
        Some((staging.ticket, staging.values))
    }

    /// The switch has less of the staging than was acknowledged: it begins anew, under another
    /// number, unless it was another staging.
    pub(crate) fn lacking(&mut self, number: u64) -> bool {
        let staging = self.staging.take_if(|staging| staging.number == number);
        let Some(staging) = staging else {
            return false;
        };
        self.stage(staging.ticket, staging.values);
        true
    }

    /// The switch takes no writes: those that wait.
    pub(crate) fn refuse(&mut self) -> impl Iterator<Item = Ticket> + use<> {
        let staging = self.staging.take().map(|staging| staging.ticket);
        let waiting = std::mem::take(&mut self.waiting);
        let waiting = waiting.into_iter().map(|(ticket, _)| ticket);
        staging.into_iter().chain(waiting)
    }

    /// The view begins anew. A write whose cut was made, or may have been, ends, and nobody knows how;
    /// one that was not cut, or whose cut `waits` unsent, is staged anew.
    pub(crate) fn forget(&mut self, waits: bool) -> Option<Ticket> {
        let staging = self.staging.take()?;
        if staging.is_cut && !waits {
            return Some(staging.ticket);
        }
        self.stage(staging.ticket, staging.values);
        None
    }
}

#[cfg(test)]
mod tests;
