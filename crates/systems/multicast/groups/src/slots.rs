//! Slots of sessions: which are free, who has the others, and when one passes on (rules 21, 22).

use core::net::SocketAddrV4;

use crate::decision::{Slot, SlotBook, SlotState};

/// A slot, with what only this controller knows of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    /// As it was last decided.
    decided: Slot,
    /// As it is stored.
    stored: Slot,
    /// Version of the slot's row in the view.
    pub(crate) row: u64,
    /// Time in µs at which its session was last heard.
    heard: u64,
    /// Address from which its session was last heard.
    home: Option<SocketAddrV4>,
    /// Address that asks for the session, or for its end, and waits.
    asker: Option<SocketAddrV4>,
}

impl Entry {
    /// The slot, as it is stored.
    pub(crate) fn slot(&self) -> Slot {
        self.stored
    }

    /// True if what was decided of it is stored.
    pub(crate) fn is_settled(&self) -> bool {
        self.decided == self.stored
    }

    /// Addresses that wait until the decision is stored.
    pub(crate) fn take_asker(&mut self) -> Option<SocketAddrV4> {
        self.asker.take()
    }

    pub(crate) fn asker(&self) -> Option<SocketAddrV4> {
        self.asker
    }
}

/// Result of asking for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The slot; the answer follows when all switches know of it.
    Slot(u16),
    /// No slot is free.
    NoSlot,
    /// No lane is free.
    NoLane,
}

/// All slots.
#[derive(Debug, Clone)]
pub(crate) struct SlotTable {
    entries: Vec<Entry>,
    /// Slots that the switches' program has.
    slots: usize,
    /// Lanes of a session, at most.
    lanes: u8,
    /// Lanes of all sessions together, at most.
    most: u32,
    /// Version of the last book.
    version: u32,
    /// The book that is being stored, one at a time.
    storing: Option<SlotBook>,
}

impl SlotTable {
    /// The table of `slots` slots as `stored` has it.
    pub(crate) fn new(
        slots: u16,
        lanes: u8,
        most: u32,
        stored: Option<&SlotBook>,
        now: u64,
    ) -> SlotTable {
        let known = |at: usize| stored.and_then(|book| book.slots.get(at));
        // Slots beyond those of the settings are kept as they are, and nobody gets them.
        let count = usize::from(slots).max(stored.map_or(0, |book| book.slots.len()));
        let entries = (0..count).map(|at| {
            let slot = known(at).copied().unwrap_or_default();
            Entry {
                decided: slot,
                stored: slot,
                heard: now,
                ..Entry::default()
            }
        });
        SlotTable {
            entries: entries.collect(),
            slots: slots.into(),
            lanes,
            most,
            version: stored.map_or(0, |book| book.version),
            storing: None,
        }
    }

