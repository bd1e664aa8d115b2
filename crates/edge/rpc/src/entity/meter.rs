//! Meters (specification, "MeterEntry & DirectMeterEntry").

use super::{Context, counter, only_modify};
use crate::proto::v1::{self, update::Type};
use crate::refusal::Refusal;
use stateplane_runtime::{Count, Engine, MeterConfig, TargetState};

/// The configuration of a message; one whose rates are all zero is that of a meter that
/// marks nothing but red, which is not none.
pub(crate) fn read(config: &v1::MeterConfig) -> Result<Option<MeterConfig>, Refusal> {
    let number = |value: i64, what: &str| {
        u64::try_from(value)
            .map_err(|_| Refusal::invalid(format!("the meter's {what} {value} is negative")))
    };
    if config.eburst != 0 {
        return Err(Refusal::unimplemented(
            "meters have two rates and three colors: there is no eburst",
        ));
    }
    Ok(Some(MeterConfig {
        committed_rate: number(config.cir, "cir")?,
        committed_burst: number(config.cburst, "cburst")?,
        peak_rate: number(config.pir, "pir")?,
        peak_burst: number(config.pburst, "pburst")?,
    }))
}

/// The message of a configuration.
pub(crate) fn message(config: &MeterConfig) -> v1::MeterConfig {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    v1::MeterConfig {
        cir: number(config.committed_rate),
        cburst: number(config.committed_burst),
        pir: number(config.peak_rate),
        pburst: number(config.peak_burst),
        eburst: 0,
    }
}

/// The counts of a message: green, yellow, red; a color that is left out has none.
pub(crate) fn read_counts(data: &v1::MeterCounterData) -> Result<[Count; 3], Refusal> {
    let mut counts = [Count::default(); 3];
    let colors = [&data.green, &data.yellow, &data.red];
    for (count, given) in counts.iter_mut().zip(colors) {
        if let Some(given) = given {
            *count = counter::read(given)?;
        }
    }
    Ok(counts)
}

/// The message of counts.
pub(crate) fn counts_message(counts: [Count; 3]) -> v1::MeterCounterData {
    let [green, yellow, red] = counts.map(|count| Some(counter::message(count)));
    v1::MeterCounterData { green, yellow, red }
}

fn name<E: Engine>(context: &Context<'_, E>, id: u32) -> Result<String, Refusal> {
    let found = context.pipeline.meters.get(&id);
    found
        .cloned()
        .ok_or_else(|| crate::pipeline::unknown("meter", id))
}

/// Configures one element, or all if no index is given; without a configuration a meter
/// marks everything green again.
pub(crate) fn write<E: Engine>(
    context: &mut Context<'_, E>,
    kind: Type,
    entry: &v1::MeterEntry,
) -> Result<(), Refusal> {
    only_modify(kind, "meters")?;
    let counts = entry.counter_data.as_ref().map(read_counts).transpose()?;
    let name = name(context, entry.meter_id)?;
    let config = match &entry.config {
        Some(config) => read(config)?,
        None => None,
    };
    let now = context.now;
    let meter = context.switch.engine_mut().state_mut().meter_mut(&name)?;
    let indices = match &entry.index {
        Some(index) => {
            let index = super::index(index)?;
            index..index.saturating_add(1)
        }
        None => 0..meter.size(),
    };
    for index in indices {
        meter.write(index, config, now)?;
        if let Some(counts) = counts {
            meter.set_counts(index, counts)?;
        }
    }
    Ok(())
}

/// Elements as messages, with what got each color if `counted`.
pub(crate) fn messages(
    state: &TargetState,
    id: u32,
    name: &str,
    indices: std::ops::Range<u64>,
    counted: bool,
) -> Result<Vec<v1::MeterEntry>, Refusal> {
    let meter = state.meter(name)?;
    indices
        .map(|index| {
            Ok(v1::MeterEntry {
                meter_id: id,
                index: Some(v1::Index {
                    index: i64::try_from(index).unwrap_or(i64::MAX),
                }),
                config: meter.read(index)?.as_ref().map(message),
                counter_data: if counted {
                    Some(counts_message(meter.counts(index)?))
                } else {
                    None
                },
            })
        })
        .collect()
}

/// Elements before an update.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    name: String,
    from: u64,
    elements: Vec<(Option<MeterConfig>, [Count; 3])>,
}

pub(crate) fn before<E: Engine>(
    context: &Context<'_, E>,
    entry: &v1::MeterEntry,
) -> Option<Before> {
    let name = name(context, entry.meter_id).ok()?;
    let meter = context.switch.engine().state().meter(&name).ok()?;
    let indices = match &entry.index {
        Some(index) => {
            let index = super::index(index).ok()?;
            index..index.saturating_add(1)
        }
        None => 0..meter.size(),
    };
    let from = indices.start;
    let elements = indices
        .map(|index| Some((meter.read(index).ok()?, meter.counts(index).ok()?)))
        .collect::<Option<_>>()?;
    Some(Before {
        name,
        from,
        elements,
    })
}

impl Before {
    pub(crate) fn restore<E: Engine>(self, context: &mut Context<'_, E>) -> Result<(), Refusal> {
        let now = context.now;
        let state = context.switch.engine_mut().state_mut();
        let meter = state.meter_mut(&self.name)?;
        for (index, (config, counts)) in (self.from..).zip(self.elements) {
            meter.write(index, config, now)?;
            meter.set_counts(index, counts)?;
        }
        Ok(())
    }
}
