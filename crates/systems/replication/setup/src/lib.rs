//! The parts of a switch that replication needs: the mirror sessions that hold copies of requests,
//! the packet generator that probes the store, the watches that lower ports, and the library's
//! tables and registers (`p4/lib/replication.p4`); and the heartbeats of its terms ([`Heartbeats`]).
//!
//! [`Replication`] says it once. A switch's configuration file, the simulator, packet tests
//! and benchmarks apply the same one, so that what is simulated is what ships.

mod bound;
mod chain;
mod complete;
mod flows;
mod misuse;
mod terms;
#[cfg(test)]
mod tests;

pub use bound::{BoundError, check_bound};
pub use chain::{Chain, Server};
pub use complete::{Incomplete, check_complete};
pub use flows::Flows;
pub use misuse::{Misuse, check_use};
pub use stateplane_term::Term;
pub use terms::{
    BEAT, HEARTBEAT_PORT, Heartbeats, TERM, Write, element, end_terms, frame, hold_terms, term_of,
};

use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_runtime::{Engine, Shape, StateError, TargetState, Value};
use stateplane_switch::{Generator, MirrorSession, Port, Switch, SwitchError, Watch};
use stateplane_wire::{ethernet, ipv4, replication, udp};

/// Table of the library that holds where each shard's chain begins; its key is the shard.
pub const CHAINS_TABLE: &str = "replication_shards";
/// Action of [`CHAINS_TABLE`] with parameters address, mac, port, epoch and mtu.
pub const CHAIN_ACTION: &str = "chain";

/// Table whose default action holds number and addresses of the switch.
const IDENTITY_TABLE: &str = "replication_identity";
const IDENTITY_ACTION: &str = "set_identity";
const INCARNATION: &str = "replication_incarnation";
/// Register of the µs at which the store last answered a probe of each shard.
const HEARD: &str = "replication_heard";
/// Register of the flows' states.
const VALUE: &str = "slot_value";

/// First of [`HOLD_SESSIONS`] mirror sessions that hold lease requests:
/// `HOLD_SESSION_LEASE` of the library.
pub const HOLD_SESSION_LEASE: u32 = 16;
/// First of [`HOLD_SESSIONS`] mirror sessions that hold writes: `HOLD_SESSION_WRITE` of the
/// library.
pub const HOLD_SESSION_WRITE: u32 = 32;
/// Mirror sessions of each kind, one a transmission; later transmissions use the last.
pub const HOLD_SESSIONS: u32 = 8;
/// Ingress port of the packet generator's probes: `GENERATOR_PORT` of the library.
pub const GENERATOR_PORT: Port = 509;

/// Bytes of all headers of a lease request: Ethernet, IPv4, UDP and the message's.
pub const HEADER_BYTES: u32 = (ethernet::HEADER_LENGTH
    + ipv4::HEADER_LENGTH
    + udp::HEADER_LENGTH
    + replication::HEADER_LENGTH) as u32;

/// Settings of replication on one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// Number of the switch, from 1, which no other switch of the store has.
    pub switch: u32,
    /// IPv4 address at which the store reaches the switch.
    pub address: Ipv4Addr,
    /// MAC address of the switch towards the store.
    pub mac: [u8; 6],
    /// Port towards the store. Held copies pass its egress.
    pub port: Port,
    /// Chains of shards 0, 1, 2, …; none where a controller names them.
    pub chains: Vec<Chain>,
    /// How long copies of requests are held.
    pub hold: Hold,
    /// How the store is probed.
    pub probe: Probe,
}

/// How long a copy of a request waits for the answer before it is sent again (rule 13 of
/// `docs/replication-protocol.md`): `first_us` before the first retransmission, twice as
/// long before each further one, at most `longest_us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// µs before the first retransmission.
    pub first_us: u64,
    /// Most µs before any.
    pub longest_us: u64,
}

impl Default for Hold {
    fn default() -> Self {
        Hold::USUAL
    }
}

impl Hold {
    /// The times where a configuration names none.
    pub const USUAL: Hold = Hold {
        first_us: 20_000,
        longest_us: 500_000,
    };

    /// µs for which the copy of a transmission is held; the first transmission is 0.
    pub fn us(&self, transmission: u32) -> u64 {
        let last = transmission.min(HOLD_SESSIONS - 1);
        self.first_us.saturating_mul(1 << last).min(self.longest_us)
    }
}

