//! Reads (specification, "Read RPC"): wildcards, in parts of bounded size.

use crate::digest::Digests;
use crate::entity::table::Fields;
use crate::entity::{
    CHUNK, Shadow, counter, group, keys, member, meter, register, replication, table, value_set,
};
use crate::gather::Gatherer;
use crate::pipeline::{Pipeline, TableIndex, unknown};
use crate::proto::v1::{self, entity::Entity, table_action};
use crate::refusal::Refusal;
use stateplane_runtime::{Engine, EntryId, Listed, TargetState};
use std::collections::VecDeque;
use std::ops::Range;

/// Entities that one request may name.
const MAX_ENTITIES: usize = 65_536;

/// Objects that are read.
pub(crate) struct Source<'a> {
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) state: &'a TargetState,
    pub(crate) shadow: &'a Shadow,
    pub(crate) digests: &'a Digests,
    /// Time in µs.
    pub(crate) now: u64,
}

/// Kind of a table's resources that is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Entry,
    Counter,
    Meter,
}

impl View {
    /// True if the table has such resources.
    fn is_of(self, index: &TableIndex) -> bool {
        match self {
            View::Entry => true,
            View::Counter => index.has_counter,
            View::Meter => index.has_meter,
        }
    }
}

/// A part of a read that is still to be done.
#[derive(Debug)]
enum Part {
    /// Entities that a request names, wildcards not yet resolved.
    Request(Box<Entity>),
    /// Entries of a table at these positions.
    Entries(Box<Entries>, Range<u32>),
    /// The entry that a request names.
    Entry(Box<Entries>, Box<Listed>),
    Counters(u32, Range<u64>),
    /// Elements, and whether what got each color is asked for.
    Meters(u32, Range<u64>, bool),
    Registers(u32, Range<u64>),
}

/// Entries of a table that are read, and their requested fields.
#[derive(Debug)]
struct Entries {
    table: u32,
    fields: Fields,
    view: View,
    /// 0 for all.
    priority: i32,
    action: Option<String>,
    /// Metadata as number and as bytes; 0 and nothing for all.
    metadata: (u64, Vec<u8>),
    /// Canonical matches; `None` for all.
    matches: Option<Vec<u8>>,
}

impl Entries {
    fn has(&self, source: &Source<'_>, index: &TableIndex, listed: &Listed) -> bool {
        let entry = &listed.entry;
        let by_priority =
            self.priority == 0 || i64::from(self.priority) == i64::from(entry.priority);
        let by_action = self
            .action
            .as_ref()
            .is_none_or(|action| listed.runs.is_none() && entry.action == *action);
        let (number, bytes) = &self.metadata;
        let by_metadata = (*number == 0 && bytes.is_empty()) || {
            let matches = keys::write(&index.fields, &entry.keys);
            let key = (index.id, keys::canonical(&matches), entry.priority);
            source.shadow.entries.get(&key).is_some_and(|kept| {
                (*number == 0 || kept.0 == *number) && (bytes.is_empty() || kept.1 == *bytes)
            })
        };
        let by_matches = self.matches.as_ref().is_none_or(|wanted| {
            let matches = keys::write(&index.fields, &entry.keys);
            keys::canonical(&matches) == *wanted
        });
        by_priority && by_action && by_matches && by_metadata
    }

    fn message(&self, source: &Source<'_>, index: &TableIndex, listed: &Listed) -> v1::Entity {
        let message = table::message(
            source.pipeline,
            source.state,
            source.shadow,
            index,
            listed,
            self.fields,
            source.now,
        );
        viewed(message, self.view)
    }
}

/// A read in progress.
#[derive(Debug)]
pub(crate) struct Reading {
    parts: VecDeque<Part>,
}

impl Reading {
    /// The read of a request.
    ///
    /// # Errors
    ///
    /// `RESOURCE_EXHAUSTED` if it names too many entities.
    pub(crate) fn new(request: v1::ReadRequest) -> Result<Reading, Refusal> {
        let count = request.entities.len();
        if count > MAX_ENTITIES {
            return Err(Refusal::new(
                tonic::Code::ResourceExhausted,
                format!("the request names {count} entities, at most {MAX_ENTITIES} are read"),
            ));
        }
        let entities = request.entities.into_iter();
        Ok(Reading {
            parts: entities
                .filter_map(|entity| entity.entity.map(|entity| Part::Request(Box::new(entity))))
                .collect(),
        })
    }