    /// The slots, by number.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u16, &Entry)> {
        (0..).zip(&self.entries)
    }

    /// A slot.
    pub(crate) fn get_mut(&mut self, slot: u16) -> Option<&mut Entry> {
        self.entries.get_mut(usize::from(slot))
    }

    /// Lanes that sessions have, or had whose entries logs may hold.
    pub(crate) fn granted(&self) -> u32 {
        let lanes = self.entries.iter().map(|entry| match entry.decided.state {
            SlotState::Free => 0,
            SlotState::Open { lanes, .. } | SlotState::Ended { lanes } => u32::from(lanes),
        });
        lanes.sum()
    }

    /// Gives a slot with at most `wanted` lanes to who drew `nonce`, or finds the one that it has.
    pub(crate) fn open(&mut self, now: u64, nonce: u64, wanted: u8, asker: SocketAddrV4) -> Asked {
        let has = |entry: &Entry| matches!(entry.decided.state, SlotState::Open { nonce: of, .. } if of == nonce);
        if let Some(at) = self.entries.iter().position(has) {
            self.entries[at].asker = Some(asker);
            self.entries[at].heard = now;
            return Asked::Slot(at as u16);
        }
        let free = self.most.saturating_sub(self.granted());
        let lanes = wanted
            .min(self.lanes)
            .min(u8::try_from(free).unwrap_or(u8::MAX));
        if lanes == 0 {
            return Asked::NoLane;
        }
        let slots = (0u16..).zip(&mut self.entries).take(self.slots);
        let free = slots.filter(|(_, entry)| entry.is_free());
        // The one that had the fewest sessions.
        let Some((slot, entry)) = free.min_by_key(|(_, it)| it.decided.incarnation) else {
            return Asked::NoSlot;
        };
        entry.decided = Slot {
            incarnation: entry.decided.incarnation + 1,
            state: SlotState::Open { lanes, nonce },
        };
        entry.asker = Some(asker);
        entry.home = None;
        entry.heard = now;
        Asked::Slot(slot)
    }

    /// Sessions that are open, and where they were last heard.
    pub(crate) fn homes(&self) -> impl Iterator<Item = (u16, u16, SocketAddrV4)> {
        self.all().filter_map(|(slot, entry)| {
            let incarnation = entry.decided.incarnation;
            let home = entry.home.filter(|_| entry.is_open(incarnation))?;
            Some((slot, incarnation, home))
        })
    }

    /// The session lives, at `from`. False if there is none of this incarnation that is open.
    pub(crate) fn hear(
        &mut self,
        now: u64,
        slot: u16,
        incarnation: u16,
        from: SocketAddrV4,
    ) -> bool {
        match self.get_mut(slot) {
            Some(entry) if entry.is_open(incarnation) => {
                entry.heard = now;
                entry.home = Some(from);
                true
            }
            _ => false,
        }
    }

    /// Ends a session; true once that is stored, or if the slot has or had another since.
    pub(crate) fn close(&mut self, slot: u16, incarnation: u16, asker: SocketAddrV4) -> bool {
        let Some(entry) = self.get_mut(slot) else {
            return false;
        };
        if entry.is_open(incarnation) {
            entry.end();
        }
        let open = Slot {
            state: entry.stored.state,
            incarnation,
        };
        let ends = entry.stored == open && matches!(open.state, SlotState::Open { .. });
        entry.asker = if ends { Some(asker) } else { entry.asker };
        !ends && incarnation <= entry.stored.incarnation
    }

    /// Ends the sessions that were silent for `ttl`; gives their number.
    pub(crate) fn expire(&mut self, now: u64, ttl: u64) -> u64 {
        let mut ended = 0;
        for entry in &mut self.entries {
            let open = matches!(entry.decided.state, SlotState::Open { .. });
            if open && now >= entry.heard.saturating_add(ttl) {
                entry.end();
                ended += 1;
            }
        }
        ended
    }

    /// When [`SlotTable::expire`] may end one.
    pub(crate) fn next_end(&self, ttl: u64) -> Option<u64> {
        let open = self.entries.iter().filter(|entry| {
            let state = entry.decided.state;
            matches!(state, SlotState::Open { .. })
        });
        open.map(|entry| entry.heard.saturating_add(ttl)).min()
    }

    /// A time in which the controller itself did not run is nobody's silence.
    pub(crate) fn excuse(&mut self, now: u64, absent: u64) {
        for entry in &mut self.entries {
            entry.heard = entry.heard.saturating_add(absent).min(now);
        }
    }

    /// Frees the slots whose session is ended and of which `is_clear` says, by slot and version of
    /// its row, that no log holds an entry.
    pub(crate) fn free(&mut self, is_clear: impl Fn(u16, u64) -> bool) {
        for (slot, entry) in (0u16..).zip(&mut self.entries) {
            let ended = matches!(entry.decided.state, SlotState::Ended { .. });
            if ended && entry.is_settled() && is_clear(slot, entry.row) {
                entry.decided.state = SlotState::Free;
            }
        }
    }

    /// The next book to store, if something changed and none is being stored.
    pub(crate) fn poll_book(&mut self) -> Option<SlotBook> {
        if self.storing.is_some() || self.entries.iter().all(Entry::is_settled) {
            return None;
        }
        self.version = self.version.saturating_add(1);
        let slots = self.entries.iter().map(|entry| entry.decided);
        let book = SlotBook {
            version: self.version,
            slots: slots.collect(),
        };
        self.storing = Some(book.clone());
        Some(book)
    }

    /// Takes that `book` is stored, and gives the slots that changed with what they were; `None` if
    /// it is not the one that was to be stored.
    pub(crate) fn stored(&mut self, book: &SlotBook) -> Option<Vec<(u16, Slot)>> {
        if self.storing.as_ref() != Some(book) {
            return None;
        }
        self.storing = None;
        let mut changed = Vec::new();
        for ((slot, entry), stored) in (0u16..).zip(&mut self.entries).zip(&book.slots) {
            if entry.stored != *stored {
                changed.push((slot, entry.stored));
                entry.stored = *stored;
            }
        }
        Some(changed)
    }
}

impl Entry {
    /// The last incarnation has no next.
    fn is_free(&self) -> bool {
        self.decided.state == SlotState::Free
            && self.is_settled()
            && self.decided.incarnation < u16::MAX
    }

    fn is_open(&self, incarnation: u16) -> bool {
        matches!(self.decided.state, SlotState::Open { .. })
            && self.decided.incarnation == incarnation
    }

    fn end(&mut self) {
        if let SlotState::Open { lanes, .. } = self.decided.state {
            self.decided.state = SlotState::Ended { lanes };
        }
    }
}

#[cfg(test)]
mod tests;
