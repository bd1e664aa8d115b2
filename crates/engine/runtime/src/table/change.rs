//! Changes of a table by the control plane.

use super::{Call, Entry, KeyMatch, Table, describe_keys};
use crate::counter::Count;
use crate::error::StateError;
use crate::meter::{MeterConfig, check_config};
use crate::names;
use num_bigint::BigUint;

/// Intended use of an action.
#[derive(Clone, Copy)]
enum Use {
    Entry,
    Default,
}

impl Table {
    /// Adds an entry.
    ///
    /// # Errors
    ///
    /// A [`StateError`] that says what is wrong with its keys, priority, action or
    /// data; [`StateError::Duplicate`], [`StateError::Full`], or
    /// [`StateError::Constant`] if only the program makes entries.
    pub fn insert(&mut self, entry: &Entry) -> Result<(), StateError> {
        self.check_entries_mutable()?;
        self.check_direct()?;
        let keys = self.free_keys(&entry.keys, entry.priority)?;
        let call = self.named_call(&entry.action, &entry.data, Use::Entry)?;
        self.check_room()?;
        self.store(keys, entry.priority, call, None, false)
    }

    /// Normalised keys that no entry has.
    pub(super) fn free_keys(
        &self,
        keys: &[KeyMatch],
        priority: u32,
    ) -> Result<Vec<KeyMatch>, StateError> {
        let keys = self.normalise(keys)?;
        self.check_priority(priority)?;
        if self.find(&keys, priority)?.is_some() {
            return Err(StateError::Duplicate {
                table: self.name.clone(),
                keys: describe_keys(&keys),
            });
        }
        Ok(keys)
    }

    pub(super) fn check_room(&self) -> Result<(), StateError> {
        if self.count < self.size {
            return Ok(());
        }
        Err(StateError::Full {
            table: self.name.clone(),
            size: self.size,
        })
    }

    /// Gives an entry another action or other data. Its counter goes on.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Table::insert`], and [`StateError::NoEntry`].
    pub fn modify(&mut self, entry: &Entry) -> Result<(), StateError> {
        self.check_entries_mutable()?;
        self.check_direct()?;
        let call = self.named_call(&entry.action, &entry.data, Use::Entry)?;
        let position = self.existing(&entry.keys, entry.priority)?;
        self.check_not_const(position)?;
        if let Some(Some(stored)) = self.entries.get_mut(position as usize) {
            stored.call = call;
        }
        self.log.note(position);
        Ok(())
    }

    /// Deletes an entry.
    ///
    /// # Errors
    ///
    /// [`StateError::NoEntry`], [`StateError::Constant`], and those of
    /// [`Table::insert`] about keys.
    pub fn delete(&mut self, keys: &[KeyMatch], priority: u32) -> Result<(), StateError> {
        self.check_entries_mutable()?;
        let position = self.existing(keys, priority)?;
        self.check_not_const(position)?;
        self.remove(position);
        Ok(())
    }

    /// Deletes all entries that the control plane may delete.
    ///
    /// # Errors
    ///
    /// [`StateError::Constant`] if only the program makes entries.
    pub fn clear(&mut self) -> Result<(), StateError> {
        self.check_entries_mutable()?;
        for position in 0..self.entries.len() {
            if matches!(&self.entries[position], Some(entry) if !entry.is_const) {
                self.remove(position as u32);
            }
        }
        Ok(())
    }

    /// Sets the default action.
    ///
    /// # Errors
    ///
    /// [`StateError::Constant`] if the program fixes it, and those of
    /// [`Table::insert`] about actions.
    pub fn set_default(&mut self, action: &str, data: &[BigUint]) -> Result<(), StateError> {
        if self.const_default {
            return Err(self.constant("the default action"));
        }
        self.default = self.named_call(action, data, Use::Default)?;
        self.log.note_default();
        Ok(())
    }

    /// Sets the default action back to the program's.
    ///
    /// # Errors
    ///
    /// [`StateError::Constant`] if the program fixes it.
    pub fn reset_default(&mut self) -> Result<(), StateError> {
        if self.const_default {
            return Err(self.constant("the default action"));
        }
        self.default = self.initial_default.clone();
        self.log.note_default();
        Ok(())
    }

    /// Sets what the direct counter of an entry has counted.
    ///
    /// # Errors
    ///
    /// [`StateError::NoEntry`], or [`StateError::Unsupported`] if the table has no direct
    /// counter.
    pub fn set_count(
        &mut self,
        keys: &[KeyMatch],
        priority: u32,
        count: Count,
    ) -> Result<(), StateError> {
        self.check_counted()?;
        let position = self.existing(keys, priority)?;
        if let Some(Some(stored)) = self.entries.get_mut(position as usize) {
            stored.count = count;
        }
        Ok(())
    }