    /// Moves the counts that the [next](Reading::next) entities need to the first switch.
    pub(crate) fn gather<E: Engine>(&self, gatherer: &mut Gatherer<'_, E>) {
        match self.parts.front() {
            Some(Part::Request(entity)) => match &**entity {
                // Elements come in parts.
                Entity::CounterEntry(_) => {}
                entity => gatherer.entity(entity),
            },
            Some(Part::Entries(entries, positions)) => {
                let end = positions.start.saturating_add(CHUNK).min(positions.end);
                gatherer.entries(entries.table, positions.start..end);
            }
            Some(Part::Counters(id, indices)) => {
                let end = indices.start.saturating_add(CHUNK.into()).min(indices.end);
                gatherer.counter(*id, indices.start..end);
            }
            _ => {}
        }
    }

    /// The next entities, at most [`CHUNK`] of them, possibly none; `None` at the end.
    ///
    /// # Errors
    ///
    /// The canonical code of what cannot be read.
    pub(crate) fn next(&mut self, source: &Source<'_>) -> Result<Option<Vec<v1::Entity>>, Refusal> {
        let Some(part) = self.parts.pop_front() else {
            return Ok(None);
        };
        let entities = match part {
            Part::Request(entity) => self.expand(source, *entity)?,
            Part::Entry(entries, listed) => {
                let index = source.pipeline.table(entries.table)?;
                if entries.has(source, index, &listed) {
                    vec![entries.message(source, index, &listed)]
                } else {
                    Vec::new()
                }
            }
            Part::Entries(entries, positions) => {
                let index = source.pipeline.table(entries.table)?;
                let target = &source.state.tables()[index.at.index()];
                let middle = positions.start.saturating_add(CHUNK).min(positions.end);
                let listed = (positions.start..middle)
                    .filter_map(|position| target.entry(EntryId::at(position)))
                    .filter(|listed| entries.has(source, index, listed));
                let messages = listed.map(|listed| entries.message(source, index, &listed));
                let messages = messages.collect();
                if middle < positions.end {
                    self.parts
                        .push_front(Part::Entries(entries, middle..positions.end));
                }
                messages
            }
            Part::Counters(id, indices) => {
                let name = source
                    .pipeline
                    .counters
                    .get(&id)
                    .ok_or_else(|| unknown("counter", id))?;
                let now = self.slice(indices, |rest| Part::Counters(id, rest));
                wrap(
                    counter::messages(source.state, id, name, now)?,
                    Entity::CounterEntry,
                )
            }
            Part::Meters(id, indices, counted) => {
                let name = source
                    .pipeline
                    .meters
                    .get(&id)
                    .ok_or_else(|| unknown("meter", id))?;
                let now = self.slice(indices, |rest| Part::Meters(id, rest, counted));
                wrap(
                    meter::messages(source.state, id, name, now, counted)?,
                    Entity::MeterEntry,
                )
            }
            Part::Registers(id, indices) => {
                let index = source.pipeline.register(id)?;
                let now = self.slice(indices, |rest| Part::Registers(id, rest));
                let messages = register::messages(source.pipeline, source.state, id, index, now)?;
                wrap(messages, Entity::RegisterEntry)
            }
        };
        Ok(Some(entities))
    }

    /// The first of the indices; the rest is put first in the queue.
    fn slice(&mut self, indices: Range<u64>, rest: impl FnOnce(Range<u64>) -> Part) -> Range<u64> {
        let middle = indices.start.saturating_add(CHUNK.into()).min(indices.end);
        if middle < indices.end {
            self.parts.push_front(rest(middle..indices.end));
        }
        indices.start..middle
    }

