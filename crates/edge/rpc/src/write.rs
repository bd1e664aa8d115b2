//! Batches of updates (specification, "Write RPC").

use crate::entity::{
    Context, counter, group, member, meter, register, replication, table, value_set,
};
use crate::proto::v1::{self, entity::Entity, update::Type, write_request::Atomicity};
use crate::refusal::Refusal;
use crate::{gather, uses};
use stateplane_runtime::Engine;

/// Updates of a batch that packets see as a whole: they wait while it is applied.
const MAX_DATAPLANE_ATOMIC: usize = 16_384;

/// Elements of arrays that a batch may remember to put back.
const MAX_REMEMBERED: u64 = 1 << 22;

/// Elements of an array that are written in the time of one update.
const ELEMENTS: u64 = 64;

/// A batch that is being applied.
#[derive(Debug)]
pub(crate) struct Batch {
    updates: std::vec::IntoIter<v1::Update>,
    /// Results of the attempted updates, in order.
    outcomes: Vec<Result<(), Refusal>>,
    atomicity: Atomicity,
    /// State to restore, for batches that are all or nothing, and what it belongs to where
    /// texts are counted.
    undo: Vec<(Option<Entity>, Before)>,
    /// Elements of arrays in `undo`.
    remembered: u64,
}

/// Result of a slice of a batch.
#[derive(Debug)]
pub(crate) enum Progress {
    /// More is to be done.
    More,
    /// The batch is done: results of the updates, if any failed.
    Done(Result<(), Vec<Result<(), Refusal>>>),
}

impl Batch {
    /// The batch of a request.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` for an atomicity that does not exist.
    pub(crate) fn new(request: v1::WriteRequest) -> Result<Batch, Refusal> {
        let atomicity = Atomicity::try_from(request.atomicity).map_err(|_| {
            Refusal::invalid(format!("there is no atomicity {}", request.atomicity))
        })?;
        let count = request.updates.len();
        if atomicity == Atomicity::DataplaneAtomic && count > MAX_DATAPLANE_ATOMIC {
            return Err(Refusal::new(
                tonic::Code::ResourceExhausted,
                format!(
                    "the batch has {count} updates, at most {MAX_DATAPLANE_ATOMIC} are \
                     DATAPLANE_ATOMIC"
                ),
            ));
        }
        Ok(Batch {
            outcomes: Vec::with_capacity(request.updates.len()),
            updates: request.updates.into_iter(),
            atomicity,
            undo: Vec::new(),
            remembered: 0,
        })
    }

    /// Applies updates until `limit` of them, or as much work, are done; all of them if
    /// packets may not see a part.
    pub(crate) fn work<E: Engine>(
        &mut self,
        context: &mut Context<'_, E>,
        limit: usize,
    ) -> Progress {
        let limit = match self.atomicity {
            Atomicity::DataplaneAtomic => u64::MAX,
            _ => limit as u64,
        };
        let whole = self.atomicity != Atomicity::ContinueOnError;
        let mut spent = 0;
        while spent < limit {
            let Some(update) = self.updates.next() else {
                return Progress::Done(self.end());
            };
            let elements = elements(context, &update);
            spent = spent.saturating_add(1 + elements / ELEMENTS);
            let mut outcome = Ok(());
            if whole {
                self.remembered = self.remembered.saturating_add(elements);
                if self.remembered > MAX_REMEMBERED {
                    outcome = Err(too_much())
                } else {
                    if let Some(entity) = entity(&update) {
                        gather::of_update(context, entity);
                    }
                    let counts = context.pipeline.has_names();
                    let named = entity(&update).filter(|_| counts).cloned();
                    let before = Before::of(context, &update);
                    self.undo.extend(before.map(|before| (named, before)))
                }
            }
            let outcome = outcome.and_then(|()| apply(context, &update));
            let failed = outcome.is_err();
            self.outcomes.push(outcome);
            if !whole {
                context.pipeline.forget_unused_names();
            }
            if failed && whole {
                self.roll_back(context);
                return Progress::Done(self.end());
            }
        }
        match self.updates.len() {
            0 => Progress::Done(self.end()),
            _ => Progress::More,
        }
    }

    fn roll_back<E: Engine>(&mut self, context: &mut Context<'_, E>) {
        for (named, before) in std::mem::take(&mut self.undo).into_iter().rev() {
            // What was there once fits again: its room was freed by what follows it.
            let _ = match &named {
                Some(named) => uses::counted(context, named, |context| before.restore(context)),
                None => before.restore(context),
            };
        }
        let aborted = |text| {
            Err(Refusal::new(
                tonic::Code::Aborted,
                format!("{text}: another update of the batch failed"),
            ))
        };
        for outcome in self.outcomes.iter_mut().filter(|outcome| outcome.is_ok()) {
            *outcome = aborted("undone");
        }
        for _ in self.updates.by_ref() {
            self.outcomes.push(aborted("not attempted"));
        }
    }

