//! Entries that age: tables whose property `support_timeout` is true.

use super::{KeyMatch, Table};
use crate::error::StateError;

/// µs between two looks at all entries that age: an entry is reported at the first look
/// after its timeout, as in BMv2.
pub const SWEEP_US: u64 = 1_000_000;

/// Sweeps after which an entry that still was not hit is reported again, as in BMv2.
const REPEAT_SWEEPS: u64 = 2;

/// Aging of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Idle {
    /// µs without a hit after which it is reported.
    pub(super) timeout: u64,
    /// Time in µs of its last hit, or of when it began to age.
    pub(super) last_hit: u64,
    /// When it was last reported, if that was since the last hit.
    pub(super) reported: Option<u64>,
}

/// An entry that no packet has hit for its timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleEntry {
    /// Full name of its table.
    pub table: String,
    /// Its keys.
    pub keys: Vec<KeyMatch>,
    /// Its priority.
    pub priority: u32,
}

impl Table {
    /// Lets an entry age from `now` in µs on: it is reported when no packet has hit it for
    /// `timeout` µs. `None` or 0 ends that.
    ///
    /// # Errors
    ///
    /// [`StateError::NoEntry`], those of [`Table::insert`] about keys, and
    /// [`StateError::Unsupported`] if the program does not let the table's entries age.
    pub fn set_idle_timeout(
        &mut self,
        keys: &[KeyMatch],
        priority: u32,
        timeout: Option<u64>,
        now: u64,
    ) -> Result<(), StateError> {
        let timeout = timeout.filter(|timeout| *timeout > 0);
        if timeout.is_some() && !self.ages {
            return Err(StateError::Unsupported {
                what: "an idle timeout",
                place: self.name.clone(),
                instead: "write `support_timeout = true;` in the table",
            });
        }
        let position = self.existing(keys, priority)?;
        if let Some(Some(stored)) = self.entries.get_mut(position as usize) {
            self.aging -= u64::from(stored.idle.is_some());
            self.aging += u64::from(timeout.is_some());
            stored.idle = timeout.map(|timeout| Idle {
                timeout,
                last_hit: now,
                reported: None,
            });
        }
        self.log.note(position);
        Ok(())
    }

    /// µs since the last hit of an entry that ages, or since it began to; `None` if it does
    /// not age.
    ///
    /// # Errors
    ///
    /// [`StateError::NoEntry`], and those of [`Table::insert`] about keys.
    pub fn idle_for(
        &self,
        keys: &[KeyMatch],
        priority: u32,
        now: u64,
    ) -> Result<Option<u64>, StateError> {
        let position = self.existing(keys, priority)?;
        let stored = self.entries[position as usize].as_ref();
        let idle = stored.and_then(|stored| stored.idle.as_ref());
        Ok(idle.map(|idle| now.saturating_sub(idle.last_hit)))
    }

    /// True if some entry ages.
    pub fn is_aging(&self) -> bool {
        self.aging > 0
    }

    /// Tells `report` of each entry whose timeout has passed at `now`, in µs: the first
    /// time, and again every two sweeps.
    pub(crate) fn sweep(&mut self, now: u64, mut report: impl FnMut(IdleEntry)) {
        if self.aging == 0 {
            return;
        }
        for stored in self.entries.iter_mut().flatten() {
            let Some(idle) = &mut stored.idle else {
                continue;
            };
            let late = now.saturating_sub(idle.last_hit) >= idle.timeout;
            let again = idle
                .reported
                .is_none_or(|last| now.saturating_sub(last) >= REPEAT_SWEEPS * SWEEP_US);
            if late && again {
                idle.reported = Some(now);
                report(IdleEntry {
                    table: self.name.clone(),
                    keys: stored.keys.clone(),
                    priority: stored.priority,
                });
            }
        }
    }
}
