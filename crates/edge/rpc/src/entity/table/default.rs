//! Default entries of tables (specification, "Default Entry").

use super::{Fields, check_resources, metadata, put};
use crate::entity::wanted::check_listed;
use crate::entity::{Context, Shadow, action, check_metadata, counter, meter, only_modify};
use crate::pipeline::{Pipeline, TableIndex};
use crate::proto::v1::{self, table_action, update::Type};
use crate::refusal::Refusal;
use stateplane_runtime::{Count, Engine, Invocation, MeterConfig, Table, TargetState};

/// Writes a default entry.
pub(super) fn write<E: Engine>(
    context: &mut Context<'_, E>,
    table: &TableIndex,
    kind: Type,
    entry: &v1::TableEntry,
) -> Result<(), Refusal> {
    only_modify(kind, "default entries")?;
    check_metadata(&entry.metadata)?;
    check_named(entry)?;
    if entry.idle_timeout_ns != 0 {
        return Err(Refusal::invalid("default entries do not age"));
    }
    check_resources(table, entry)?;
    let before = before(context, entry);
    let done = set_default(context, table, entry);
    if let (Err(_), Some(before)) = (&done, before) {
        // It was so before, so it fits.
        let _ = before.restore(context);
    }
    done
}

/// Checks that a default entry is named by its table alone.
pub(crate) fn check_named(entry: &v1::TableEntry) -> Result<(), Refusal> {
    if entry.r#match.is_empty() && entry.priority == 0 {
        return Ok(());
    }
    Err(Refusal::invalid(
        "a default entry has neither matches nor a priority",
    ))
}

fn set_default<E: Engine>(
    context: &mut Context<'_, E>,
    table: &TableIndex,
    entry: &v1::TableEntry,
) -> Result<(), Refusal> {
    let now = context.now;
    let target = context.switch.engine_mut().state_mut().table_at(table.at);
    let Some(action) = entry.action.as_ref().and_then(|it| it.r#type.as_ref()) else {
        target.reset_default()?;
        target.reset_default_resources();
        default_resources(target, entry, now)?;
        context.shadow.defaults.remove(&table.id);
        return Ok(());
    };
    let table_action::Type::Action(given) = action else {
        return Err(Refusal::invalid("a default entry has an action of its own"));
    };
    check_listed(table, given.action_id)?;
    let action = action::read(context.pipeline, given)?;
    target.set_default(&action.action, &action.data)?;
    default_resources(target, entry, now)?;
    context.shadow.defaults.insert(table.id, metadata(entry));
    Ok(())
}

fn default_resources(target: &mut Table, entry: &v1::TableEntry, now: u64) -> Result<(), Refusal> {
    if let Some(data) = &entry.counter_data {
        target.set_default_count(counter::read(data)?)?;
    }
    if let Some(config) = &entry.meter_config {
        target.set_default_meter(meter::read(config)?, now)?;
    }
    if let Some(counts) = &entry.meter_counter_data {
        target.set_default_meter_counts(meter::read_counts(counts)?)?;
    }
    Ok(())
}

/// The message of a default entry.
#[expect(deprecated, reason = "clients of P4Runtime 1.0 use it")]
pub(crate) fn message(
    pipeline: &Pipeline,
    state: &TargetState,
    shadow: &Shadow,
    table: &TableIndex,
    fields: Fields,
) -> v1::TableEntry {
    let target = &state.tables()[table.at.index()];
    let (action, data) = target.default_action();
    let action = action::named(pipeline, &Invocation { action, data });
    let metadata = shadow.defaults.get(&table.id).cloned().unwrap_or_default();
    v1::TableEntry {
        table_id: table.id,
        action: action.map(|action| v1::TableAction {
            r#type: Some(table_action::Type::Action(action)),
        }),
        is_default_action: true,
        controller_metadata: metadata.0,
        metadata: metadata.1,
        counter_data: (fields.counter && table.has_counter)
            .then(|| counter::message(target.default_count())),
        meter_config: (fields.meter && table.has_meter)
            .then(|| target.default_meter())
            .flatten()
            .map(|config| meter::message(&config)),
        meter_counter_data: (fields.meter_counts && table.has_meter)
            .then(|| meter::counts_message(target.default_meter_counts())),
        ..v1::TableEntry::default()
    }
}

/// Default entry before an update.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    table: u32,
    action: Invocation,
    count: Count,
    meter: Option<MeterConfig>,
    meter_counts: [Count; 3],
    metadata: Option<(u64, Vec<u8>)>,
}

/// The default entry of a table as it is.
pub(crate) fn before<E: Engine>(
    context: &Context<'_, E>,
    entry: &v1::TableEntry,
) -> Option<Before> {
    let table = context.pipeline.table(entry.table_id).ok()?;
    let target = &context.switch.engine().state().tables()[table.at.index()];
    let (action, data) = target.default_action();
    Some(Before {
        table: table.id,
        action: Invocation { action, data },
        count: target.default_count(),
        meter: target.default_meter(),
        meter_counts: target.default_meter_counts(),
        metadata: context.shadow.defaults.get(&table.id).cloned(),
    })
}

impl Before {
    /// Puts the default entry back.
    pub(crate) fn restore<E: Engine>(self, context: &mut Context<'_, E>) -> Result<(), Refusal> {
        let table = context.pipeline.table(self.table)?;
        let target = context.switch.engine_mut().state_mut().table_at(table.at);
        if table.has_counter {
            target.set_default_count(self.count)?;
        }
        if table.has_meter {
            target.set_default_meter(self.meter, context.now)?;
            target.set_default_meter_counts(self.meter_counts)?;
        }
        let (action, data) = target.default_action();
        if (&action, &data) != (&self.action.action, &self.action.data) {
            target.set_default(&self.action.action, &self.action.data)?;
        }
        put(&mut context.shadow.defaults, &table.id, self.metadata);
        Ok(())
    }
}