    /// Parts of an entity that a request names: entities at once, or parts for later.
    fn expand(&mut self, source: &Source<'_>, entity: Entity) -> Result<Vec<v1::Entity>, Refusal> {
        let pipeline = source.pipeline;
        match entity {
            Entity::TableEntry(entry) => {
                let fields = Fields::of(&entry);
                self.table(source, &entry, fields, View::Entry)
            }
            Entity::DirectCounterEntry(entry) => {
                let entry = entry.table_entry.unwrap_or_default();
                let fields = Fields {
                    counter: true,
                    ..Fields::default()
                };
                self.table(source, &entry, fields, View::Counter)
            }
            Entity::DirectMeterEntry(entry) => {
                let fields = Fields {
                    meter: true,
                    meter_counts: entry.counter_data.is_some(),
                    ..Fields::default()
                };
                let entry = entry.table_entry.unwrap_or_default();
                self.table(source, &entry, fields, View::Meter)
            }
            Entity::ActionProfileMember(given) => {
                let mut messages = Vec::new();
                for id in each(given.action_profile_id, pipeline.profiles.keys()) {
                    let wanted = given.member_id;
                    messages.extend(member::messages(pipeline, source.state, id, wanted)?);
                }
                Ok(wrap(messages, Entity::ActionProfileMember))
            }
            Entity::ActionProfileGroup(given) => {
                let mut messages = Vec::new();
                for id in each(given.action_profile_id, pipeline.profiles.keys()) {
                    let wanted = given.group_id;
                    messages.extend(group::messages(source.shadow, pipeline, id, wanted)?);
                }
                Ok(wrap(messages, Entity::ActionProfileGroup))
            }
            Entity::CounterEntry(given) => {
                let ids: Vec<u32> = each(given.counter_id, pipeline.counters.keys());
                for id in ids.into_iter().rev() {
                    let name = pipeline.counters.get(&id);
                    let name = name.ok_or_else(|| unknown("counter", id))?;
                    let size = source.state.counter(name)?.counts().len() as u64;
                    let indices = indices(given.index.as_ref(), size)?;
                    self.parts.push_front(Part::Counters(id, indices));
                }
                Ok(Vec::new())
            }
            Entity::MeterEntry(given) => {
                let counted = given.counter_data.is_some();
                let ids: Vec<u32> = each(given.meter_id, pipeline.meters.keys());
                for id in ids.into_iter().rev() {
                    let name = pipeline.meters.get(&id);
                    let name = name.ok_or_else(|| unknown("meter", id))?;
                    let size = source.state.meter(name)?.size();
                    let indices = indices(given.index.as_ref(), size)?;
                    self.parts.push_front(Part::Meters(id, indices, counted));
                }
                Ok(Vec::new())
            }
            Entity::RegisterEntry(given) => {
                let ids: Vec<u32> = each(given.register_id, pipeline.registers.keys());
                for id in ids.into_iter().rev() {
                    let register = pipeline.register(id)?;
                    let size = source.state.registers()[register.at.index()].size();
                    let indices = indices(given.index.as_ref(), size)?;
                    self.parts.push_front(Part::Registers(id, indices));
                }
                Ok(Vec::new())
            }
            Entity::PacketReplicationEngineEntry(given) => {
                let messages = replication::messages(source.shadow, &given);
                Ok(wrap(messages, Entity::PacketReplicationEngineEntry))
            }
            Entity::ValueSetEntry(given) => {
                let mut messages = Vec::new();
                for id in each(given.value_set_id, pipeline.value_sets.keys()) {
                    let set = pipeline.value_set(id)?;
                    messages.push(value_set::message(source.state, id, set)?);
                }
                Ok(wrap(messages, Entity::ValueSetEntry))
            }
            Entity::DigestEntry(given) => {
                if given.digest_id != 0 {
                    pipeline.digest(given.digest_id)?;
                }
                let messages = source.digests.entries(given.digest_id);
                Ok(wrap(messages, Entity::DigestEntry))
            }
            Entity::ExternEntry(_) => Err(Refusal::unimplemented("v1model has no other externs")),
        }
    }

