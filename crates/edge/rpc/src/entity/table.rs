//! Table entries (specification, "TableEntry").

pub(crate) mod default;

use super::action_set::ActionSet;
use super::wanted::{Target, Wanted};
use super::{Context, EntryKey, Shadow, action, counter, keys, meter};
use crate::pipeline::{Pipeline, TableIndex};
use crate::proto::v1::{self, table_action, update::Type};
use crate::refusal::Refusal;
use stateplane_runtime::{
    Count, Engine, Entry, Invocation, KeyMatch, Listed, MeterConfig, Runs, TargetState,
};
use tonic::Code;

/// Keys and priority of an entry.
pub(crate) fn identity(
    table: &TableIndex,
    entry: &v1::TableEntry,
) -> Result<(Vec<KeyMatch>, u32), Refusal> {
    let keys = keys::read(
        &table.fields,
        &entry.r#match,
        &format!("table `{}`", table.name),
    )?;
    let priority = u32::try_from(entry.priority)
        .map_err(|_| Refusal::invalid(format!("the priority {} is negative", entry.priority)))?;
    Ok((keys, priority))
}

fn entry_key(table: &TableIndex, keys: &[KeyMatch], priority: u32) -> EntryKey {
    let matches = keys::write(&table.fields, keys);
    (table.id, keys::canonical(&matches), priority)
}

/// Writes an entry.
pub(crate) fn write<E: Engine>(
    context: &mut Context<'_, E>,
    kind: Type,
    entry: &v1::TableEntry,
) -> Result<(), Refusal> {
    let table = context.pipeline.table(entry.table_id)?;
    check_read_only(kind, entry)?;
    if entry.is_default_action {
        return default::write(context, table, kind, entry);
    }
    let (keys, priority) = identity(table, entry)?;
    check_priority(table, priority)?;
    // Of an entry to be deleted only the match counts.
    let wanted = match kind {
        Type::Delete => Wanted::Nothing,
        _ => {
            super::check_metadata(&entry.metadata)?;
            check_resources(table, entry)?;
            check_idle_timeout(table, entry)?;
            Wanted::read(context.pipeline, table, &keys, entry.action.as_ref())?
        }
    };
    let now = context.now;
    let key = entry_key(table, &keys, priority);
    let before = match kind {
        Type::Modify => before(context, entry),
        _ => None,
    };
    let state = context.switch.engine_mut().state_mut();
    let down = &context.shadow.down;
    match kind {
        Type::Insert => {
            if matches!(wanted, Wanted::Nothing) {
                return Err(Refusal::invalid("an entry that is inserted has an action"));
            }
            wanted.give(state, table, (&keys, priority), Target::New, down)?;
            let done = resources(state, table, &keys, priority, entry, now);
            if let Err(refusal) = done {
                // The entry is there since this call: it can be deleted.
                let _ = state.table_at(table.at).delete(&keys, priority);
                return Err(refusal);
            }
        }
        Type::Modify => {
            state.table_at(table.at).get(&keys, priority)?;
            // Without an action only what belongs to the entry is changed.
            wanted.give(state, table, (&keys, priority), Target::Present, down)?;
            let done = resources(state, table, &keys, priority, entry, now);
            if let (Err(refusal), Some(before)) = (&done, before) {
                // The entry was in the table before, so it fits.
                let _ = before.restore(context);
                return Err(refusal.clone());
            }
            done?;
        }
        Type::Delete => {
            state.table_at(table.at).delete(&keys, priority)?;
            context.shadow.entries.remove(&key);
            context.shadow.sets.remove(&key);
            return Ok(());
        }
        Type::Unspecified => return Err(unspecified()),
    }
    remember(context.shadow, key, entry, &wanted);
    Ok(())
}

/// Refusal of an update without a type.
pub(crate) fn unspecified() -> Refusal {
    Refusal::invalid("the update has no type: INSERT, MODIFY or DELETE")
}

