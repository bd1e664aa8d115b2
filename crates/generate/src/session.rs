//! What happens to a switch: its configuration, what the control plane writes, and
//! the frames that arrive.

use num_bigint::BigUint;
use stateplane_switch::{Limits, MIN_FRAME, SwitchConfig};
use stateplane_target::{Entry, KeyMatch, MeterConfig, Port, StateError, TargetState, Value};
use std::fmt;

/// One write of the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Adds an entry to a table.
    Entry {
        /// The table's name.
        table: String,
        /// The entry.
        entry: Entry,
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
    /// What the state says of a write that it refuses.
    pub fn apply(&self, state: &mut TargetState) -> Result<(), StateError> {
        match self {
            Write::Entry { table, entry } => state.table_mut(table)?.insert(entry),
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

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Write::Entry { table, entry } => {
                write!(
                    f,
                    "entry of {table}, priority {}: ({}) runs {}({})",
                    entry.priority,
                    key_list(&entry.keys),
                    entry.action,
                    data_list(&entry.data)
                )
            }
            Write::Default {
                table,
                action,
                data,
            } => write!(f, "default of {table}: {action}({})", data_list(data)),
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

/// A frame that arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time in µs; not before that of an earlier arrival.
    pub at: u64,
    /// The port.
    pub port: Port,
    /// The frame.
    pub frame: Vec<u8>,
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} µs, port {}: ", self.at, self.port)?;
        self.frame
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Everything that a switch with a program is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Determines the pseudo-random numbers of the engines.
    pub seed: u64,
    /// Ports, mirror sessions, multicast groups, limits.
    pub config: SwitchConfig,
    /// Writes of the control plane, before the first frame.
    pub writes: Vec<Write>,
    /// The frames in order of time.
    pub arrivals: Vec<Arrival>,
}

/// Bounds under which programs that clone and recirculate without end still leave a
/// switch that answers in microseconds.
pub const LIMITS: Limits = Limits {
    shortest_frame: MIN_FRAME as u32,
    queue: 16,
    transmit: 64,
    held: 16,
    held_bytes: 64 << 10,
    recirculation: 8,
    resubmission: 8,
    resubmits_per_frame: 4,
    work: 48,
    mirror_sessions: 16,
    multicast_groups: 16,
    replicas: 16,
    generators: 4,
    watches: 4,
};

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.config;
        writeln!(f, "engine seed {}, ports {:?}", self.seed, config.ports)?;
        for (number, session) in &config.mirror_sessions {
            writeln!(f, "mirror session {number}: {session:?}")?;
        }
        for (number, replicas) in &config.multicast_groups {
            writeln!(f, "multicast group {number}: {replicas:?}")?;
        }
        for write in &self.writes {
            writeln!(f, "{write}")?;
        }
        for arrival in &self.arrivals {
            writeln!(f, "{arrival}")?;
        }
        Ok(())
    }
}
