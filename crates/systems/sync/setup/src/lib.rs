//! The parts of a switch that sync needs: the packet generator of the carriers, and the library's identity,
//! incarnation and rates (`p4/lib/sync.p4`).
//!
//! [`Sync`] says it once. A switch's configuration, the simulator and packet tests apply the same
//! one, so that what is simulated is what ships.

#[cfg(test)]
mod tests;

use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_runtime::{Engine, Entry, KeyMatch, StateError, TargetState, Value};
use stateplane_switch::{Generator, Port, Switch, SwitchError};

/// Table whose default action holds number and address of the switch.
const IDENTITY_TABLE: &str = "sync_identity";
const IDENTITY_ACTION: &str = "set_identity";
/// Table with the rates of groups.
const SETTINGS_TABLE: &str = "sync_settings";
const SETTINGS_ACTION: &str = "sync_set";
const INCARNATION: &str = "sync_incarnation";
const READ_ONLY: &str = "sync_read_only";
/// A register with one element for each group.
const GROUPS: &str = "sync_head";

/// Ingress port of the carriers: `SYNC_TICK_PORT` of the library.
pub const TICK_PORT: Port = 506;
/// Port of the engine unless a program says otherwise: `SYNC_CONTROL_PORT` of the library.
pub const CONTROL_PORT: Port = 500;

/// µs from a turn of a group's carrier to that of the next group's, unless a switch's file says
/// otherwise.
pub const GROUP_US: u64 = 100;

/// µs between two turns of a group's carrier in simulations and evaluations.
pub const TURN_US: u64 = 50;

/// Rates of one group (rules 13, 14 of `docs/sync-protocol.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Budget: 2⁻¹⁶ µs for each byte on the wire.
    pub byte_time: u32,
    /// Lowest rate to which losses slow it down.
    pub slowest_byte_time: u32,
    /// µs of a window w.
    pub window_us: u64,
    /// Least t.
    pub finest: u64,
    /// Greatest t; 0 for a view that is exact.
    pub coarsest: u64,
}

impl Default for Rates {
    /// A gigabit a second, an eighth of it under loss; windows of 1 ms; any t that is needed.
    fn default() -> Rates {
        Rates {
            byte_time: 524,
            slowest_byte_time: 4194,
            window_us: 1000,
            finest: 0,
            coarsest: (1 << 40) - 1,
        }
    }
}

/// Settings of sync on one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sync {
    /// Number of the switch.
    pub switch: u32,
    /// IPv4 address at which the engine reaches it.
    pub address: Ipv4Addr,
    /// µs between two turns of a group's carrier, at least 1, with the turns of all groups at once.
    /// `None`: one group's turn each [`GROUP_US`], so that what the carriers take of the switch's time
    /// does not grow with the groups.
    pub turn_us: Option<u64>,
    /// Rates by group; groups without have those of [`Rates::default`].
    pub rates: Vec<(u16, Rates)>,
    /// Writes and cuts are refused: anybody may send messages to the switch (rule 32).
    pub read_only: bool,
}

/// Why a switch cannot be set up for sync.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The switch refuses the generator.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The program has no such table or register of the sync library.
    #[error("{0}; `[sync]` is for programs that include sync.p4")]
    State(#[from] StateError),
}

impl SetupError {
    /// A short stable code, that of the inner error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Switch(error) => error.code(),
            Self::State(error) => error.code(),
        }
    }
}

impl Sync {
    /// Sets everything in `switch`. `incarnation` tells this start of the switch from all others,
    /// and is not 0 (rule 11). With `generates` false the packet generator is left out, for
    /// switches that share a program with one that has it.
    ///
    /// # Errors
    ///
    /// [`SetupError::State`] if the program does not include the library,
    /// [`SetupError::Switch`] if the switch refuses the generator. The parts before it are set.
    pub fn apply<E: Engine>(
        &self,
        switch: &mut Switch<E>,
        incarnation: u32,
        generates: bool,
    ) -> Result<(), SetupError> {
        let state = switch.engine_mut().state_mut();
        self.identify(state, incarnation)?;
        let groups = u32::try_from(state.register(GROUPS)?.size()).unwrap_or(u32::MAX);
        if generates {
            switch.add_generator(self.carriers(groups))?;
        }
        Ok(())
    }

    /// Tells the library which switch it runs on, which start of it, the rates, and whether it
    /// refuses writes and cuts.
    ///
    /// # Errors
    ///
    /// [`StateError`] if the program does not include the library.
    pub fn identify(&self, state: &mut TargetState, incarnation: u32) -> Result<(), StateError> {
        let identity = [
            BigUint::from(self.switch),
            BigUint::from(self.address.to_bits()),
        ];
        let table = state.table_mut(IDENTITY_TABLE)?;
        table.set_default(IDENTITY_ACTION, &identity)?;
        let table = state.table_mut(SETTINGS_TABLE)?;
        for (group, rates) in &self.rates {
            let entry = Entry {
                keys: vec![KeyMatch::Exact(BigUint::from(*group))],
                priority: 0,
                action: SETTINGS_ACTION.into(),
                data: vec![
                    BigUint::from(rates.byte_time),
                    BigUint::from(rates.slowest_byte_time),
                    BigUint::from(rates.window_us),
                    BigUint::from(rates.finest),
                    BigUint::from(rates.coarsest),
                ],
            };
            // An instrumented program may have rates of its own.
            match table.insert(&entry) {
                Err(StateError::Duplicate { .. }) => table.modify(&entry)?,
                inserted => inserted?,
            };
        }
        for (name, value) in [
            (READ_ONLY, u64::from(self.read_only)),
            (INCARNATION, u64::from(incarnation)),
        ] {
            state.register_mut(name)?.write(0, &Value::from(value))?;
        }
        Ok(())
    }

    /// The packet generator of one frame for each group, each of which bears its group.
    fn carriers(&self, groups: u32) -> Generator {
        let turn_us = self.turn_us.unwrap_or(GROUP_US * u64::from(groups));
        Generator {
            spread: self.turn_us.is_none(),
            ..Generator::with_content(TICK_PORT, turn_us, groups, &[], true)
        }
    }
}