    fn end(&mut self) -> Result<(), Vec<Result<(), Refusal>>> {
        let outcomes = std::mem::take(&mut self.outcomes);
        if outcomes.iter().all(Result::is_ok) {
            Ok(())
        } else {
            Err(outcomes)
        }
    }
}

fn too_much() -> Refusal {
    Refusal::new(
        tonic::Code::ResourceExhausted,
        format!(
            "to undo the batch, more than {MAX_REMEMBERED} elements of arrays would be kept: \
             write fewer whole arrays at once"
        ),
    )
}

/// Elements that an update of a whole array writes.
fn elements<E: Engine>(context: &Context<'_, E>, update: &v1::Update) -> u64 {
    let state = context.switch.engine().state();
    let pipeline = context.pipeline;
    let size = match entity(update) {
        Some(Entity::RegisterEntry(entry)) if entry.index.is_none() => pipeline
            .register(entry.register_id)
            .map(|register| state.registers()[register.at.index()].size())
            .ok(),
        Some(Entity::CounterEntry(entry)) if entry.index.is_none() => {
            let name = pipeline.counters.get(&entry.counter_id);
            let counter = name.and_then(|name| state.counter(name).ok());
            counter.map(|counter| counter.counts().len() as u64)
        }
        Some(Entity::MeterEntry(entry)) if entry.index.is_none() => {
            let name = pipeline.meters.get(&entry.meter_id);
            let meter = name.and_then(|name| state.meter(name).ok());
            meter.map(stateplane_runtime::Meter::size)
        }
        _ => None,
    };
    size.unwrap_or(0)
}

fn entity(update: &v1::Update) -> Option<&Entity> {
    update.entity.as_ref()?.entity.as_ref()
}

