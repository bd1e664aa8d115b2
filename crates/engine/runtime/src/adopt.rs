//! State that a new program takes over from the program that it replaces.

use crate::error::StateError;
use crate::state::TargetState;
use crate::table::{Entry, Listed, Table};
use std::fmt;

/// Numbers of adopted and lost items. Objects of the new program alone count in neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Registers, counters, meters and value sets whose contents go on.
    pub objects: u64,
    /// Full names of objects with contents that were lost: the new program has none of that
    /// name, or one of another type.
    pub lost: Vec<String>,
    /// Entries of tables, members and groups of action profiles that were kept.
    pub entries: u64,
    /// Entries that do not fit the new program, or that it has itself.
    pub entries_lost: u64,
}

impl fmt::Display for Adopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Adopted {
            objects,
            lost,
            entries,
            entries_lost,
        } = self;
        write!(
            f,
            "kept {objects} registers, counters, meters and value sets, and {entries} entries"
        )?;
        if *entries_lost > 0 {
            write!(f, "; {entries_lost} entries do not fit")?;
        }
        if !lost.is_empty() {
            write!(f, "; lost: {}", lost.join(", "))?;
        }
        Ok(())
    }
}

impl Adopted {
    fn object(&mut self, name: &str, kept: bool) {
        if kept {
            self.objects += 1
        } else {
            self.lost.push(name.to_owned())
        }
    }

    fn entry(&mut self, outcome: Result<(), StateError>) {
        match outcome {
            Ok(()) => self.entries += 1,
            Err(_) => self.entries_lost += 1,
        }
    }
}

impl TargetState {
    /// Takes over what the state of the program before holds, where names and types agree:
    ///
    /// * registers, counters and meters of the same name and type; where the sizes differ,
    ///   the elements that both have;
    /// * value sets with the same keys;
    /// * members and groups of action profiles, entries of tables with the same keys and
    ///   default actions that the control plane chose, as far as the new program takes
    ///   them. Entries keep their counts, meters and idle timeouts.
    ///
    /// Takes over the state of `before`; declarations of the new program's source take precedence.
    /// `now` is the time in µs. Custom CRCs go on.
    pub fn adopt(&mut self, before: &TargetState, now: u64) -> Adopted {
        let mut adopted = Adopted::default();
        self.custom_crc = before.custom_crc;
        self.adopt_arrays(before, now, &mut adopted);
        self.adopt_profiles(before, &mut adopted);
        for table in before.tables() {
            self.adopt_table(table, now, &mut adopted);
        }
        adopted
    }

    fn adopt_arrays(&mut self, before: &TargetState, now: u64, adopted: &mut Adopted) {
        for old in before.registers() {
            let same = self
                .registers_mut()
                .iter_mut()
                .find(|it| it.name() == old.name() && it.shape() == old.shape());
            adopted.object(old.name(), same.is_some());
            if let Some(new) = same {
                new.copy_from(old);
            }
        }
        let indirect = before.counters().iter().filter(|it| it.table().is_none());
        for old in indirect {
            let found = self.counter_mut(old.name()).ok();
            let same = found.filter(|it| it.name() == old.name() && it.table().is_none());
            adopted.object(old.name(), same.is_some());
            if let Some(new) = same {
                let elements = new.counts_mut().iter_mut().zip(old.counts());
                elements.for_each(|(new, old)| *new = *old);
            }
        }
        let indirect = before.meters().iter().filter(|it| it.table().is_none());
        for old in indirect {
            let found = self.meter_mut(old.name()).ok();
            let same = found.filter(|it| {
                it.name() == old.name()
                    && it.table().is_none()
                    && it.measures_bytes() == old.measures_bytes()
            });
            adopted.object(old.name(), same.is_some());
            if let Some(new) = same {
                for index in 0..new.size().min(old.size()) {
                    if let Ok(Some(config)) = old.read(index) {
                        // It was valid there, and the element exists here.
                        let _ = new.write(index, Some(config), now);
                    }
                }
            }
        }
        for old in before.value_sets() {
            let found = self.value_set_mut(old.name()).ok();
            let same = found.filter(|it| it.name() == old.name() && it.keys() == old.keys());
            let members: Vec<_> = old.members().map(<[_]>::to_vec).collect();
            let kept = same.is_some_and(|new| new.set(&members).is_ok());
            adopted.object(old.name(), kept);
        }
    }

    fn adopt_profiles(&mut self, before: &TargetState, adopted: &mut Adopted) {
        for old in before.profiles() {
            for (id, member) in old.members() {
                adopted.entry(self.insert_member(old.name(), id, &member));
            }
            for (id, group) in old.groups() {
                adopted.entry(self.insert_group(old.name(), id, &group));
            }
        }
    }

    fn adopt_table(&mut self, old: &Table, now: u64, adopted: &mut Adopted) {
        let mutable = old.entries().into_iter().filter(|listed| !listed.is_const);
        let found = self.table_mut(old.name()).ok();
        let same = found.filter(|new| new.name() == old.name() && new.keys() == old.keys());
        let Some(new) = same else {
            adopted.entries_lost += mutable.count() as u64;
            return;
        };
        new.adopt_default_resources(old, now);
        if let Some((action, data)) = old.chosen_default() {
            adopted.entry(new.set_default(&action, &data));
        }
        for listed in mutable {
            let outcome = self.adopt_entry(old, &listed, now);
            adopted.entry(outcome);
        }
    }

    fn adopt_entry(&mut self, old: &Table, listed: &Listed, now: u64) -> Result<(), StateError> {
        let Entry { keys, priority, .. } = &listed.entry;
        match &listed.runs {
            Some(runs) => self.insert_indirect(old.name(), keys, *priority, runs)?,
            None => self.table_mut(old.name())?.insert(&listed.entry)?,
        }
        let new = self.table_mut(old.name())?;
        // Counts, meters and ages that the new program does not have are dropped.
        let _ = new.set_count(keys, *priority, listed.count);
        if let Ok(Some(config)) = old.meter(keys, *priority) {
            let _ = new.set_meter(keys, *priority, Some(config), now);
        }
        let _ = new.set_idle_timeout(keys, *priority, listed.idle_timeout, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
