//! The parts of a switch that coordination needs: the mirror session of copies that become further
//! messages, the packet generators of leases and of copies for joiners, and the library's
//! identity and incarnation (`p4/lib/coordination.p4`).
//!
//! [`Coordination`] says it once. A switch's configuration file, the simulator and packet tests
//! apply the same one, so that what is simulated is what ships.

#[cfg(test)]
mod tests;

use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_runtime::{Engine, StateError, TargetState, Value};
use stateplane_switch::{Generator, MirrorSession, Port, Switch, SwitchError};

/// Table whose default action holds number and address of the switch.
const IDENTITY_TABLE: &str = "coordination_identity";
const IDENTITY_ACTION: &str = "set_identity";
const INCARNATION: &str = "coordination_incarnation";
/// A register with one element for each group.
const GROUPS: &str = "group_epoch";

/// Mirror session of copies that become further messages: `COORDINATION_SESSION` of the library.
pub const SESSION: u32 = 40;
/// Ingress port of generated frames: `COORDINATION_TICK_PORT` of the library.
pub const TICK_PORT: Port = 507;
/// Kind of the frames that begin rounds of promises: `TICK_LEASE` of the library.
pub const TICK_LEASE: u8 = 1;
/// Kind of the frames that go on with a copy: `TICK_COPY` of the library.
pub const TICK_COPY: u8 = 2;

/// µs between rounds of promises: a quarter of the time that a promise lasts (rule 14 of
/// `docs/coordination-protocol.md`).
pub const LEASE_PERIOD_US: u64 = 12_500;
/// µs before what a joiner did not answer is sent again (rule 15).
pub const COPY_PERIOD_US: u64 = 1_000;

/// Bytes of a copy that becomes another message. Which one comes with it as preserved metadata, so
/// that the headers behind may be cut.
const COPY_BYTES: u32 = 64;

/// Settings of coordination on one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordination {
    /// Number of the switch, from 1, which no other switch of the service has.
    pub switch: u32,
    /// IPv4 address at which clients, controller and other switches reach it.
    pub address: Ipv4Addr,
    /// Port whose egress copies pass.
    pub port: Port,
}

/// Why a switch cannot be set up for coordination.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The switch refuses the session or a generator.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The program has no such table or register of the coordination library.
    #[error("{0}; `[coordination]` is for programs that include coordination.p4")]
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

impl Coordination {
    /// Sets everything in `switch`. `incarnation` tells this start of the switch from all others,
    /// and is not 0 (rule 16). With `generates` false the packet generators are left out, for
    /// switches that share a program with one that has them.
    ///
    /// # Errors
    ///
    /// [`SetupError::State`] if the program does not include the library,
    /// [`SetupError::Switch`] if the switch refuses a part. The parts before it are set.
    pub fn apply<E: Engine>(
        &self,
        switch: &mut Switch<E>,
        incarnation: u32,
        generates: bool,
    ) -> Result<(), SetupError> {
        let state = switch.engine_mut().state_mut();
        self.identify(state, incarnation)?;
        let groups = u32::try_from(state.register(GROUPS)?.size()).unwrap_or(u32::MAX);
        switch.set_mirror_session(SESSION, self.session())?;
        if generates {
            switch.add_generator(tick(TICK_LEASE, LEASE_PERIOD_US, groups))?;
            switch.add_generator(tick(TICK_COPY, COPY_PERIOD_US, 1))?;
        }
        Ok(())
    }

    /// Tells the library which switch it runs on, and which start of it.
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
        let register = state.register_mut(INCARNATION)?;
        register.write(0, &Value::from(u64::from(incarnation)))
    }

    /// The mirror session of number [`SESSION`].
    pub fn session(&self) -> MirrorSession {
        MirrorSession {
            egress_port: Some(self.port),
            multicast_group: None,
            truncate: Some(COPY_BYTES),
            hold_us: 0,
        }
    }
}

/// The packet generator of `batch` frames of one kind each `period_us` µs; each bears its place in
/// the batch.
fn tick(kind: u8, period_us: u64, batch: u32) -> Generator {
    Generator::with_content(TICK_PORT, period_us, batch, &[kind, 0], true)
}
