//! Counts of the other switches of a program, which are moved to the first, whose state the control
//! plane reads and writes: only those that a request is about, since a table or an array may be
//! large.

use crate::entity::table::identity;
use crate::entity::{self, Context};
use crate::pipeline::{Pipeline, TableIndex};
use crate::proto::v1::{self, entity::Entity};
use stateplane_runtime::{Engine, TargetState};
use stateplane_switch::{Fellows, Switch};
use std::ops::Range;

/// A program's pipeline, and the switches that run it.
pub(crate) struct Gatherer<'a, E: Engine> {
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) switch: &'a mut Switch<E>,
    pub(crate) fellows: &'a mut dyn Fellows<E>,
}

/// Moves the counts that an update may read or set.
pub(crate) fn of_update<E: Engine>(context: &mut Context<'_, E>, entity: &Entity) {
    let mut gatherer = Gatherer {
        pipeline: context.pipeline,
        switch: context.switch,
        fellows: context.fellows,
    };
    gatherer.entity(entity);
}

impl<E: Engine> Gatherer<'_, E> {
    fn each(&mut self, mut work: impl FnMut(&mut TargetState, &mut TargetState)) {
        let own = self.switch.engine_mut().state_mut();
        self.fellows
            .each(&mut |fellow| work(own, fellow.engine_mut().state_mut()));
    }

    /// Moves the counts of what `entity` names, other than all entries of a table.
    pub(crate) fn entity(&mut self, entity: &Entity) {
        match entity {
            Entity::TableEntry(entry) => self.entry(entry),
            Entity::DirectCounterEntry(v1::DirectCounterEntry {
                table_entry: Some(entry),
                ..
            }) => self.entry(entry),
            Entity::CounterEntry(entry) => match &entry.index {
                None => self.counter(entry.counter_id, 0..u64::MAX),
                Some(index) => {
                    if let Ok(index) = entity::index(index) {
                        self.counter(entry.counter_id, index..index.saturating_add(1));
                    }
                }
            },
            _ => {}
        }
    }

    fn entry(&mut self, entry: &v1::TableEntry) {
        let pipeline = self.pipeline;
        if entry.table_id == 0 {
            for table in pipeline.tables.values() {
                self.default_entry(table);
            }
            return;
        }
        let Ok(table) = pipeline.table(entry.table_id) else {
            return;
        };
        if entry.is_default_action {
            self.default_entry(table);
        } else if let Ok((keys, priority)) = identity(table, entry) {
            self.each(|own, fellow| own.gather_entry(fellow, table.at, &keys, priority));
        }
    }

    fn default_entry(&mut self, table: &TableIndex) {
        self.each(|own, fellow| own.gather_default(fellow, table.at));
    }

    /// Moves the counts of a table's entries at `positions`.
    pub(crate) fn entries(&mut self, table: u32, positions: Range<u32>) {
        if let Ok(table) = self.pipeline.table(table) {
            self.each(|own, fellow| own.gather_entries(fellow, table.at, positions.clone()));
        }
    }

    /// Moves the counts of a counter's elements.
    pub(crate) fn counter(&mut self, id: u32, indices: Range<u64>) {
        if let Some(name) = self.pipeline.counters.get(&id) {
            self.each(|own, fellow| own.gather_counter(fellow, name, indices.clone()));
        }
    }
}

/// Moves all counts, before another program takes over what is kept of them.
pub(crate) fn all<E: Engine>(switch: &mut Switch<E>, fellows: &mut dyn Fellows<E>) {
    let own = switch.engine_mut().state_mut();
    fellows.each(&mut |fellow| own.gather(fellow.engine_mut().state_mut()));
}
