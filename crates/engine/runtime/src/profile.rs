//! Action profiles and selectors: members, and groups of which a hash chooses one.

use crate::error::StateError;
use crate::table::{ActionInfo, Call, Changes, Invocation, Log, action_info, invoke};
use rustc_hash::FxHashMap;
use stateplane_ir::{ActionProfileId, Program, Selector};
use std::collections::BTreeMap;

/// Sum of the weights of a group or of an action set.
pub const MAX_GROUP_WEIGHT: u64 = 1 << 16;

/// A group as the control plane writes and reads it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Group {
    /// Members with their weights, each at least 1; no member twice.
    pub members: Vec<(u32, u32)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct StoredGroup {
    members: Vec<(u32, u32)>,
    /// Each member as often as it weighs: what the hash chooses from.
    slots: Box<[u32]>,
}

/// A member: one of [`Profile::actions`] with its data in words.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Member(Call);

/// An action profile with its members and, if it has a selector, groups.
///
/// Entries of all tables that name it as their implementation may run its members. The
/// [state](crate::TargetState) changes it, since entries must never name a member or
/// group that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    name: String,
    size: u64,
    selector: Option<Selector>,
    /// Actions that all tables of the profile list for entries.
    actions: Vec<ActionInfo>,
    /// For each table of the profile in turn: positions of `actions` in
    /// [`Table::actions`](crate::Table::actions).
    positions: Vec<Vec<u32>>,
    members: FxHashMap<u32, Member>,
    groups: FxHashMap<u32, StoredGroup>,
    /// Numbers of members, and of groups, that changed.
    member_log: Log,
    group_log: Log,
}

impl Profile {
    pub(crate) fn new(program: &Program, id: ActionProfileId) -> Result<Profile, StateError> {
        let def = &program.action_profiles[id.index()];
        let users: Vec<_> = users(program, id).collect();
        let mut actions = Vec::new();
        let mut positions = vec![Vec::new(); users.len()];
        let first = users.first().map_or(&[][..], |table| &table.actions);
        for listed in first {
            let found: Option<Vec<u32>> = users
                .iter()
                .map(|table| {
                    let mut actions = table.actions.iter();
                    let at = actions
                        .position(|other| other.action == listed.action && other.in_entries)?;
                    Some(at as u32)
                })
                .collect();
            let Some(found) = found else { continue };
            actions.push(action_info(program, listed));
            for (positions, position) in positions.iter_mut().zip(found) {
                positions.push(position);
            }
        }
        Ok(Profile {
            name: def.name.clone(),
            size: def.size,
            selector: def.selector,
            actions,
            positions,
            members: FxHashMap::default(),
            groups: FxHashMap::default(),
            member_log: Log::default(),
            group_log: Log::default(),
        })
    }

    /// Full control-plane name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Greatest number of members.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Selector for members of groups; `None` if the profile has none.
    pub fn selector(&self) -> Option<Selector> {
        self.selector
    }

    /// Actions that members may run: those that all its tables list for entries.
    pub fn actions(&self) -> &[ActionInfo] {
        &self.actions
    }

    /// Members by number.
    pub fn members(&self) -> BTreeMap<u32, Invocation> {
        let members = self.members.iter();
        members
            .map(|(id, Member(call))| (*id, call.describe(&self.actions)))
            .collect()
    }

    /// Action and data of the member with that number; `None` if there is none.
    pub fn invocation(&self, member: u32) -> Option<Invocation> {
        let Member(call) = self.members.get(&member)?;
        Some(call.describe(&self.actions))
    }

    /// Groups by number.
    pub fn groups(&self) -> BTreeMap<u32, Group> {
        let groups = self.groups.iter();
        groups
            .map(|(id, group)| {
                let members = group.members.clone();
                (*id, Group { members })
            })
            .collect()
    }