/// Checks that fields which the switch alone sets are not given.
fn check_read_only(kind: Type, entry: &v1::TableEntry) -> Result<(), Refusal> {
    if entry.is_const {
        return Err(Refusal::invalid(
            "is_const is read only: entries of clients can be changed",
        ));
    }
    if kind != Type::Delete && entry.time_since_last_hit.is_some() {
        return Err(Refusal::invalid("time_since_last_hit is read only"));
    }
    Ok(())
}

fn check_priority(table: &TableIndex, priority: u32) -> Result<(), Refusal> {
    use crate::proto::config::match_field::MatchType;
    let ordered = table.fields.iter().any(|field| {
        matches!(
            field.kind,
            MatchType::Ternary | MatchType::Range | MatchType::Optional
        )
    });
    match (ordered, priority) {
        (true, 0) => Err(Refusal::invalid(format!(
            "an entry of table `{}` needs a priority of 1 or more: it has ternary, range or \
             optional fields",
            table.name
        ))),
        (false, 1..) => Err(Refusal::invalid(format!(
            "an entry of table `{}` has no priority: leave it 0",
            table.name
        ))),
        _ => Ok(()),
    }
}

/// Checks that the objects given with an entry exist for its table.
fn check_resources(table: &TableIndex, entry: &v1::TableEntry) -> Result<(), Refusal> {
    let missing = |what: &str| {
        Err(Refusal::invalid(format!(
            "table `{}` has no direct {what}",
            table.name
        )))
    };
    if entry.counter_data.is_some() && !table.has_counter {
        return missing("counter");
    }
    if let Some(config) = &entry.meter_config {
        if !table.has_meter {
            return missing("meter");
        }
        meter::read(config)?;
    }
    if let Some(counts) = &entry.meter_counter_data {
        if !table.has_meter {
            return missing("meter");
        }
        meter::read_counts(counts)?;
    }
    Ok(())
}

fn check_idle_timeout(table: &TableIndex, entry: &v1::TableEntry) -> Result<(), Refusal> {
    if entry.idle_timeout_ns < 0 {
        return Err(Refusal::invalid("the idle timeout is negative"));
    }
    if entry.idle_timeout_ns > 0 && !table.ages {
        return Err(Refusal::invalid(format!(
            "entries of table `{}` do not age: support_timeout is not set in the program",
            table.name
        )));
    }
    Ok(())
}

fn resources(
    state: &mut TargetState,
    table: &TableIndex,
    keys: &[KeyMatch],
    priority: u32,
    entry: &v1::TableEntry,
    now: u64,
) -> Result<(), Refusal> {
    let target = state.table_at(table.at);
    if let Some(data) = &entry.counter_data {
        target.set_count(keys, priority, counter::read(data)?)?;
    }
    if let Some(config) = &entry.meter_config {
        target.set_meter(keys, priority, meter::read(config)?, now)?;
    }
    if let Some(counts) = &entry.meter_counter_data {
        target.set_meter_counts(keys, priority, meter::read_counts(counts)?)?;
    }
    if table.ages {
        let timeout = timeout_us(entry.idle_timeout_ns);
        target.set_idle_timeout(keys, priority, timeout, now)?;
    }
    Ok(())
}

/// Rounded up, so that no positive timeout becomes none.
fn timeout_us(ns: i64) -> Option<u64> {
    u64::try_from(ns)
        .ok()
        .filter(|ns| *ns > 0)
        .map(|ns| ns.div_ceil(1000))
}

fn remember(shadow: &mut Shadow, key: EntryKey, entry: &v1::TableEntry, wanted: &Wanted) {
    match wanted {
        Wanted::Set(set) => {
            shadow.sets.insert(key.clone(), set.clone());
        }
        Wanted::Nothing => {}
        _ => {
            shadow.sets.remove(&key);
        }
    }
    let metadata = metadata(entry);
    if metadata == Default::default() {
        shadow.entries.remove(&key)
    } else {
        shadow.entries.insert(key, metadata)
    };
}

