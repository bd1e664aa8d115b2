//! Counters (specification, "CounterEntry & DirectCounterEntry").

use super::{Context, only_modify};
use crate::proto::v1::{self, update::Type};
use crate::refusal::Refusal;
use stateplane_runtime::{Count, Engine, TargetState};

/// The count of a message.
pub(crate) fn read(data: &v1::CounterData) -> Result<Count, Refusal> {
    let number = |value: i64| {
        u64::try_from(value).map_err(|_| Refusal::invalid(format!("the count {value} is negative")))
    };
    Ok(Count {
        packets: number(data.packet_count)?,
        bytes: number(data.byte_count)?,
    })
}

/// The message of a count; what is beyond 63 bits is lost.
pub(crate) fn message(count: Count) -> v1::CounterData {
    let number = |value: u64| (value & (u64::MAX >> 1)) as i64;
    v1::CounterData {
        byte_count: number(count.bytes),
        packet_count: number(count.packets),
    }
}

/// Sets one element, or all if no index is given.
pub(crate) fn write<E: Engine>(
    context: &mut Context<'_, E>,
    kind: Type,
    entry: &v1::CounterEntry,
) -> Result<(), Refusal> {
    only_modify(kind, "counters")?;
    let name = name(context, entry.counter_id)?;
    let count = match &entry.data {
        Some(data) => read(data)?,
        None => return Err(Refusal::invalid("the counter's data are missing")),
    };
    let state = context.switch.engine_mut().state_mut();
    let counter = state.counter_mut(&name)?;
    match &entry.index {
        Some(index) => counter.write(super::index(index)?, count)?,
        None => counter.counts_mut().fill(count),
    }
    Ok(())
}

fn name<E: Engine>(context: &Context<'_, E>, id: u32) -> Result<String, Refusal> {
    let found = context.pipeline.counters.get(&id);
    found
        .cloned()
        .ok_or_else(|| crate::pipeline::unknown("counter", id))
}

/// Elements as messages.
pub(crate) fn messages(
    state: &TargetState,
    id: u32,
    name: &str,
    indices: std::ops::Range<u64>,
) -> Result<Vec<v1::CounterEntry>, Refusal> {
    let counter = state.counter(name)?;
    indices
        .map(|index| {
            Ok(v1::CounterEntry {
                counter_id: id,
                index: Some(v1::Index {
                    index: i64::try_from(index).unwrap_or(i64::MAX),
                }),
                data: Some(message(counter.read(index)?)),
            })
        })
        .collect()
}

/// Elements before an update.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    name: String,
    from: u64,
    counts: Vec<Count>,
}

pub(crate) fn before<E: Engine>(
    context: &Context<'_, E>,
    entry: &v1::CounterEntry,
) -> Option<Before> {
    let name = name(context, entry.counter_id).ok()?;
    let counter = context.switch.engine().state().counter(&name).ok()?;
    let (from, counts) = match &entry.index {
        Some(index) => {
            let index = super::index(index).ok()?;
            (index, vec![counter.read(index).ok()?])
        }
        None => (0, counter.counts().to_vec()),
    };
    Some(Before { name, from, counts })
}

impl Before {
    pub(crate) fn restore<E: Engine>(self, context: &mut Context<'_, E>) -> Result<(), Refusal> {
        let state = context.switch.engine_mut().state_mut();
        let counter = state.counter_mut(&self.name)?;
        for (index, count) in (self.from..).zip(self.counts) {
            counter.write(index, count)?;
        }
        Ok(())
    }
}
