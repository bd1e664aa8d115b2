//! Tables of engines that run one program: the first one's is the control plane's, and those of its
//! fellows follow it, entry by entry at the same positions.

use super::{Changes, Stored, Table};
use crate::counter::Count;
use std::ops::Range;

impl Stored {
    /// The entry in a fellow's table, where nothing has counted.
    fn fellow(&self) -> Stored {
        Stored {
            keys: self.keys.clone(),
            low: self.low.clone(),
            high: self.high.clone(),
            call: self.call.clone(),
            target: self.target.clone(),
            count: Count::default(),
            meter: self.meter.handle(),
            idle: self.idle.clone(),
            ..*self
        }
    }
}

impl Table {
    /// The table of another engine: the same entries with the same direct meters, and nothing
    /// counted.
    pub(crate) fn fellow(&mut self) -> Table {
        self.shares_meters = self.metered_bytes.is_some();
        if self.shares_meters {
            self.default_meter.share();
            for stored in self.entries.iter_mut().flatten() {
                stored.meter.share();
            }
        }
        let entries = self.entries.iter();
        Table {
            name: self.name.clone(),
            keys: self.keys.clone(),
            actions: self.actions.clone(),
            default: self.default.clone(),
            initial_default: self.initial_default.clone(),
            default_count: Count::default(),
            default_meter: self.default_meter.handle(),
            meter_waits: 0,
            hits: Count::default(),
            references: self.references.clone(),
            entries: entries
                .map(|stored| stored.as_ref().map(Stored::fellow))
                .collect(),
            free: self.free.clone(),
            index: self.index.clone(),
            log: self.log.clone(),
            ..*self
        }
    }

    /// Makes the entries and the default action those of `first`, whose fellow the table is.
    /// Entries that stay keep their counts.
    pub(crate) fn follow(&mut self, first: &Table) {
        let version = first.log.version();
        if self.log.version() == version {
            return;
        }
        self.entries.resize_with(first.entries.len(), || None);
        match first.log.since(self.log.version()) {
            Changes::Some(positions) => {
                self.follow_at(first, positions.clone().copied());
                for position in positions {
                    self.log.note(*position);
                }
            }
            Changes::Many => {
                self.follow_at(first, 0..first.positions());
                self.log.skip_to(version);
            }
        }
        self.default.clone_from(&first.default);
        self.free.clone_from(&first.free);
        self.next_serial = first.next_serial;
    }

    fn follow_at(&mut self, first: &Table, positions: impl Iterator<Item = u32> + Clone) {
        let at = |table: &Table, position: u32| {
            let stored = table.entries.get(position as usize)?.as_ref()?;
            Some(stored.serial)
        };
        // Keys may have gone from one position to another: all that are gone are taken out first.
        for position in positions.clone() {
            if at(self, position) != at(first, position) {
                self.take(position);
            }
        }
        for position in positions {
            let stored = first.entries.get(position as usize);
            let Some(stored) = stored.and_then(Option::as_ref) else {
                continue;
            };
            match self.entries.get_mut(position as usize) {
                Some(Some(own)) => {
                    self.references.remove(own.target.as_ref());
                    self.references.add(stored.target.as_ref());
                    own.call.clone_from(&stored.call);
                    own.target.clone_from(&stored.target);
                    self.aging -= u64::from(own.idle.is_some());
                    self.aging += u64::from(stored.idle.is_some());
                    own.idle.clone_from(&stored.idle);
                }
                _ => self.put(position, stored.fellow()),
            }
        }
    }

    /// Moves what `fellow` has counted at the entries at `positions` to this table, and takes over
    /// when packets hit them last there.
    pub(crate) fn gather(&mut self, fellow: &mut Table, positions: Range<u32>) {
        let size = self.entries.len().min(fellow.entries.len());
        let range = size.min(positions.start as usize)..size.min(positions.end as usize);
        let theirs = fellow.entries[range.clone()].iter_mut();
        for (own, theirs) in self.entries[range].iter_mut().zip(theirs) {
            let (Some(own), Some(theirs)) = (own, theirs) else {
                continue;
            };
            if own.serial != theirs.serial {
                continue;
            }
            own.count += std::mem::take(&mut theirs.count);
            if let (Some(own), Some(theirs)) = (&mut own.idle, &theirs.idle)
                && theirs.last_hit > own.last_hit
            {
                own.last_hit = theirs.last_hit;
                own.reported = None;
            }
        }
    }

    /// Moves what `fellow` has counted at the default entry to this table.
    pub(crate) fn gather_default(&mut self, fellow: &mut Table) {
        self.default_count += std::mem::take(&mut fellow.default_count);
    }

    /// Direct meters at which another engine was when this one came to them.
    pub(crate) fn meter_waits(&self) -> u64 {
        self.meter_waits
    }
}
