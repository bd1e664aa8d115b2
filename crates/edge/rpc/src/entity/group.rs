//! Groups of action selectors (specification, "ActionProfileGroup"), and the ports that
//! their members watch.

use super::{Context, Shadow, table};
use crate::pipeline::Pipeline;
use crate::proto::v1::{self, action_profile_group::member::WatchKind, update::Type};
use crate::refusal::Refusal;
use stateplane_runtime::{Engine, Group};
use stateplane_switch::Switch;
use tonic::Code;

/// The port that a member watches; none if it watches none.
#[expect(deprecated, reason = "clients of P4Runtime 1.1 use it")]
fn watched(member: &v1::action_profile_group::Member) -> Option<u16> {
    match member.watch_kind.as_ref()? {
        WatchKind::WatchPort(port) => port_number(port),
        WatchKind::Watch(port) => u16::try_from(*port).ok(),
    }
}

/// The port of a big-endian number; none if there can be no such port.
pub(crate) fn port_number(bytes: &[u8]) -> Option<u16> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    match bytes[zeros..] {
        [] if zeros > 0 => Some(0),
        [low] => Some(u16::from(low)),
        [high, low] => Some(u16::from_be_bytes([high, low])),
        _ => None,
    }
}

/// The members whose watched port is not among those that are `down`.
fn live(group: &v1::ActionProfileGroup, shadow: &Shadow) -> Result<Group, Refusal> {
    let mut members = Vec::new();
    for member in &group.members {
        let weight = u32::try_from(member.weight)
            .ok()
            .filter(|weight| *weight > 0)
            .ok_or_else(|| {
                Refusal::invalid(format!(
                    "the weight {} of member {} is not positive",
                    member.weight, member.member_id
                ))
            })?;
        if watched(member).is_none_or(|port| !shadow.down.contains(&port)) {
            members.push((member.member_id, weight));
        }
    }
    Ok(Group { members })
}

/// Writes a group.
pub(crate) fn write<E: Engine>(
    context: &mut Context<'_, E>,
    kind: Type,
    group: &v1::ActionProfileGroup,
) -> Result<(), Refusal> {
    let profile = context.pipeline.profile(group.action_profile_id)?;
    let key = (profile.id, group.group_id);
    if kind != Type::Delete {
        check_size(context, profile.max_group_size, &profile.name, kind, group)?;
        // All must exist, those that are not live too.
        let state = context.switch.engine().state();
        let target = state.profile(&profile.name)?;
        let missing = group
            .members
            .iter()
            .find(|member| target.invocation(member.member_id).is_none());
        if let Some(missing) = missing {
            return Err(Refusal::not_found(format!(
                "action profile `{}` has no member {}",
                profile.name, missing.member_id
            )));
        }
    }
    let live = live(group, context.shadow)?;
    let state = context.switch.engine_mut().state_mut();
    match kind {
        Type::Insert => state.insert_group(&profile.name, group.group_id, &live)?,
        Type::Modify => state.modify_group(&profile.name, group.group_id, &live)?,
        Type::Delete => {
            state.delete_group(&profile.name, group.group_id)?;
            context.shadow.groups.remove(&key);
            return Ok(());
        }
        Type::Unspecified => return Err(table::unspecified()),
    }
    let mut group = group.clone();
    if kind == Type::Modify
        && group.max_size == 0
        && let Some(before) = context.shadow.groups.get(&key)
    {
        group.max_size = before.max_size;
    }
    context.shadow.groups.insert(key, group);
    Ok(())
}

fn check_size<E: Engine>(
    context: &Context<'_, E>,
    greatest: u64,
    profile: &str,
    kind: Type,
    group: &v1::ActionProfileGroup,
) -> Result<(), Refusal> {
    let own = u64::try_from(group.max_size)
        .map_err(|_| Refusal::invalid(format!("max_size {} is negative", group.max_size)))?;
    if greatest > 0 && own > greatest {
        return Err(Refusal::invalid(format!(
            "max_size {own} is above that of action profile `{profile}`, {greatest}"
        )));
    }
    let key = (group.action_profile_id, group.group_id);
    if kind == Type::Modify
        && let Some(before) = context.shadow.groups.get(&key)
        && before.max_size != group.max_size
        && group.max_size != 0
    {
        return Err(Refusal::invalid("max_size of a group cannot change"));
    }
    let limit = if own > 0 { own } else { greatest };
    let total: u64 = group
        .members
        .iter()
        .map(|member| u64::try_from(member.weight).unwrap_or(0))
        .sum();
    if limit > 0 && total > limit {
        return Err(Refusal::new(
            Code::ResourceExhausted,
            format!(
                "the members of group {} weigh {total}, at most {limit} fit",
                group.group_id
            ),
        ));
    }
    Ok(())
}

/// Groups of a profile as messages: all, or the one with that number if it is not 0.
pub(crate) fn messages(
    shadow: &Shadow,
    pipeline: &Pipeline,
    profile: u32,
    wanted: u32,
) -> Result<Vec<v1::ActionProfileGroup>, Refusal> {
    pipeline.profile(profile)?;
    Ok(shadow
        .groups
        .range((profile, 0)..=(profile, u32::MAX))
        .filter(|((_, id), _)| wanted == 0 || *id == wanted)
        .map(|(_, group)| group.clone())
        .collect())
}

/// Takes members whose watched port went down out of their groups, and puts those back
/// whose port came up. `shadow.down` are the ports that are down.
pub(crate) fn follow_ports<E: Engine>(
    switch: &mut Switch<E>,
    pipeline: &Pipeline,
    shadow: &Shadow,
) {
    for ((profile, id), group) in &shadow.groups {
        if let Some(index) = pipeline.profiles.get(profile)
            && group.members.iter().any(|member| watched(member).is_some())
            // The group was accepted with all of its members.
            && let Ok(live) = live(group, shadow)
        {
            let state = switch.engine_mut().state_mut();
            let _ = state.modify_group(&index.name, *id, &live);
        }
    }
}

/// A group before an update.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    profile: u32,
    group: u32,
    stored: Option<v1::ActionProfileGroup>,
}

pub(crate) fn before<E: Engine>(
    context: &Context<'_, E>,
    group: &v1::ActionProfileGroup,
) -> Option<Before> {
    let key = (group.action_profile_id, group.group_id);
    Some(Before {
        profile: key.0,
        group: key.1,
        stored: context.shadow.groups.get(&key).cloned(),
    })
}

impl Before {
    pub(crate) fn restore<E: Engine>(self, context: &mut Context<'_, E>) -> Result<(), Refusal> {
        let key = (self.profile, self.group);
        let there = context.shadow.groups.contains_key(&key);
        let (kind, group) = match (self.stored, there) {
            (None, false) => return Ok(()),
            (Some(group), false) => (Type::Insert, group),
            (Some(group), true) => (Type::Modify, group),
            (None, true) => {
                let group = v1::ActionProfileGroup {
                    action_profile_id: self.profile,
                    group_id: self.group,
                    ..v1::ActionProfileGroup::default()
                };
                (Type::Delete, group)
            }
        };
        write(context, kind, &group)
    }
}