    /// The configuration of an entry's direct meter, if it has one.
    ///
    /// # Errors
    ///
    /// [`StateError::NoEntry`], and those of [`Table::insert`] about keys.
    pub fn meter(
        &self,
        keys: &[KeyMatch],
        priority: u32,
    ) -> Result<Option<MeterConfig>, StateError> {
        let position = self.existing(keys, priority)?;
        let stored = self.entries.get(position as usize);
        Ok(stored
            .and_then(Option::as_ref)
            .and_then(|stored| stored.meter.config()))
    }

    /// Counts of each color at an entry's direct meter: green, yellow, red.
    ///
    /// # Errors
    ///
    /// [`StateError::NoEntry`], and those of [`Table::insert`] about keys.
    pub fn meter_counts(&self, keys: &[KeyMatch], priority: u32) -> Result<[Count; 3], StateError> {
        let position = self.existing(keys, priority)?;
        let stored = self.entries.get(position as usize);
        let stored = stored.and_then(Option::as_ref);
        Ok(stored.map_or_else(Default::default, |stored| stored.meter.counts()))
    }

    /// Sets what got each color from an entry's direct meter.
    ///
    /// # Errors
    ///
    /// [`StateError::NoEntry`], or [`StateError::Unsupported`] if the table has no direct
    /// meter.
    pub fn set_meter_counts(
        &mut self,
        keys: &[KeyMatch],
        priority: u32,
        counts: [Count; 3],
    ) -> Result<(), StateError> {
        self.check_metered()?;
        let position = self.existing(keys, priority)?;
        if let Some(Some(stored)) = self.entries.get_mut(position as usize) {
            stored.meter.set_counts(counts);
        }
        Ok(())
    }

    pub(super) fn check_counted(&self) -> Result<(), StateError> {
        if self.counted {
            return Ok(());
        }
        Err(StateError::Unsupported {
            what: "counting without a direct counter",
            place: self.name.clone(),
            instead: "declare a direct_counter in the program",
        })
    }

    pub(super) fn check_metered(&self) -> Result<(), StateError> {
        match self.metered_bytes {
            Some(_) => Ok(()),
            None => Err(StateError::Unsupported {
                what: "metering without a direct meter",
                place: self.name.clone(),
                instead: "declare a direct_meter in the program",
            }),
        }
    }

    /// Configures the direct meter of an entry, with full buckets at `now` in µs.
    ///
    /// # Errors
    ///
    /// [`StateError::NoEntry`], [`StateError::MeterConfig`], or
    /// [`StateError::Unsupported`] if the table has no direct meter.
    pub fn set_meter(
        &mut self,
        keys: &[KeyMatch],
        priority: u32,
        config: Option<MeterConfig>,
        now: u64,
    ) -> Result<(), StateError> {
        self.check_metered()?;
        if let Some(config) = &config {
            check_config(&self.name, config)?;
        }
        let position = self.existing(keys, priority)?;
        if let Some(Some(stored)) = self.entries.get_mut(position as usize) {
            stored.meter.configure(config, now);
        }
        Ok(())
    }

    pub(super) fn check_entries_mutable(&self) -> Result<(), StateError> {
        if self.const_entries {
            return Err(self.constant("the set of entries"));
        }
        Ok(())
    }

    pub(super) fn check_not_const(&self, position: u32) -> Result<(), StateError> {
        match &self.entries[position as usize] {
            Some(entry) if entry.is_const => Err(self.constant("this entry")),
            _ => Ok(()),
        }
    }

    fn constant(&self, what: &'static str) -> StateError {
        StateError::Constant {
            table: self.name.clone(),
            what,
        }
    }

    pub(super) fn check_priority(&self, priority: u32) -> Result<(), StateError> {
        let why = match (self.has_priority(), priority) {
            (true, 0) => "has ternary, range or optional keys; give a priority of 1 or more",
            (false, 1..) => "has no ternary, range or optional keys; leave the priority out",
            _ => return Ok(()),
        };
        Err(StateError::Priority {
            table: self.name.clone(),
            why,
        })
    }

    fn named_call(&self, action: &str, data: &[BigUint], wanted: Use) -> Result<Call, StateError> {
        let names = self.actions.iter().map(|action| action.name.as_str());
        let position = match names::positions(names.clone(), action).as_slice() {
            [position] => *position,
            _ => return Err(StateError::unknown_action(&self.owner(), action, names)),
        };
        let info = &self.actions[position];
        let (allowed, place) = match wanted {
            Use::Entry => (info.in_entries, "in entries"),
            Use::Default => (info.as_default, "as default action"),
        };
        if !allowed {
            return Err(StateError::ActionNotAllowed {
                table: self.name.clone(),
                action: info.name.clone(),
                place,
            });
        }
        self.call(position as u32, data)
    }
}
