//! Engines that run one program on several cores.
//!
//! Registers and meters are shared. Tables, action profiles and value sets are copies, so that no
//! packet waits for another core's: the control plane changes those of one engine, the first, while
//! no packet is in any of them, and the others [follow](TargetState::follow). Counts, and
//! when entries were hit, stay with each engine until the first
//! [gathers](TargetState::gather) them.

use crate::counter::Counter;
use crate::error::StateError;
use crate::meter::Meter;
use crate::profile::Profile;
use crate::register::Register;
use crate::state::{Events, TargetState};
use crate::table::{KeyMatch, Table};
use stateplane_cells::KeySlice;
use stateplane_ir::TableId;
use std::ops::Range;

impl TargetState {
    /// The state of another engine for the same program, which works on other packets at the
    /// same time: registers, meters and custom CRCs are shared, tables, action profiles and value
    /// sets are copies, counters and events begin at zero and add to this one's. `seed` determines
    /// its pseudo-random numbers.
    pub fn fellow(&mut self, seed: u64) -> TargetState {
        let tables = self.tables.iter_mut().map(Table::fellow).collect();
        TargetState {
            counters: self.counters.iter().map(Counter::fellow).collect(),
            random: crate::hash::Random::new(seed),
            ..self.beside(tables)
        }
    }

    /// A state with these tables that shares all that is shared with this one, and copies the rest. It
    /// counts nothing.
    fn beside(&self, tables: Vec<Table>) -> TargetState {
        TargetState {
            tables,
            registers: self.registers.iter().map(Register::share).collect(),
            meters: self.meters.iter().map(Meter::share).collect(),
            value_sets: self.value_sets.clone(),
            profiles: self.profiles.clone(),
            events: Events {
                parser_errors: vec![0; self.events.parser_errors.len()],
                ..Events::default()
            },
            custom_crc: self.custom_crc,
            locks: self.locks.share(),
            ..TargetState::default()
        }
    }

    /// The state of an engine that asks a slice of the same program for keys
    /// ([`key_slice`](stateplane_cells::key_slice)): registers and meters are shared, tables that
    /// the slice applies, action profiles and value sets are copies.
    ///
    /// # Errors
    ///
    /// Those of [`TargetState::new`].
    pub fn of_slice(&mut self, slice: &KeySlice) -> Result<TargetState, StateError> {
        let mut tables = Vec::with_capacity(self.tables.len());
        for (id, table) in self.tables.iter_mut().enumerate() {
            tables.push(if slice.applied.contains(&TableId(id as u32)) {
                table.fellow()
            } else {
                Table::new(&slice.program, &slice.program.tables[id])?
            });
        }
        Ok(self.beside(tables))
    }

    /// As [`follow`](Self::follow), for a state made by [`of_slice`](Self::of_slice).
    pub fn follow_for_slice(&mut self, whole: &TargetState, slice: &KeySlice) {
        for id in &slice.applied {
            self.tables[id.index()].follow(&whole.tables[id.index()]);
        }
        self.follow_others(whole);
    }

    /// Makes all that is not shared, and that a control plane changes, as in `first`, whose fellow
    /// this state is: entries, default actions, action profiles, value sets, custom CRCs.
    pub fn follow(&mut self, first: &TargetState) {
        for (own, first) in self.tables.iter_mut().zip(&first.tables) {
            own.follow(first);
        }
        self.follow_others(first);
    }

    /// Follows what is no table.
    fn follow_others(&mut self, first: &TargetState) {
        for (own, first) in self.profiles.iter_mut().zip(&first.profiles) {
            own.follow(first);
        }
        for (own, first) in self.value_sets.iter_mut().zip(&first.value_sets) {
            if own != first {
                own.clone_from(first);
            }
        }
        self.custom_crc = first.custom_crc;
    }

    /// Moves all that `fellow` has counted, and its digests, to this state.
    pub fn gather(&mut self, fellow: &mut TargetState) {
        for (own, theirs) in self.counters.iter_mut().zip(&mut fellow.counters) {
            own.gather(theirs, 0..u64::MAX);
        }
        for (own, theirs) in self.tables.iter_mut().zip(&mut fellow.tables) {
            own.gather(theirs, 0..u32::MAX);
            own.gather_default(theirs);
        }
        self.gather_digests(fellow);
    }

    /// Moves the digests that `fellow` has to this state, as far as there is room.
    pub fn gather_digests(&mut self, fellow: &mut TargetState) {
        while let Some(digest) = fellow.digests.poll() {
            self.digests.push_with(|| digest);
        }
    }

    /// Takes over when packets at `fellow` last hit entries that age, with what they counted there.
    pub fn gather_ages(&mut self, fellow: &mut TargetState) {
        for (own, theirs) in self.tables.iter_mut().zip(&mut fellow.tables) {
            if own.is_aging() {
                own.gather(theirs, 0..u32::MAX);
            }
        }
    }

    /// Moves what `fellow` has counted at elements of the counter `name` to this state.
    pub fn gather_counter(&mut self, fellow: &mut TargetState, name: &str, indices: Range<u64>) {
        if let (Ok(own), Ok(theirs)) = (self.counter_mut(name), fellow.counter_mut(name)) {
            own.gather(theirs, indices);
        }
    }

    /// Moves what `fellow` has counted at the entries of a table at `positions` to this state.
    pub fn gather_entries(
        &mut self,
        fellow: &mut TargetState,
        table: TableId,
        positions: Range<u32>,
    ) {
        self.table_at(table)
            .gather(fellow.table_at(table), positions);
    }

    /// Moves what `fellow` has counted at one entry of a table to this state, if there is such an
    /// entry.
    pub fn gather_entry(
        &mut self,
        fellow: &mut TargetState,
        table: TableId,
        keys: &[KeyMatch],
        priority: u32,
    ) {
        let own = self.table_at(table);
        if let Ok(position) = own.existing(keys, priority) {
            own.gather(fellow.table_at(table), position..position + 1);
        }
    }

    /// Moves what `fellow` has counted at the default entry of a table to this state.
    pub fn gather_default(&mut self, fellow: &mut TargetState, table: TableId) {
        self.table_at(table).gather_default(fellow.table_at(table));
    }
}

impl Profile {
    /// Makes members and groups those of `first`, whose fellow's the profile is.
    fn follow(&mut self, first: &Profile) {
        self.follow_members(first);
        self.follow_groups(first);
    }
}

#[cfg(test)]
mod tests;
