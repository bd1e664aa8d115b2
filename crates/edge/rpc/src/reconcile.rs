//! State that is kept when a pipeline is replaced.

use crate::entity::{Context, Shadow, counter, group, member, meter, register, table, value_set};
use crate::pipeline::Pipeline;
use crate::proto::v1::{self, entity::Entity, update::Type};
use crate::write::apply;
use stateplane_runtime::Engine;
use stateplane_switch::Switch;

/// Updates that make what was kept again, in an order in which each can succeed.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    updates: Vec<v1::Update>,
}

fn update(kind: Type, entity: Entity) -> v1::Update {
    v1::Update {
        r#type: kind.into(),
        entity: Some(v1::Entity {
            entity: Some(entity),
        }),
    }
}

/// All that the control plane put there, and what packets counted and stored.
pub(crate) fn keep<E: Engine>(
    pipeline: &Pipeline,
    shadow: &Shadow,
    switch: &Switch<E>,
    now: u64,
) -> Kept {
    let state = switch.engine().state();
    let mut updates = Vec::new();
    let mut add = |kind, entity| updates.push(update(kind, entity));
    for profile in pipeline.profiles.keys() {
        for member in member::messages(pipeline, state, *profile, 0).unwrap_or_default() {
            add(Type::Insert, Entity::ActionProfileMember(member));
        }
        for group in group::messages(shadow, pipeline, *profile, 0).unwrap_or_default() {
            add(Type::Insert, Entity::ActionProfileGroup(group));
        }
    }
    for index in pipeline.tables.values() {
        let fields = table::Fields {
            counter: index.has_counter,
            meter: index.has_meter,
            meter_counts: index.has_meter,
            idle: false,
        };
        for listed in state.tables()[index.at.index()].entries() {
            if listed.is_const {
                continue;
            }
            let entry = table::message(pipeline, state, shadow, index, &listed, fields, now);
            add(Type::Insert, Entity::TableEntry(entry));
        }
        let no_fields = table::Fields::default();
        let default = table::default::message(pipeline, state, shadow, index, no_fields);
        add(Type::Modify, Entity::TableEntry(default));
        // Apart from the action, which may be constant.
        let mut default = table::default::message(pipeline, state, shadow, index, fields);
        default.action = None;
        let (data, config) = (default.counter_data.take(), default.meter_config.take());
        let counter_data = default.meter_counter_data.take();
        let table_entry = Some(default);
        if index.has_counter {
            let table_entry = table_entry.clone();
            let counter = v1::DirectCounterEntry { table_entry, data };
            add(Type::Modify, Entity::DirectCounterEntry(counter));
        }
        if index.has_meter {
            let meter = v1::DirectMeterEntry {
                table_entry,
                config,
                counter_data,
            };
            add(Type::Modify, Entity::DirectMeterEntry(meter));
        }
    }
    for (id, set) in &pipeline.value_sets {
        if let Ok(entry) = value_set::message(state, *id, set) {
            add(Type::Modify, Entity::ValueSetEntry(entry));
        }
    }
    for (id, index) in &pipeline.registers {
        let size = state.registers()[index.at.index()].size();
        let entries = register::messages(pipeline, state, *id, index, 0..size);
        for entry in entries.unwrap_or_default() {
            add(Type::Modify, Entity::RegisterEntry(entry));
        }
    }
    for (id, name) in &pipeline.counters {
        let size = state.counter(name).map_or(0, |it| it.counts().len() as u64);
        for entry in counter::messages(state, *id, name, 0..size).unwrap_or_default() {
            add(Type::Modify, Entity::CounterEntry(entry));
        }
    }
    for (id, name) in &pipeline.meters {
        let size = state.meter(name).map_or(0, stateplane_runtime::Meter::size);
        for entry in meter::messages(state, *id, name, 0..size, true).unwrap_or_default() {
            add(Type::Modify, Entity::MeterEntry(entry));
        }
    }
    Kept { updates }
}

impl Kept {
    /// Makes what was kept again, as far as it fits the new pipeline.
    pub(crate) fn put_back<E: Engine>(self, context: &mut Context<'_, E>) {
        for update in self.updates {
            // An entry that exists already, or that nothing fits any more, is left.
            let _ = apply(context, &update);
        }
    }
}
