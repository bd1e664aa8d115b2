//! Parser value sets (specification, "ValueSetEntry").

use super::{Context, keys, only_modify};
use crate::pipeline::ValueSetIndex;
use crate::proto::v1::{self, update::Type};
use crate::refusal::Refusal;
use stateplane_runtime::{Engine, KeyMatch, TargetState};

/// Replaces the members of a set.
pub(crate) fn write<E: Engine>(
    context: &mut Context<'_, E>,
    kind: Type,
    entry: &v1::ValueSetEntry,
) -> Result<(), Refusal> {
    only_modify(kind, "value sets")?;
    let set = context.pipeline.value_set(entry.value_set_id)?;
    let owner = format!("value set `{}`", set.name);
    let members = entry
        .members
        .iter()
        .map(|member| keys::read(&set.fields, &member.r#match, &owner))
        .collect::<Result<Vec<_>, _>>()?;
    let state = context.switch.engine_mut().state_mut();
    state.value_set_mut(&set.name)?.set(&members)?;
    Ok(())
}

/// The message of a set.
pub(crate) fn message(
    state: &TargetState,
    id: u32,
    set: &ValueSetIndex,
) -> Result<v1::ValueSetEntry, Refusal> {
    let target = state.value_set(&set.name)?;
    Ok(v1::ValueSetEntry {
        value_set_id: id,
        members: target
            .members()
            .map(|member| v1::ValueSetMember {
                r#match: keys::write(&set.fields, member),
            })
            .collect(),
    })
}

/// Members before an update.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    name: String,
    members: Vec<Vec<KeyMatch>>,
}

pub(crate) fn before<E: Engine>(
    context: &Context<'_, E>,
    entry: &v1::ValueSetEntry,
) -> Option<Before> {
    let set = context.pipeline.value_set(entry.value_set_id).ok()?;
    let target = context.switch.engine().state().value_set(&set.name).ok()?;
    Some(Before {
        name: set.name.clone(),
        members: target.members().map(<[KeyMatch]>::to_vec).collect(),
    })
}

impl Before {
    pub(crate) fn restore<E: Engine>(self, context: &mut Context<'_, E>) -> Result<(), Refusal> {
        let state = context.switch.engine_mut().state_mut();
        state.value_set_mut(&self.name)?.set(&self.members)?;
        Ok(())
    }
}
