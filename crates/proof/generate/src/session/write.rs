//! Writes of the control plane.

use num_bigint::BigUint;
use stateplane_runtime::{
    Entry, Group, Invocation, KeyMatch, MeterConfig, Runs, StateError, TargetState, Value,
};
use std::fmt;

/// Change by a write to the element of a set that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adds it.
    Insert,
    /// Gives it other contents.
    Modify,
    /// Deletes it; contents of the write are ignored.
    Delete,
}

/// One write of the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Changes an entry of a table.
    Entry {
        /// Kind of the change.
        change: Change,
        /// The table's name.
        table: String,
        /// The entry.
        entry: Entry,
    },
    /// Changes an entry of a table with an action profile.
    Indirect {
        /// Kind of the change.
        change: Change,
        /// The table's name.
        table: String,
        /// One match for each key.
        keys: Vec<KeyMatch>,
        /// Priority, see [`Entry::priority`].
        priority: u32,
        /// Target of the entry.
        runs: Runs,
    },
    /// Changes a member of an action profile or selector.
    Held {
        /// Kind of the change.
        change: Change,
        /// The profile's name.
        profile: String,
        /// The member's number.
        member: u32,
        /// Action of the member.
        action: Invocation,
    },
    /// Changes a group of an action selector.
    Group {
        /// Kind of the change.
        change: Change,
        /// The selector's name.
        selector: String,
        /// The group's number.
        group: u32,
        /// Its members.
        members: Group,
    },
    /// Lets an entry of a table age.
    IdleTimeout {
        /// The table's name.
        table: String,
        /// One match for each key of the entry.
        keys: Vec<KeyMatch>,
        /// The entry's priority.
        priority: u32,
        /// µs without a hit after which it is reported.
        timeout: u64,
    },
    /// Configures the direct meter of an entry, with full buckets at time 0.
    EntryMeter {
        /// The table's name.
        table: String,
        /// One match for each key of the entry.
        keys: Vec<KeyMatch>,
        /// The entry's priority.
        priority: u32,
        /// Rates and bursts.
        config: MeterConfig,
    },
    /// Sets a table's default action.
    Default {
        /// The table's name.
        table: String,
        /// The action's name.
        action: String,
        /// Action data in order.
        data: Vec<BigUint>,
    },
    /// Writes an element of a register.
    Register {
        /// The register's name.
        register: String,
        /// Element number.
        index: u64,
        /// The element.
        value: Value,
    },
    /// Adds a member to a parser value set.
    Member {
        /// The set's name.
        value_set: String,
        /// One match for each key.
        keys: Vec<KeyMatch>,
    },
    /// Configures a meter of an array, with full buckets at time 0.
    Meter {
        /// The meter's name.
        meter: String,
        /// Number of the meter in the array.
        index: u64,
        /// Rates and bursts.
        config: MeterConfig,
    },
}

impl Write {
    /// Does the write.
    ///
    /// # Errors
    ///
    /// Returns the error of the state for a write that it refuses.
    pub fn apply(&self, state: &mut TargetState) -> Result<(), StateError> {
        match self {
            Write::Entry {
                change,
                table,
                entry,
            } => {
                let table = state.table_mut(table)?;
                match change {
                    Change::Insert => table.insert(entry),
                    Change::Modify => table.modify(entry),
                    Change::Delete => table.delete(&entry.keys, entry.priority),
                }
            }
            Write::Indirect {
                change,
                table,
                keys,
                priority,
                runs,
            } => match change {
                Change::Insert => state.insert_indirect(table, keys, *priority, runs),
                Change::Modify => state.modify_indirect(table, keys, *priority, runs),
                Change::Delete => state.table_mut(table)?.delete(keys, *priority),
            },
            Write::Held {
                change,
                profile,
                member,
                action,
            } => match change {
                Change::Insert => state.insert_member(profile, *member, action),
                Change::Modify => state.modify_member(profile, *member, action),
                Change::Delete => state.delete_member(profile, *member),
            },
            Write::Group {
                change,
                selector,
                group,
                members,
            } => match change {
                Change::Insert => state.insert_group(selector, *group, members),
                Change::Modify => state.modify_group(selector, *group, members),
                Change::Delete => state.delete_group(selector, *group),
            },
            Write::IdleTimeout {
                table,
                keys,
                priority,
                timeout,
            } => {
                let table = state.table_mut(table)?;
                table.set_idle_timeout(keys, *priority, Some(*timeout), 0)
            }
            Write::EntryMeter {
                table,
                keys,
                priority,
                config,
            } => {
                let table = state.table_mut(table)?;
                table.set_meter(keys, *priority, Some(*config), 0)
            }
            Write::Default {
                table,
                action,
                data,
            } => state.table_mut(table)?.set_default(action, data),
            Write::Register {
                register,
                index,
                value,
            } => state.register_mut(register)?.write(*index, value),
            Write::Member { value_set, keys } => state.value_set_mut(value_set)?.insert(keys),
            Write::Meter {
                meter,
                index,
                config,
            } => state.meter_mut(meter)?.write(*index, Some(*config), 0),
        }
    }
}

fn data_list(data: &[BigUint]) -> String {
    let data: Vec<String> = data.iter().map(|value| format!("{value:#x}")).collect();
    data.join(", ")
}

fn key_list(keys: &[KeyMatch]) -> String {
    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    keys.join(", ")
}

fn call(action: &str, data: &[BigUint]) -> String {
    format!("{action}({})", data_list(data))
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Change::Insert => "insert",
            Change::Modify => "modify",
            Change::Delete => "delete",
        })
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Write::Entry {
                change,
                table,
                entry,
            } => {
                let (keys, runs) = (key_list(&entry.keys), call(&entry.action, &entry.data));
                let priority = entry.priority;
                write!(
                    f,
                    "{change} entry of {table}, priority {priority}: ({keys}) runs {runs}"
                )
            }
            Write::Indirect {
                change,
                table,
                keys,
                priority,
                runs,
            } => {
                let keys = key_list(keys);
                write!(
                    f,
                    "{change} entry of {table}, priority {priority}: ({keys}) runs {runs:?}"
                )
            }
            Write::Held {
                change,
                profile,
                member,
                action,
            } => {
                let runs = call(&action.action, &action.data);
                write!(f, "{change} member {member} of {profile}: {runs}")
            }
            Write::Group {
                change,
                selector,
                group,
                members,
            } => write!(f, "{change} group {group} of {selector}: {members:?}"),
            Write::IdleTimeout {
                table,
                keys,
                priority,
                timeout,
            } => {
                let keys = key_list(keys);
                write!(
                    f,
                    "entry of {table}, priority {priority}: ({keys}) ages in {timeout} µs"
                )
            }
            Write::EntryMeter {
                table,
                keys,
                priority,
                config,
            } => {
                let keys = key_list(keys);
                write!(
                    f,
                    "meter of {table}, priority {priority}: ({keys}): {config:?}"
                )
            }
            Write::Default {
                table,
                action,
                data,
            } => write!(f, "default of {table}: {}", call(action, data)),
            Write::Register {
                register,
                index,
                value,
            } => write!(f, "register {register}[{index}] = {value:?}"),
            Write::Member { value_set, keys } => {
                write!(f, "member of {value_set}: {}", key_list(keys))
            }
            Write::Meter {
                meter,
                index,
                config,
            } => write!(f, "meter {meter}[{index}]: {config:?}"),
        }
    }
}