#[expect(deprecated, reason = "clients of P4Runtime 1.0 use it")]
fn metadata(entry: &v1::TableEntry) -> (u64, Vec<u8>) {
    (entry.controller_metadata, entry.metadata.clone())
}

/// Fields of an entry that a reader requests besides its action.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) counter: bool,
    pub(crate) meter: bool,
    pub(crate) meter_counts: bool,
    pub(crate) idle: bool,
}

impl Fields {
    /// Fields that a request asks for.
    pub(crate) fn of(request: &v1::TableEntry) -> Fields {
        Fields {
            counter: request.counter_data.is_some(),
            meter: request.meter_config.is_some(),
            meter_counts: request.meter_counter_data.is_some(),
            idle: request.time_since_last_hit.is_some(),
        }
    }
}

/// The message of an entry.
#[expect(deprecated, reason = "clients of P4Runtime 1.0 use it")]
pub(crate) fn message(
    pipeline: &Pipeline,
    state: &TargetState,
    shadow: &Shadow,
    table: &TableIndex,
    listed: &Listed,
    fields: Fields,
    now: u64,
) -> v1::TableEntry {
    let Entry { keys, priority, .. } = &listed.entry;
    let key = entry_key(table, keys, *priority);
    let target = &state.tables()[table.at.index()];
    let (controller_metadata, metadata) = shadow.entries.get(&key).cloned().unwrap_or_default();
    let meter = if fields.meter && table.has_meter {
        target.meter(keys, *priority).ok().flatten()
    } else {
        None
    };
    let meter_counts = if fields.meter_counts && table.has_meter {
        target.meter_counts(keys, *priority).ok()
    } else {
        None
    };
    let idle = if fields.idle {
        target.idle_for(keys, *priority, now).ok().flatten()
    } else {
        None
    };
    v1::TableEntry {
        table_id: table.id,
        r#match: keys::write(&table.fields, keys),
        action: action_message(pipeline, shadow, &key, listed),
        priority: i32::try_from(*priority).unwrap_or(i32::MAX),
        controller_metadata,
        metadata,
        meter_config: meter.map(|config| meter::message(&config)),
        meter_counter_data: meter_counts.map(meter::counts_message),
        counter_data: (fields.counter && table.has_counter).then(|| counter::message(listed.count)),
        idle_timeout_ns: listed.idle_timeout.map_or(0, nanoseconds),
        time_since_last_hit: idle.map(|elapsed| v1::table_entry::IdleTimeout {
            elapsed_ns: nanoseconds(elapsed),
        }),
        is_const: listed.is_const,
        ..v1::TableEntry::default()
    }
}

/// µs as nanoseconds.
pub(crate) fn nanoseconds(us: u64) -> i64 {
    i64::try_from(us.saturating_mul(1000)).unwrap_or(i64::MAX)
}