    fn table(
        &mut self,
        source: &Source<'_>,
        entry: &v1::TableEntry,
        fields: Fields,
        view: View,
    ) -> Result<Vec<v1::Entity>, Refusal> {
        let pipeline = source.pipeline;
        if entry.table_id == 0 {
            for (id, index) in pipeline.tables.iter().rev() {
                if view.is_of(index) {
                    let all = v1::TableEntry {
                        table_id: *id,
                        is_default_action: entry.is_default_action,
                        ..v1::TableEntry::default()
                    };
                    self.one_table(source, &all, fields, view)?;
                }
            }
            let tables = pipeline.tables.values();
            let defaults = tables.filter(|index| entry.is_default_action && view.is_of(index));
            return Ok(defaults
                .map(|index| default(source, index, fields, view))
                .collect());
        }
        let index = pipeline.table(entry.table_id)?;
        if !view.is_of(index) {
            return Err(Refusal::invalid(format!(
                "table `{}` has no such direct resource",
                index.name
            )));
        }
        if entry.is_default_action {
            table::default::check_named(entry)?;
            return Ok(vec![default(source, index, fields, view)]);
        }
        self.one_table(source, entry, fields, view)?;
        Ok(Vec::new())
    }

    #[expect(deprecated, reason = "clients of P4Runtime 1.0 use it")]
    fn one_table(
        &mut self,
        source: &Source<'_>,
        entry: &v1::TableEntry,
        fields: Fields,
        view: View,
    ) -> Result<(), Refusal> {
        if entry.is_default_action {
            return Ok(());
        }
        let index = source.pipeline.table(entry.table_id)?;
        let target = &source.state.tables()[index.at.index()];
        let action = match entry.action.as_ref().and_then(|it| it.r#type.as_ref()) {
            Some(table_action::Type::Action(action)) if action.action_id != 0 => {
                Some(source.pipeline.action(action.action_id)?.name.clone())
            }
            _ => None,
        };
        let any_priority = target.has_priority() && entry.priority == 0;
        let named = if entry.r#match.is_empty() {
            None
        } else {
            Some(table::identity(index, entry)?)
        };
        let matches = named.as_ref().filter(|_| any_priority);
        let matches = matches.map(|(keys, _)| keys::canonical(&keys::write(&index.fields, keys)));
        let entries = Box::new(Entries {
            matches,
            table: index.id,
            fields,
            view,
            priority: entry.priority,
            action,
            metadata: (entry.controller_metadata, entry.metadata.clone()),
        });
        let Some((keys, priority)) = named.filter(|_| !any_priority) else {
            self.parts
                .push_front(Part::Entries(entries, 0..target.positions()));
            return Ok(());
        };
        match target.get(&keys, priority) {
            Ok(listed) => self
                .parts
                .push_front(Part::Entry(entries, Box::new(listed))),
            Err(_) if view == View::Entry => {}
            Err(_) => return Err(table::absent(index)),
        }
        Ok(())
    }
}

/// The default entry of a table, or what it counts and meters.
fn default(source: &Source<'_>, index: &TableIndex, fields: Fields, view: View) -> v1::Entity {
    let Source {
        pipeline,
        state,
        shadow,
        ..
    } = source;
    viewed(
        table::default::message(pipeline, state, shadow, index, fields),
        view,
    )
}

fn viewed(mut entry: v1::TableEntry, view: View) -> v1::Entity {
    let entity = match view {
        View::Entry => Entity::TableEntry(entry),
        View::Counter => {
            let data = entry.counter_data.take();
            entry.action = None;
            Entity::DirectCounterEntry(v1::DirectCounterEntry {
                table_entry: Some(entry),
                data,
            })
        }
        View::Meter => {
            let config = entry.meter_config.take();
            let counter_data = entry.meter_counter_data.take();
            entry.action = None;
            Entity::DirectMeterEntry(v1::DirectMeterEntry {
                table_entry: Some(entry),
                config,
                counter_data,
            })
        }
    };
    v1::Entity {
        entity: Some(entity),
    }
}

/// The id, or all if it is 0.
fn each<'k>(id: u32, all: impl Iterator<Item = &'k u32>) -> Vec<u32> {
    match id {
        0 => all.copied().collect(),
        id => vec![id],
    }
}

/// The index, or all if none is given.
fn indices(given: Option<&v1::Index>, size: u64) -> Result<Range<u64>, Refusal> {
    match given {
        Some(given) => {
            let index = crate::entity::index(given)?;
            Ok(index..index.saturating_add(1))
        }
        None => Ok(0..size),
    }
}

fn wrap<T>(messages: Vec<T>, entity: fn(T) -> Entity) -> Vec<v1::Entity> {
    messages
        .into_iter()
        .map(|message| v1::Entity {
            entity: Some(entity(message)),
        })
        .collect()
}