    /// Position in its table's actions and data words of what a member runs in the
    /// profile's table number `slot`; `None` if there is no such member.
    pub(crate) fn member(&self, slot: usize, member: u32) -> Option<(u32, &[u128])> {
        let Member(call) = self.members.get(&member)?;
        let position = self.positions.get(slot)?.get(call.action as usize)?;
        Some((*position, &call.data))
    }

    /// The member that `hash` chooses; `None` if the group is empty or missing.
    pub(crate) fn choose(&self, group: u32, hash: u64) -> Option<u32> {
        choose(&self.groups.get(&group)?.slots, hash)
    }

    /// Position of an action in the profile's table number `slot`.
    pub(crate) fn position(&self, slot: usize, call: &Call) -> u32 {
        self.positions[slot][call.action as usize]
    }

    /// The checked call of an action that members may run.
    pub(crate) fn call(&self, wanted: &Invocation) -> Result<Call, StateError> {
        let owner = format!("action profile `{}`", self.name);
        invoke(&owner, &self.actions, wanted)
    }

    pub(crate) fn require_member(&self, member: u32) -> Result<(), StateError> {
        if self.members.contains_key(&member) {
            return Ok(());
        }
        Err(StateError::NoProfileMember {
            profile: self.name.clone(),
            member,
        })
    }

    pub(crate) fn require_group(&self, group: u32) -> Result<(), StateError> {
        self.require_selector()?;
        if self.groups.contains_key(&group) {
            return Ok(());
        }
        Err(StateError::NoGroup {
            profile: self.name.clone(),
            group,
        })
    }

    pub(crate) fn require_selector(&self) -> Result<(), StateError> {
        if self.selector.is_some() {
            return Ok(());
        }
        Err(StateError::Unsupported {
            what: "a group",
            place: self.name.clone(),
            instead: "it is an action_profile; an action_selector has groups",
        })
    }

    /// Checks that `more` members have room beside the present ones and `others`.
    pub(crate) fn require_room(&self, others: u64, more: u64) -> Result<(), StateError> {
        let size = self.size;
        if (self.members.len() as u64 + others).saturating_add(more) <= size {
            return Ok(());
        }
        Err(StateError::FullProfile {
            profile: self.name.clone(),
            size,
        })
    }

    pub(crate) fn insert_member(
        &mut self,
        member: u32,
        action: &Invocation,
        others: u64,
    ) -> Result<(), StateError> {
        let call = self.call(action)?;
        if self.members.contains_key(&member) {
            return Err(self.exists("member", member));
        }
        self.require_room(others, 1)?;
        self.members.insert(member, Member(call));
        self.member_log.note(member);
        Ok(())
    }

    pub(crate) fn modify_member(
        &mut self,
        member: u32,
        action: &Invocation,
    ) -> Result<(), StateError> {
        let call = self.call(action)?;
        self.require_member(member)?;
        self.members.insert(member, Member(call));
        self.member_log.note(member);
        Ok(())
    }

    /// `in_entries`: whether some entry runs the member.
    pub(crate) fn delete_member(
        &mut self,
        member: u32,
        in_entries: bool,
    ) -> Result<(), StateError> {
        self.require_member(member)?;
        let mut groups = self.groups.values();
        let in_group = groups.any(|group| group.members.iter().any(|(id, _)| *id == member));
        if in_entries || in_group {
            return Err(self.in_use("member", member));
        }
        self.members.remove(&member);
        self.member_log.note(member);
        Ok(())
    }

    pub(crate) fn insert_group(&mut self, id: u32, group: &Group) -> Result<(), StateError> {
        let stored = self.stored(group)?;
        if self.groups.contains_key(&id) {
            return Err(self.exists("group", id));
        }
        if self.groups.len() as u64 >= self.size {
            return Err(StateError::FullProfile {
                profile: self.name.clone(),
                size: self.size,
            });
        }
        self.groups.insert(id, stored);
        self.group_log.note(id);
        Ok(())
    }