/// Applies one update, or changes nothing.
pub(crate) fn apply<E: Engine>(
    context: &mut Context<'_, E>,
    update: &v1::Update,
) -> Result<(), Refusal> {
    let kind = Type::try_from(update.r#type).unwrap_or(Type::Unspecified);
    if kind == Type::Unspecified {
        return Err(table::unspecified());
    }
    let Some(entity) = entity(update) else {
        return Err(Refusal::invalid("the update has no entity"));
    };
    gather::of_update(context, entity);
    uses::counted(context, entity, |context| write(context, kind, entity))
}

fn write<E: Engine>(
    context: &mut Context<'_, E>,
    kind: Type,
    entity: &Entity,
) -> Result<(), Refusal> {
    match entity {
        Entity::TableEntry(entry) => table::write(context, kind, entry),
        Entity::ActionProfileMember(given) => member::write(context, kind, given),
        Entity::ActionProfileGroup(given) => group::write(context, kind, given),
        Entity::MeterEntry(entry) => meter::write(context, kind, entry),
        Entity::CounterEntry(entry) => counter::write(context, kind, entry),
        Entity::DirectMeterEntry(entry) => direct_meter(context, kind, entry),
        Entity::DirectCounterEntry(entry) => direct_counter(context, kind, entry),
        Entity::PacketReplicationEngineEntry(entry) => replication::write(context, kind, entry),
        Entity::ValueSetEntry(entry) => value_set::write(context, kind, entry),
        Entity::RegisterEntry(entry) => register::write(context, kind, entry),
        Entity::DigestEntry(entry) => context.digests.write(context.pipeline, kind, entry),
        Entity::ExternEntry(_) => Err(Refusal::unimplemented("v1model has no other externs")),
    }
}

/// The entry that a direct resource belongs to.
fn owner(entry: &Option<v1::TableEntry>) -> Result<&v1::TableEntry, Refusal> {
    entry
        .as_ref()
        .filter(|entry| entry.table_id != 0)
        .ok_or_else(|| Refusal::invalid("the table entry of a direct resource is missing"))
}

fn direct_counter<E: Engine>(
    context: &mut Context<'_, E>,
    kind: Type,
    given: &v1::DirectCounterEntry,
) -> Result<(), Refusal> {
    crate::entity::only_modify(kind, "direct counters")?;
    let entry = owner(&given.table_entry)?;
    let index = context.pipeline.table(entry.table_id)?;
    if !index.has_counter {
        return Err(Refusal::invalid(format!(
            "table `{}` has no direct counter",
            index.name
        )));
    }
    let data = given
        .data
        .as_ref()
        .ok_or_else(|| Refusal::invalid("the counter's data are missing"))?;
    let count = counter::read(data)?;
    let target = context.switch.engine_mut().state_mut().table_at(index.at);
    if entry.is_default_action {
        table::default::check_named(entry)?;
        target.set_default_count(count)?;
        return Ok(());
    }
    let (keys, priority) = table::identity(index, entry)?;
    target.set_count(&keys, priority, count)?;
    Ok(())
}

fn direct_meter<E: Engine>(
    context: &mut Context<'_, E>,
    kind: Type,
    given: &v1::DirectMeterEntry,
) -> Result<(), Refusal> {
    crate::entity::only_modify(kind, "direct meters")?;
    let counts = given.counter_data.as_ref();
    let counts = counts.map(meter::read_counts).transpose()?;
    let entry = owner(&given.table_entry)?;
    let index = context.pipeline.table(entry.table_id)?;
    if !index.has_meter {
        return Err(Refusal::invalid(format!(
            "table `{}` has no direct meter",
            index.name
        )));
    }
    let config = match &given.config {
        Some(config) => meter::read(config)?,
        None => None,
    };
    let now = context.now;
    let target = context.switch.engine_mut().state_mut().table_at(index.at);
    if entry.is_default_action {
        table::default::check_named(entry)?;
        target.set_default_meter(config, now)?;
        if let Some(counts) = counts {
            target.set_default_meter_counts(counts)?;
        }
        return Ok(());
    }
    let (keys, priority) = table::identity(index, entry)?;
    target.set_meter(&keys, priority, config, now)?;
    if let Some(counts) = counts {
        target.set_meter_counts(&keys, priority, counts)?;
    }
    Ok(())
}

/// State before an update.
#[derive(Debug)]
enum Before {
    Table(Box<table::Before>),
    Default(table::default::Before),
    Member(member::Before),
    Group(group::Before),
    Meter(meter::Before),
    Counter(counter::Before),
    Replication(replication::Before),
    ValueSet(value_set::Before),
    Register(register::Before),
    Digest(u32, Option<v1::digest_entry::Config>),
}

impl Before {
    fn of_table<E: Engine>(context: &Context<'_, E>, entry: &v1::TableEntry) -> Option<Before> {
        Some(if entry.is_default_action {
            Before::Default(table::default::before(context, entry)?)
        } else {
            Before::Table(Box::new(table::before(context, entry)?))
        })
    }

    fn of<E: Engine>(context: &Context<'_, E>, update: &v1::Update) -> Option<Before> {
        Some(match entity(update)? {
            Entity::TableEntry(entry) => return Before::of_table(context, entry),
            Entity::DirectCounterEntry(entry) => {
                return Before::of_table(context, entry.table_entry.as_ref()?);
            }
            Entity::DirectMeterEntry(entry) => {
                return Before::of_table(context, entry.table_entry.as_ref()?);
            }
            Entity::ActionProfileMember(given) => Before::Member(member::before(context, given)?),
            Entity::ActionProfileGroup(given) => Before::Group(group::before(context, given)?),
            Entity::MeterEntry(entry) => Before::Meter(meter::before(context, entry)?),
            Entity::CounterEntry(entry) => Before::Counter(counter::before(context, entry)?),
            Entity::PacketReplicationEngineEntry(entry) => {
                Before::Replication(replication::before(context, entry)?)
            }
            Entity::ValueSetEntry(entry) => Before::ValueSet(value_set::before(context, entry)?),
            Entity::RegisterEntry(entry) => Before::Register(register::before(context, entry)?),
            Entity::DigestEntry(entry) => {
                Before::Digest(entry.digest_id, context.digests.before(entry.digest_id))
            }
            Entity::ExternEntry(_) => return None,
        })
    }

    fn restore<E: Engine>(self, context: &mut Context<'_, E>) -> Result<(), Refusal> {
        match self {
            Before::Table(before) => before.restore(context),
            Before::Default(before) => before.restore(context),
            Before::Member(before) => before.restore(context),
            Before::Group(before) => before.restore(context),
            Before::Meter(before) => before.restore(context),
            Before::Counter(before) => before.restore(context),
            Before::Replication(before) => before.restore(context),
            Before::ValueSet(before) => before.restore(context),
            Before::Register(before) => before.restore(context),
            Before::Digest(id, config) => {
                context.digests.restore(id, config);
                Ok(())
            }
        }
    }
}
