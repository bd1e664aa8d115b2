//! Members of action profiles (specification, "ActionProfileMember").

use super::{Context, action, table};
use crate::pipeline::Pipeline;
use crate::proto::v1::{self, update::Type};
use crate::refusal::Refusal;
use stateplane_runtime::{Engine, Invocation, TargetState};

/// Writes a member.
pub(crate) fn write<E: Engine>(
    context: &mut Context<'_, E>,
    kind: Type,
    member: &v1::ActionProfileMember,
) -> Result<(), Refusal> {
    let profile = context.pipeline.profile(member.action_profile_id)?;
    let invocation = || match &member.action {
        Some(action) => action::read(context.pipeline, action),
        None => Err(Refusal::invalid("the member's action is missing")),
    };
    let id = member.member_id;
    match kind {
        Type::Insert => {
            let action = invocation()?;
            let state = context.switch.engine_mut().state_mut();
            state.insert_member(&profile.name, id, &action)?;
        }
        Type::Modify => {
            let action = invocation()?;
            let state = context.switch.engine_mut().state_mut();
            state.modify_member(&profile.name, id, &action)?;
        }
        Type::Delete => {
            let state = context.switch.engine_mut().state_mut();
            state.delete_member(&profile.name, id)?;
        }
        Type::Unspecified => return Err(table::unspecified()),
    }
    Ok(())
}

/// Members of a profile as messages: all, or the one with that number if it is not 0.
pub(crate) fn messages(
    pipeline: &Pipeline,
    state: &TargetState,
    profile: u32,
    wanted: u32,
) -> Result<Vec<v1::ActionProfileMember>, Refusal> {
    let index = pipeline.profile(profile)?;
    let target = state.profile(&index.name)?;
    let members = match wanted {
        0 => target.members(),
        id => target
            .invocation(id)
            .map(|it| (id, it))
            .into_iter()
            .collect(),
    };
    Ok(members
        .into_iter()
        .map(|(id, invocation)| v1::ActionProfileMember {
            action_profile_id: profile,
            member_id: id,
            action: action::named(pipeline, &invocation),
        })
        .collect())
}

/// A member before an update.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    profile: String,
    member: u32,
    action: Option<Invocation>,
}

pub(crate) fn before<E: Engine>(
    context: &Context<'_, E>,
    member: &v1::ActionProfileMember,
) -> Option<Before> {
    let profile = context.pipeline.profile(member.action_profile_id).ok()?;
    let target = context
        .switch
        .engine()
        .state()
        .profile(&profile.name)
        .ok()?;
    Some(Before {
        profile: profile.name.clone(),
        member: member.member_id,
        action: target.invocation(member.member_id),
    })
}

impl Before {
    pub(crate) fn restore<E: Engine>(self, context: &mut Context<'_, E>) -> Result<(), Refusal> {
        let state = context.switch.engine_mut().state_mut();
        let there = state.profile(&self.profile)?.invocation(self.member);
        match (self.action, there.is_some()) {
            (None, false) => {}
            (None, true) => state.delete_member(&self.profile, self.member)?,
            (Some(action), false) => state.insert_member(&self.profile, self.member, &action)?,
            (Some(action), true) => state.modify_member(&self.profile, self.member, &action)?,
        }
        Ok(())
    }
}
