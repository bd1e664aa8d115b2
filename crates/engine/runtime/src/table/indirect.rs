//! Entries that run what an action profile holds.

use super::{ActionInfo, Call, EntryId, Invocation, Table};
use crate::error::StateError;
use crate::profile::{self, Profile};
use rustc_hash::FxHashMap;
use stateplane_ir::ActionProfileId;

/// Member, group or set of actions that an entry of a table with an action profile runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// A member.
    Member(u32),
    /// One member of a group, chosen by the selector.
    Group(u32),
    /// One of a set of actions that the entry has to itself, each with its weight, at
    /// least 1 (P4Runtime's one-shot programming of an action selector).
    Set(Vec<(Invocation, u32)>),
}

/// Actions with weights. The actions are the table's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ActionSet {
    calls: Vec<(Call, u32)>,
    /// Each position in `calls` as often as it weighs.
    slots: Box<[u32]>,
}

impl ActionSet {
    /// The call that `hash` chooses; `None` if the set is empty.
    pub(crate) fn choose(&self, hash: u64) -> Option<&Call> {
        let position = profile::choose(&self.slots, hash)?;
        Some(&self.calls[position as usize].0)
    }
}

/// Member or group that an entry runs in place of an action of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Member(u32),
    Group(u32),
    Set(ActionSet),
}

impl Target {
    pub(super) fn describe(&self, actions: &[ActionInfo]) -> Runs {
        match self {
            Target::Member(member) => Runs::Member(*member),
            Target::Group(group) => Runs::Group(*group),
            Target::Set(set) => Runs::Set(
                set.calls
                    .iter()
                    .map(|(call, weight)| (call.describe(actions), *weight))
                    .collect(),
            ),
        }
    }
}

/// Number of entries that run each member and group, and number of actions in sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct References {
    members: FxHashMap<u32, u64>,
    groups: FxHashMap<u32, u64>,
    in_sets: u64,
}

impl References {
    pub(super) fn add(&mut self, target: Option<&Target>) {
        match target {
            None => {}
            Some(Target::Member(id)) => *self.members.entry(*id).or_default() += 1,
            Some(Target::Group(id)) => *self.groups.entry(*id).or_default() += 1,
            Some(Target::Set(set)) => self.in_sets += set.calls.len() as u64,
        }
    }

    pub(super) fn remove(&mut self, target: Option<&Target>) {
        let (uses, id) = match target {
            None => return,
            Some(Target::Member(id)) => (&mut self.members, id),
            Some(Target::Group(id)) => (&mut self.groups, id),
            Some(Target::Set(set)) => {
                self.in_sets -= set.calls.len() as u64;
                return;
            }
        };
        if let Some(count) = uses.get_mut(id) {
            *count -= 1;
            if *count == 0 {
                uses.remove(id);
            }
        }
    }
}

impl Table {
    /// The action profile whose members its entries run.
    pub fn profile(&self) -> Option<ActionProfileId> {
        self.profile.map(|(id, _)| id)
    }

    /// Index of the table among its profile's tables.
    pub(crate) fn slot(&self) -> usize {
        self.profile.map_or(0, |(_, slot)| slot)
    }

    pub(crate) fn target(&self, entry: EntryId) -> Option<&Target> {
        self.entries
            .get(entry.0 as usize)?
            .as_ref()?
            .target
            .as_ref()
    }

    pub(crate) fn runs_member(&self, member: u32) -> bool {
        self.references.members.contains_key(&member)
    }

    pub(crate) fn runs_group(&self, group: u32) -> bool {
        self.references.groups.contains_key(&group)
    }

    /// Actions in the sets of its entries.
    pub(crate) fn actions_in_sets(&self) -> u64 {
        self.references.in_sets
    }

    pub(super) fn check_direct(&self) -> Result<(), StateError> {
        match self.profile {
            None => Ok(()),
            Some(_) => Err(StateError::Indirect {
                table: self.name.clone(),
            }),
        }
    }

    /// Target for `runs`, if `profile` has it.
    fn checked_target(&self, profile: &Profile, runs: &Runs) -> Result<Target, StateError> {
        Ok(match runs {
            Runs::Member(member) => {
                profile.require_member(*member)?;
                Target::Member(*member)
            }
            Runs::Group(group) => {
                profile.require_group(*group)?;
                Target::Group(*group)
            }
            Runs::Set(actions) => {
                profile.require_selector()?;
                let mut calls = Vec::new();
                for (wanted, weight) in actions {
                    let call = profile.call(wanted)?;
                    let action = profile.position(self.slot(), &call);
                    calls.push((Call { action, ..call }, *weight));
                }
                let weights = calls.iter().map(|(_, weight)| *weight);
                let slots = profile::slots(profile.name(), weights)?;
                Target::Set(ActionSet { calls, slots })
            }
        })
    }

    /// Adds an entry that runs what `profile`, its own, holds. `others`: actions in sets
    /// of the entries of all tables of the profile.
    pub(crate) fn insert_indirect(
        &mut self,
        profile: &Profile,
        keys: &[super::KeyMatch],
        priority: u32,
        runs: &Runs,
        others: u64,
    ) -> Result<(), StateError> {
        self.check_entries_mutable()?;
        let target = self.checked_target(profile, runs)?;
        if let Runs::Set(actions) = runs {
            profile.require_room(others, actions.len() as u64)?;
        }
        let keys = self.free_keys(keys, priority)?;
        self.check_room()?;
        self.store(keys, priority, Call::default(), Some(target), false)
    }

    /// Lets an entry run something else that `profile`, its table's, holds.
    pub(crate) fn modify_indirect(
        &mut self,
        profile: &Profile,
        keys: &[super::KeyMatch],
        priority: u32,
        runs: &Runs,
        others: u64,
    ) -> Result<(), StateError> {
        self.check_entries_mutable()?;
        let target = self.checked_target(profile, runs)?;
        let position = self.existing(keys, priority)?;
        self.check_not_const(position)?;
        let Some(Some(stored)) = self.entries.get_mut(position as usize) else {
            return Ok(());
        };
        if let Runs::Set(actions) = runs {
            let before = match &stored.target {
                Some(Target::Set(set)) => set.calls.len() as u64,
                _ => 0,
            };
            profile.require_room(others - before, actions.len() as u64)?;
        }
        self.references.remove(stored.target.as_ref());
        self.references.add(Some(&target));
        stored.target = Some(target);
        self.log.note(position);
        Ok(())
    }
}
