//! The parts of a switch that multicast needs: the mirror sessions that hold copies of entries or
//! bring packets back at once, and the library's identity and incarnation (`p4/lib/multicast.p4`).
//!
//! [`Multicast`] says them once; [`Rows`] has what changes as groups do: the groups of which the
//! switch is a member, the targets of copies with their replication groups, leaders and sessions.
//! A switch's configuration file, the simulator and packet tests apply the same ones, so that what
//! is simulated is what ships.

mod rows;
#[cfg(test)]
mod tests;

pub use rows::{Group, Hop, Member, Rows, hop};

use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_runtime::{Engine, StateError, TargetState, Value};
use stateplane_switch::{MirrorSession, Port, Switch, SwitchError};

/// Table whose default action holds the address of the switch.
const IDENTITY_TABLE: &str = "multicast_identity";
const IDENTITY_ACTION: &str = "set_identity";
const INCARNATION: &str = "multicast_incarnation";

/// First of [`HOLD_SESSIONS`] mirror sessions that hold copies: `MULTICAST_HOLD` of the library.
pub const HOLD_SESSION: u32 = 48;
/// Mirror sessions, one a return of the copy; later returns use the last: `MULTICAST_HOLDS` of the
/// library.
pub const HOLD_SESSIONS: u32 = 8;
/// Mirror session of packets that come back at once: `MULTICAST_AGAIN` of the library.
pub const AGAIN_SESSION: u32 = 56;

/// Time for which the copy of an entry waits before its leader sends what someone lacks (rule 23 of
/// `docs/multicast-protocol.md`): `first_us` at first, twice as long after each return, at most
/// `longest_us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// µs before the first return.
    pub first_us: u64,
    /// Longest time between two returns, in µs.
    pub longest_us: u64,
}

impl Default for Hold {
    /// 2 ms, and at most 16 ms.
    fn default() -> Hold {
        Hold {
            first_us: 2_000,
            longest_us: 16_000,
        }
    }
}

impl Hold {
    /// µs for which a copy waits that came back `returns` times.
    pub fn us(&self, returns: u32) -> u64 {
        let times = 1u64.checked_shl(returns).unwrap_or(u64::MAX);
        self.first_us.saturating_mul(times).min(self.longest_us)
    }
}

/// Settings of multicast on one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multicast {
    /// IPv4 address at which hosts, controller and other switches reach it.
    pub address: Ipv4Addr,
    /// Port whose egress held copies pass.
    pub port: Port,
    /// How long copies are held.
    pub hold: Hold,
}

/// Why a switch cannot be set up for multicast.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The switch refuses a session or a replication group.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The program has no such table or register of the multicast library.
    #[error("{0}; `[multicast]` is for programs that include multicast.p4 and router.p4")]
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

impl Multicast {
    /// Sets everything in `switch`. `incarnation` tells this start of the switch from all others,
    /// and is not 0 (rule 5).
    ///
    /// # Errors
    ///
    /// [`SetupError::State`] if the program does not include the library,
    /// [`SetupError::Switch`] if the switch refuses a session. The parts before it are set.
    pub fn apply<E: Engine>(
        &self,
        switch: &mut Switch<E>,
        incarnation: u32,
    ) -> Result<(), SetupError> {
        self.identify(switch.engine_mut().state_mut(), incarnation)?;
        for (number, session) in self.sessions() {
            switch.set_mirror_session(number, session)?;
        }
        Ok(())
    }

    /// Tells the library which switch it runs on, and which start of it.
    ///
    /// # Errors
    ///
    /// [`StateError`] if the program does not include the library.
    pub fn identify(&self, state: &mut TargetState, incarnation: u32) -> Result<(), StateError> {
        let table = state.table_mut(IDENTITY_TABLE)?;
        table.set_default(IDENTITY_ACTION, &[BigUint::from(self.address.to_bits())])?;
        let register = state.register_mut(INCARNATION)?;
        register.write(0, &Value::from(u64::from(incarnation)))
    }

    /// The mirror sessions with their numbers. Copies are whole: they keep the payload.
    pub fn sessions(&self) -> impl Iterator<Item = (u32, MirrorSession)> {
        let session = |hold_us| MirrorSession {
            egress_port: Some(self.port),
            multicast_group: None,
            truncate: None,
            hold_us,
        };
        let again = core::iter::once((AGAIN_SESSION, session(0)));
        (0..HOLD_SESSIONS)
            .map(move |returns| (HOLD_SESSION + returns, session(self.hold.us(returns))))
            .chain(again)
    }
}
