//! Ids of writes, by which each is applied once.

use std::collections::{BTreeMap, VecDeque};

use stateplane_wire::sync::Outcome;

/// Ids of writes that are remembered; older ones are forgotten.
pub const MOST_WRITE_IDS: usize = 1 << 16;

/// Number that a client drew for a write, by which the write is told from others.
pub type WriteId = [u8; 16];

/// How far a write has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It was sent, and has not ended.
    Begun,
    /// It ended.
    Ended(Outcome),
    /// It ended, and nobody knows whether it took effect.
    Unknown,
}

impl From<Option<Outcome>> for Progress {
    fn from(outcome: Option<Outcome>) -> Progress {
        outcome.map_or(Progress::Unknown, Progress::Ended)
    }
}

/// The progress of writes by their ids, the oldest forgotten first.
#[derive(Debug, Default)]
pub(super) struct WriteIds {
    /// Numbers of the writes in their order, and how far they have come.
    pub(super) progress: BTreeMap<WriteId, (u64, Progress)>,
    pub(super) order: VecDeque<WriteId>,
    next: u64,
}

impl WriteIds {
    /// Its number.
    pub(super) fn begin(&mut self, id: WriteId) -> u64 {
        if let Some((number, progress)) = self.progress.get_mut(&id) {
            *progress = Progress::Begun;
            return *number;
        }
        let number = self.next;
        self.restore(number, id, Progress::Begun);
        number
    }

    /// Takes a write that is behind all others.
    pub(super) fn restore(&mut self, number: u64, id: WriteId, progress: Progress) {
        self.next = number + 1;
        self.progress.insert(id, (number, progress));
        self.order.push_back(id);
        while self.order.len() > MOST_WRITE_IDS {
            if let Some(oldest) = self.order.pop_front() {
                self.progress.remove(&oldest);
            }
        }
    }

    /// Its number, if it is not forgotten.
    pub(super) fn end(&mut self, id: WriteId, outcome: Option<Outcome>) -> Option<u64> {
        let (number, known) = self.progress.get_mut(&id)?;
        *known = outcome.into();
        Some(*number)
    }

    /// Nobody knows what became of writes that were under way when the engine ended.
    pub(super) fn give_up(&mut self) {
        for (_, progress) in self.progress.values_mut() {
            if *progress == Progress::Begun {
                *progress = Progress::Unknown;
            }
        }
    }
}
