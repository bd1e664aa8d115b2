//! Registers (specification, "RegisterEntry").

use super::{Context, only_modify};
use crate::data;
use crate::pipeline::{Pipeline, RegisterIndex};
use crate::proto::v1::{self, update::Type};
use crate::refusal::Refusal;
use stateplane_runtime::{Engine, TargetState, Value};
use tonic::Code;

/// Writes one element, or all if no index is given.
pub(crate) fn write<E: Engine>(
    context: &mut Context<'_, E>,
    kind: Type,
    entry: &v1::RegisterEntry,
) -> Result<(), Refusal> {
    only_modify(kind, "registers")?;
    let register = context.pipeline.register(entry.register_id)?;
    if register.is_in_view {
        let name = &register.name;
        return Err(Refusal::new(
            Code::FailedPrecondition,
            format!(
                "register `{name}` is in view of sync, where cuts that locations have still to cross \
                 would undo the write: write by the engine of its group (`stateplane view write`)"
            ),
        ));
    }
    let given = entry
        .data
        .as_ref()
        .ok_or_else(|| Refusal::invalid("the register's data are missing"))?;
    let what = format!("register `{}`", register.name);
    let value = data::read(given, &register.spec, context.pipeline.types(), &what)?;
    let target = context
        .switch
        .engine_mut()
        .state_mut()
        .register_at(register.at);
    match &entry.index {
        Some(index) => target.write(super::index(index)?, &value)?,
        None => target.fill(&value)?,
    }
    Ok(())
}

/// Elements as messages.
pub(crate) fn messages(
    pipeline: &Pipeline,
    state: &TargetState,
    id: u32,
    register: &RegisterIndex,
    indices: std::ops::Range<u64>,
) -> Result<Vec<v1::RegisterEntry>, Refusal> {
    let target = &state.registers()[register.at.index()];
    indices
        .map(|index| {
            let value = target.read(index)?;
            Ok(v1::RegisterEntry {
                register_id: id,
                index: Some(v1::Index {
                    index: i64::try_from(index).unwrap_or(i64::MAX),
                }),
                data: Some(data::write(&value, &register.spec, pipeline.types())),
            })
        })
        .collect()
}

/// Elements before an update.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    at: stateplane_ir::RegisterId,
    from: u64,
    values: Vec<Value>,
}

pub(crate) fn before<E: Engine>(
    context: &Context<'_, E>,
    entry: &v1::RegisterEntry,
) -> Option<Before> {
    let register = context.pipeline.register(entry.register_id).ok()?;
    let target = &context.switch.engine().state().registers()[register.at.index()];
    let indices = match &entry.index {
        Some(index) => {
            let index = super::index(index).ok()?;
            index..index.saturating_add(1)
        }
        None => 0..target.size(),
    };
    let from = indices.start;
    let values = indices
        .map(|index| target.read(index).ok())
        .collect::<Option<_>>()?;
    Some(Before {
        at: register.at,
        from,
        values,
    })
}

impl Before {
    pub(crate) fn restore<E: Engine>(self, context: &mut Context<'_, E>) -> Result<(), Refusal> {
        let state = context.switch.engine_mut().state_mut();
        let register = state.register_at(self.at);
        for (index, value) in (self.from..).zip(self.values) {
            register.write(index, &value)?;
        }
        Ok(())
    }
}
