//! Staged writes that engines were asked for, and what became of them.

use stateplane_sync::Ticket;
use std::collections::BTreeMap;

/// A staged write.
struct Asked {
    /// Port of the process, which no other has, and its term.
    port: u16,
    term: u64,
    group: u16,
    ticket: Ticket,
    values: BTreeMap<u32, u64>,
    is_made: bool,
    has_ended: bool,
}

/// All staged writes of a run.
#[derive(Default)]
pub(crate) struct StagedWrites {
    asked: Vec<Asked>,
}

impl StagedWrites {
    /// Values of another write of a group: every second location below `end` has one of its own, which
    /// no other write has, in at most `bits` bits.
    pub(crate) fn values(&self, end: u32, bits: u32) -> BTreeMap<u32, u64> {
        let first = (self.asked.len() as u64 + 1) * u64::from(end);
        let values = (0..end).step_by(2);
        let value = |at: u32| (first + u64::from(at)) & (u64::MAX >> (64 - bits));
        values.map(|at| (at, value(at))).collect()
    }

    /// The process at `port` was asked for a write.
    pub(crate) fn ask(
        &mut self,
        (port, term): (u16, u64),
        group: u16,
        ticket: Ticket,
        values: BTreeMap<u32, u64>,
    ) {
        self.asked.push(Asked {
            port,
            term,
            group,
            ticket,
            values,
            is_made: false,
            has_ended: false,
        });
    }

    /// The engine of `term` made a staged cut, before which the group held `before`, and `after` behind
    /// it: true if that is one of its writes, whole and the first time.
    pub(crate) fn is_one(&mut self, term: u64, group: u16, before: &[u64], after: &[u64]) -> bool {
        let is_it = |asked: &&mut Asked| {
            let mut written = before.to_vec();
            for (at, value) in &asked.values {
                written[*at as usize] = *value;
            }
            !asked.is_made && (asked.term, asked.group) == (term, group) && written == after
        };
        let found = self.asked.iter_mut().find(is_it);
        found.is_some_and(|asked| {
            asked.is_made = true;
            true
        })
    }

    /// A write ended: `None` if it was no staged one; else true if it was made.
    pub(crate) fn end(&mut self, port: u16, group: u16, ticket: Ticket) -> Option<bool> {
        let mut asked = self.asked.iter_mut();
        let found = asked.find(|it| (it.port, it.group, it.ticket) == (port, group, ticket))?;
        found.has_ended = true;
        Some(found.is_made)
    }

    /// Writes of the process at `port` that did not end.
    pub(crate) fn open(&self, port: u16) -> usize {
        let open = self.asked.iter().filter(|asked| !asked.has_ended);
        open.filter(|asked| asked.port == port).count()
    }
}
