//! Log of a table's changes, for data planes with an index of their own.

use super::Table;
use std::collections::VecDeque;

/// Maximum number of remembered changes. A reader that missed more reads the whole table.
const REMEMBERED: usize = 1 << 14;

/// An entry as data planes need it. Words are those of all keys, one key after the
/// other, each in [`word_count`](crate::bits::word_count) words of its width.
#[derive(Clone, Copy, Debug)]
pub struct Rule<'a> {
    /// Values, or the low ends of ranges.
    pub low: &'a [u128],
    /// Masks, or the high ends of ranges.
    pub high: &'a [u128],
    /// Of entries that match the greatest wins, of equal ones the one with the smallest
    /// serial number. In tables without priorities 0.
    pub priority: u32,
    /// Place in the order of insertion.
    pub serial: u64,
    /// Position among [`Table::actions`].
    pub action: u32,
    /// Words of the action's data.
    pub data: &'a [u128],
}

/// Positions of entries that changed.
#[derive(Debug)]
pub enum Changes<'a> {
    /// These entries changed, perhaps some more than once. The default action may have changed, too.
    Some(std::collections::vec_deque::Iter<'a, u32>),
    /// More changes than are remembered: look at all entries.
    Many,
}

/// Changes in order, the last ones with their positions (of an action profile: with their numbers).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    /// Number of changes ever.
    version: u64,
    positions: VecDeque<u32>,
    /// Version at which `positions` begins.
    from: u64,
}

impl Log {
    pub(crate) fn note(&mut self, position: u32) {
        self.version += 1;
        self.positions.push_back(position);
        if self.positions.len() > REMEMBERED {
            self.positions.pop_front();
            self.from += 1;
        }
    }

    pub(super) fn note_default(&mut self) {
        // Any position does: to look at an entry that did not change is no harm.
        self.note(0);
    }

    /// Number of changes ever.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Changes since `version`.
    pub(crate) fn since(&self, version: u64) -> Changes<'_> {
        match version.checked_sub(self.from) {
            Some(known) if known <= self.positions.len() as u64 => {
                Changes::Some(self.positions.range(known as usize..))
            }
            _ => Changes::Many,
        }
    }

    /// Goes on at `version`, with all that came before it forgotten.
    pub(crate) fn skip_to(&mut self, version: u64) {
        *self = Log {
            version,
            positions: VecDeque::new(),
            from: version,
        };
    }
}

impl Table {
    /// A number that grows with each change of an entry or of the default action.
    pub fn version(&self) -> u64 {
        self.log.version()
    }

    /// Changes since the table had `version`.
    pub fn changes(&self, version: u64) -> Changes<'_> {
        self.log.since(version)
    }

    /// Positions that entries may have: all below this number.
    pub fn positions(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The entry at a position, which it keeps while it is in the table; `None` if there
    /// is none.
    pub fn rule(&self, position: u32) -> Option<Rule<'_>> {
        let stored = self.entries.get(position as usize)?.as_ref()?;
        Some(Rule {
            low: &stored.low,
            high: &stored.high,
            priority: stored.priority,
            serial: stored.serial,
            action: stored.call.action,
            data: &stored.call.data,
        })
    }
}