/// Probes of the store, and what follows from silence (rule 17 of
/// `docs/replication-protocol.md`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The shard whose chain is probed.
    pub shard: u16,
    /// µs between probes.
    pub period_us: u64,
    /// µs without an answer after which [`Self::ports`] go down.
    pub silence_us: u64,
    /// Data ports that go down; without any, silence has no consequence.
    pub ports: Vec<Port>,
}

impl Default for Probe {
    fn default() -> Self {
        Probe {
            shard: 0,
            period_us: 250_000,
            silence_us: 1_000_000,
            ports: Vec::new(),
        }
    }
}

/// Why a switch cannot be set up for replication.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The switch refuses a session, the generator or the watch.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The program has no such table or register of the replication library.
    #[error("{0}; `[replication]` is for programs that include replication.p4")]
    State(#[from] StateError),
}

impl Replication {
    /// Sets everything in `switch`. `incarnation` tells this start of the switch from all
    /// others, and is not 0. With `generates` false the packet generator is left out, for
    /// switches that share a program with one that has it.
    ///
    /// # Errors
    ///
    /// [`SetupError::State`] if the program is not replicated, [`SetupError::Switch`] if the
    /// switch refuses a part. The parts before it are set.
    pub fn apply<E: Engine>(
        &self,
        switch: &mut Switch<E>,
        incarnation: u32,
        generates: bool,
    ) -> Result<(), SetupError> {
        let state = switch.engine_mut().state_mut();
        self.identify(state, incarnation)?;
        let table = state.table_mut(CHAINS_TABLE)?;
        for (shard, chain) in (0..).zip(&self.chains) {
            table.insert(&chain.entry(shard, self.port))?;
        }
        let state_bytes = state_bytes(state)?;
        for (number, session) in self.sessions(state_bytes) {
            switch.set_mirror_session(number, session)?;
        }
        if generates {
            switch.add_generator(self.generator())?;
        }
        if !self.probe.ports.is_empty() {
            for watch in self.watches() {
                switch.add_watch(watch)?;
            }
        }
        Ok(())
    }

    /// Tells the library which switch it runs on, and which start of it.
    ///
    /// # Errors
    ///
    /// [`StateError`] if the program is not replicated.
    pub fn identify(&self, state: &mut TargetState, incarnation: u32) -> Result<(), StateError> {
        let identity = [
            BigUint::from(self.switch),
            BigUint::from(self.address.to_bits()),
            BigUint::from_bytes_be(&self.mac),
        ];
        state
            .table_mut(IDENTITY_TABLE)?
            .set_default(IDENTITY_ACTION, &identity)?;
        state
            .register_mut(INCARNATION)?
            .write(0, &Value::from(u64::from(incarnation)))
    }

    /// Mirror sessions by number, for flows of `state_bytes` bytes of state.
    pub fn sessions(&self, state_bytes: u32) -> impl Iterator<Item = (u32, MirrorSession)> {
        let session = |truncate, hold_us| MirrorSession {
            egress_port: Some(self.port),
            multicast_group: None,
            truncate: Some(truncate),
            hold_us,
        };
        let hold = self.hold;
        let kinds = [
            (HOLD_SESSION_LEASE, HEADER_BYTES),
            (HOLD_SESSION_WRITE, HEADER_BYTES + state_bytes),
        ];
        kinds.into_iter().flat_map(move |(first, bytes)| {
            (0..HOLD_SESSIONS).map(move |n| (first + n, session(bytes, hold.us(n))))
        })
    }

    /// The packet generator of probes.
    pub fn generator(&self) -> Generator {
        let shard = self.probe.shard.to_be_bytes();
        Generator::with_content(GENERATOR_PORT, self.probe.period_us, 1, &shard, false)
    }

    /// The watches that lower data ports while the store is silent: the chain does not answer
    /// probes, or its head no heartbeats.
    pub fn watches(&self) -> [Watch; 2] {
        let watch = |register: &str, index| Watch {
            register: register.into(),
            index,
            max_age_us: self.probe.silence_us,
            ports: self.probe.ports.clone(),
        };
        [watch(HEARD, self.probe.shard.into()), watch(BEAT, 0)]
    }
}

/// Bytes of a flow's state, by the register that holds it.
fn state_bytes(state: &TargetState) -> Result<u32, StateError> {
    Ok(match state.register(VALUE)?.shape() {
        Shape::Bits(width) => width.div_ceil(8),
        Shape::Struct(_) => 0,
    })
}
