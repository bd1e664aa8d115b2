//! Action profiles together with the tables whose entries run what they hold.

use crate::error::{Kind, StateError};
use crate::names;
use crate::profile::{Group, Profile};
use crate::state::TargetState;
use crate::table::{EntryId, Invocation, KeyMatch, Runs, Target};
use stateplane_ir::{ActionProfileId, Selector, TableId};

impl TargetState {
    fn profile_position(&self, name: &str) -> Result<usize, StateError> {
        let names = self.profiles.iter().map(Profile::name);
        names::find(Kind::ActionProfile, names, name)
    }

    /// The action profile or selector `name`.
    ///
    /// # Errors
    ///
    /// [`StateError::Unknown`] or [`StateError::Ambiguous`].
    pub fn profile(&self, name: &str) -> Result<&Profile, StateError> {
        Ok(&self.profiles[self.profile_position(name)?])
    }

    /// Adds member number `member` to the profile `name`.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such profile, or no room in it, or if the member exists; and
    /// for a wrong action, which all tables of the profile must list.
    pub fn insert_member(
        &mut self,
        name: &str,
        member: u32,
        action: &Invocation,
    ) -> Result<(), StateError> {
        let position = self.profile_position(name)?;
        let others = self.actions_in_sets(position);
        self.profiles[position].insert_member(member, action, others)
    }

    /// Gives a member another action or other data; all entries and groups that name it
    /// run that from the next packet on.
    ///
    /// # Errors
    ///
    /// As [`TargetState::insert_member`], and that there is no such member.
    pub fn modify_member(
        &mut self,
        name: &str,
        member: u32,
        action: &Invocation,
    ) -> Result<(), StateError> {
        let position = self.profile_position(name)?;
        self.profiles[position].modify_member(member, action)
    }

    /// Deletes a member.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such profile or member, and [`StateError::InUse`] while an
    /// entry or group names the member.
    pub fn delete_member(&mut self, name: &str, member: u32) -> Result<(), StateError> {
        let position = self.profile_position(name)?;
        let in_entries = self
            .tables_of(position)
            .any(|table| self.tables[table].runs_member(member));
        self.profiles[position].delete_member(member, in_entries)
    }

    /// Adds group number `group` to the selector `name`. A packet that hits an entry with
    /// a group without members runs no action.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such selector, or no room in it, if the group exists or one
    /// of its members does not, and [`StateError::Weights`].
    pub fn insert_group(
        &mut self,
        name: &str,
        group: u32,
        members: &Group,
    ) -> Result<(), StateError> {
        let position = self.profile_position(name)?;
        self.profiles[position].insert_group(group, members)
    }

    /// Gives a group other members.
    ///
    /// # Errors
    ///
    /// As [`TargetState::insert_group`], and that there is no such group.
    pub fn modify_group(
        &mut self,
        name: &str,
        group: u32,
        members: &Group,
    ) -> Result<(), StateError> {
        let position = self.profile_position(name)?;
        self.profiles[position].modify_group(group, members)
    }

    /// Deletes a group.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such selector or group, and [`StateError::InUse`] while an
    /// entry names it.
    pub fn delete_group(&mut self, name: &str, group: u32) -> Result<(), StateError> {
        let position = self.profile_position(name)?;
        let in_entries = self
            .tables_of(position)
            .any(|table| self.tables[table].runs_group(group));
        self.profiles[position].delete_group(group, in_entries)
    }

    /// Adds an entry that runs what the action profile of `table` holds. The entry's keys,
    /// without those of the selector, and priority are as in
    /// [`Table::insert`](crate::Table::insert).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Table::insert`](crate::Table::insert) about keys and room;
    /// [`StateError::NotIndirect`]; and an error if the profile lacks the member or group of the
    /// entry, or has no room for its set of actions.
    pub fn insert_indirect(
        &mut self,
        table: &str,
        keys: &[KeyMatch],
        priority: u32,
        runs: &Runs,
    ) -> Result<(), StateError> {
        let (table, profile) = self.indirect_table(table)?;
        let others = self.actions_in_sets(profile);
        let profile = &self.profiles[profile];
        self.tables[table].insert_indirect(profile, keys, priority, runs, others)
    }

    /// Lets an entry run something else that the action profile of `table` holds.
    ///
    /// # Errors
    ///
    /// As [`TargetState::insert_indirect`], and [`StateError::NoEntry`].
    pub fn modify_indirect(
        &mut self,
        table: &str,
        keys: &[KeyMatch],
        priority: u32,
        runs: &Runs,
    ) -> Result<(), StateError> {
        let (table, profile) = self.indirect_table(table)?;
        let others = self.actions_in_sets(profile);
        let profile = &self.profiles[profile];
        self.tables[table].modify_indirect(profile, keys, priority, runs, others)
    }

    /// Positions of the table `name` and of its action profile.
    fn indirect_table(&self, name: &str) -> Result<(usize, usize), StateError> {
        let names = self.tables.iter().map(|table| table.name());
        let position = names::find(Kind::Table, names, name)?;
        match self.tables[position].profile() {
            Some(profile) => Ok((position, profile.index())),
            None => Err(StateError::NotIndirect {
                table: self.tables[position].name().to_owned(),
            }),
        }
    }

    /// Positions of the tables of a profile.
    fn tables_of(&self, profile: usize) -> impl Iterator<Item = usize> {
        let wanted = Some(ActionProfileId(profile as u32));
        let tables = self.tables.iter().enumerate();
        tables.filter_map(move |(at, table)| (table.profile() == wanted).then_some(at))
    }

    fn actions_in_sets(&self, profile: usize) -> u64 {
        self.tables_of(profile)
            .map(|table| self.tables[table].actions_in_sets())
            .sum()
    }

    /// Selector for the action of a found entry, if the action depends on the hash of the table's
    /// selector keys.
    pub fn selector_at(&self, table: TableId, entry: Option<EntryId>) -> Option<Selector> {
        let table = &self.tables[table.index()];
        match table.target(entry?)? {
            Target::Member(_) => None,
            Target::Group(_) | Target::Set(_) => self.profiles[table.profile()?.index()].selector(),
        }
    }

    /// Position among [`Table::actions`](crate::Table::actions) and data words of what a
    /// found entry runs, or with `None` of the default action. `hash` is that of the
    /// selector keys, if [`TargetState::selector_at`] asks for one. `None` if nothing is
    /// run, because a group is empty.
    pub fn action_at(
        &self,
        table: TableId,
        entry: Option<EntryId>,
        hash: u64,
    ) -> Option<(u32, &[u128])> {
        let table = &self.tables[table.index()];
        let Some(target) = entry.and_then(|entry| table.target(entry)) else {
            return Some(table.action(entry));
        };
        let profile = &self.profiles[table.profile()?.index()];
        let member = match target {
            Target::Member(member) => *member,
            Target::Group(group) => profile.choose(*group, hash)?,
            Target::Set(set) => {
                let call = set.choose(hash)?;
                return Some((call.action, &call.data));
            }
        };
        profile.member(table.slot(), member)
    }

    /// True if some table has entries that age.
    pub fn is_aging(&self) -> bool {
        self.tables.iter().any(|table| table.is_aging())
    }

    /// Reports entries whose idle timeout has passed at `now`, in µs, in
    /// [`TargetState::idle`]. To be called every [`SWEEP_US`](crate::SWEEP_US).
    pub fn sweep_idle(&mut self, now: u64) {
        let TargetState { tables, idle, .. } = self;
        for table in tables {
            table.sweep(now, |entry| idle.push_with(|| entry));
        }
    }
}

#[cfg(test)]
mod tests;