    pub(crate) fn modify_group(&mut self, id: u32, group: &Group) -> Result<(), StateError> {
        let stored = self.stored(group)?;
        self.require_group(id)?;
        self.groups.insert(id, stored);
        self.group_log.note(id);
        Ok(())
    }

    /// `in_entries`: whether some entry runs the group.
    pub(crate) fn delete_group(&mut self, id: u32, in_entries: bool) -> Result<(), StateError> {
        self.require_group(id)?;
        if in_entries {
            return Err(self.in_use("group", id));
        }
        self.groups.remove(&id);
        self.group_log.note(id);
        Ok(())
    }

    /// Makes the members those of `first`, whose fellow's the profile is.
    pub(crate) fn follow_members(&mut self, first: &Profile) {
        follow(
            (&mut self.members, &mut self.member_log),
            (&first.members, &first.member_log),
        );
    }

    /// Makes the groups those of `first`, whose fellow's the profile is.
    pub(crate) fn follow_groups(&mut self, first: &Profile) {
        follow(
            (&mut self.groups, &mut self.group_log),
            (&first.groups, &first.group_log),
        );
    }

    fn stored(&self, group: &Group) -> Result<StoredGroup, StateError> {
        self.require_selector()?;
        for (position, (member, _)) in group.members.iter().enumerate() {
            self.require_member(*member)?;
            if group.members[..position].iter().any(|(id, _)| id == member) {
                return Err(self.exists("member", *member));
            }
        }
        let weights = group.members.iter().map(|(_, weight)| *weight);
        Ok(StoredGroup {
            slots: slots(&self.name, weights)?
                .iter()
                .map(|position| group.members[*position as usize].0)
                .collect(),
            members: group.members.clone(),
        })
    }

    fn exists(&self, what: &'static str, id: u32) -> StateError {
        StateError::ProfileExists {
            profile: self.name.clone(),
            what,
            id,
        }
    }

    fn in_use(&self, what: &'static str, id: u32) -> StateError {
        StateError::InUse {
            profile: self.name.clone(),
            what,
            id,
        }
    }
}

/// Makes a map with its log of changes as `first`.
fn follow<T: Clone>(
    (map, log): (&mut FxHashMap<u32, T>, &mut Log),
    (first, first_log): (&FxHashMap<u32, T>, &Log),
) {
    let version = first_log.version();
    if log.version() == version {
        return;
    }
    match first_log.since(log.version()) {
        Changes::Some(changed) => {
            for id in changed {
                match first.get(id) {
                    Some(value) => map.insert(*id, value.clone()),
                    None => map.remove(id),
                };
                log.note(*id);
            }
        }
        Changes::Many => {
            map.clone_from(first);
            log.skip_to(version);
        }
    }
}

/// Tables whose entries run what the profile holds, in the order of the program.
pub(crate) fn users(
    program: &Program,
    id: ActionProfileId,
) -> impl Iterator<Item = &stateplane_ir::Table> {
    let tables = program.tables.iter();
    tables.filter(move |table| table.implementation == Some(id))
}

/// Each position as often as it weighs.
pub(crate) fn slots(
    profile: &str,
    weights: impl Iterator<Item = u32> + Clone,
) -> Result<Box<[u32]>, StateError> {
    let total: u64 = weights.clone().map(u64::from).sum();
    let zero = weights.clone().any(|weight| weight == 0);
    if zero || total > MAX_GROUP_WEIGHT {
        return Err(StateError::Weights {
            profile: profile.to_owned(),
            limit: MAX_GROUP_WEIGHT,
        });
    }
    Ok((0u32..)
        .zip(weights)
        .flat_map(|(position, weight)| std::iter::repeat_n(position, weight as usize))
        .collect())
}

/// Choice of BMv2: the hash modulo the number of slots.
pub(crate) fn choose(slots: &[u32], hash: u64) -> Option<u32> {
    let at = hash.checked_rem(slots.len() as u64)?;
    slots.get(at as usize).copied()
}