fn action_message(
    pipeline: &Pipeline,
    shadow: &Shadow,
    key: &EntryKey,
    listed: &Listed,
) -> Option<v1::TableAction> {
    let kind = match &listed.runs {
        Some(Runs::Member(member)) => table_action::Type::ActionProfileMemberId(*member),
        Some(Runs::Group(group)) => table_action::Type::ActionProfileGroupId(*group),
        Some(Runs::Set(actions)) => {
            let set = shadow.sets.get(key).map(ActionSet::message);
            let set = set.unwrap_or_else(|| v1::ActionProfileActionSet {
                action_profile_actions: actions
                    .iter()
                    .map(|(action, weight)| v1::ActionProfileAction {
                        action: action::named(pipeline, action),
                        weight: i32::try_from(*weight).unwrap_or(i32::MAX),
                        watch_kind: None,
                    })
                    .collect(),
                ..v1::ActionProfileActionSet::default()
            });
            table_action::Type::ActionProfileActionSet(set)
        }
        None => {
            let action = Invocation {
                action: listed.entry.action.clone(),
                data: listed.entry.data.clone(),
            };
            table_action::Type::Action(action::named(pipeline, &action)?)
        }
    };
    Some(v1::TableAction { r#type: Some(kind) })
}

/// Entry before an update, to restore it.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    table: u32,
    keys: Vec<KeyMatch>,
    priority: u32,
    listed: Option<Listed>,
    meter: Option<MeterConfig>,
    meter_counts: [Count; 3],
    metadata: Option<(u64, Vec<u8>)>,
    set: Option<ActionSet>,
}

/// The entry that an update names, as it is; none if it names nothing that is there or
/// could be.
pub(crate) fn before<E: Engine>(
    context: &Context<'_, E>,
    entry: &v1::TableEntry,
) -> Option<Before> {
    let table = context.pipeline.table(entry.table_id).ok()?;
    let (keys, priority) = identity(table, entry).ok()?;
    let target = &context.switch.engine().state().tables()[table.at.index()];
    let key = entry_key(table, &keys, priority);
    Some(Before {
        table: table.id,
        listed: target.get(&keys, priority).ok(),
        meter: target.meter(&keys, priority).ok().flatten(),
        meter_counts: target.meter_counts(&keys, priority).unwrap_or_default(),
        metadata: context.shadow.entries.get(&key).cloned(),
        set: context.shadow.sets.get(&key).cloned(),
        keys,
        priority,
    })
}

impl Before {
    /// Puts the entry back.
    pub(crate) fn restore<E: Engine>(self, context: &mut Context<'_, E>) -> Result<(), Refusal> {
        let table = context.pipeline.table(self.table)?;
        let key = entry_key(table, &self.keys, self.priority);
        let state = context.switch.engine_mut().state_mut();
        let there = state.table_at(table.at).get(&self.keys, self.priority).ok();
        match (self.listed, there) {
            (None, None) => {}
            (None, Some(_)) => state.table_at(table.at).delete(&self.keys, self.priority)?,
            (Some(listed), there) => {
                match (&listed.runs, there) {
                    (None, None) => state.table_at(table.at).insert(&listed.entry)?,
                    (None, Some(now)) if now.entry != listed.entry => {
                        state.table_at(table.at).modify(&listed.entry)?;
                    }
                    (Some(runs), None) => {
                        state.insert_indirect(&table.name, &self.keys, self.priority, runs)?;
                    }
                    (Some(runs), Some(now)) if now.runs != listed.runs => {
                        state.modify_indirect(&table.name, &self.keys, self.priority, runs)?;
                    }
                    _ => {}
                }
                put_back(state, table, &listed, self.meter, context.now)?;
                if table.has_meter {
                    let target = state.table_at(table.at);
                    target.set_meter_counts(&self.keys, self.priority, self.meter_counts)?;
                }
            }
        }
        put(&mut context.shadow.entries, &key, self.metadata);
        put(&mut context.shadow.sets, &key, self.set);
        Ok(())
    }
}

fn put_back(
    state: &mut TargetState,
    table: &TableIndex,
    listed: &Listed,
    meter: Option<MeterConfig>,
    now: u64,
) -> Result<(), Refusal> {
    let Entry { keys, priority, .. } = &listed.entry;
    let target = state.table_at(table.at);
    if table.has_counter && listed.count != Count::default() {
        target.set_count(keys, *priority, listed.count)?;
    }
    if table.has_meter {
        target.set_meter(keys, *priority, meter, now)?;
    }
    if table.ages {
        target.set_idle_timeout(keys, *priority, listed.idle_timeout, now)?;
    }
    Ok(())
}

/// Sets or removes what belongs to a key.
pub(crate) fn put<K: Ord + Clone, V>(
    map: &mut std::collections::BTreeMap<K, V>,
    key: &K,
    value: Option<V>,
) {
    match value {
        Some(value) => map.insert(key.clone(), value),
        None => map.remove(key),
    };
}

/// Refusal of a read that names a missing table entry.
pub(crate) fn absent(table: &TableIndex) -> Refusal {
    Refusal::new(
        Code::NotFound,
        format!("table `{}` has no such entry", table.name),
    )
}
