//! Why a switch does not start, or stops.

use super::SwitchFileError;
use crate::ports::PortError;
use stateplane_setup::Incomplete;
use stateplane_switch::{Port, SwitchError};
use std::io;

/// Why a switch does not start, or stops.
#[derive(Debug, thiserror::Error)]
pub enum SwitchServerError {
    /// A port does not open.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The configuration is refused.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// No ports are given.
    #[error("the switch has no ports: give at least one as NUMBER=INTERFACE")]
    NoPorts,
    /// A port of the switch without an interface.
    #[error("port {0} of the switch has no interface: add {0}=INTERFACE")]
    PortWithoutInterface(Port),
    /// A port that is to pass sealed messages and has no interface.
    #[error("port {0} is to be sealed but has no interface: name one of the ports given")]
    SealedPort(Port),
    /// An interface at a port of which the program takes frames for the host's.
    #[error(
        "port {0} is the replication library's, which takes frames that come by it for the host's own and sends them to the store: give the interface another port, for example one below 500"
    )]
    ReservedPort(Port),
    /// Payloads of multicast that a sealed port cannot send.
    #[error(
        "payloads of multicast of {longest} bytes do not fit, sealed, into what port {port} ({interface}) sends: set `longest` to {room} in the sections `[multicast]` of all switches and of the deployment, or give the interface a greater MTU"
    )]
    LongPayloads {
        /// The port.
        port: Port,
        /// Its interface.
        interface: String,
        /// Bytes of the longest payload, as the file says or without a word of it.
        longest: usize,
        /// Bytes of the longest payload that fits.
        room: usize,
    },
    /// The program is replicated, and the configuration lacks what that needs.
    #[error(transparent)]
    Incomplete(#[from] Incomplete),
    /// No store fitted the switch in the time given at the start.
    #[error(
        "no store fits the switch after {waited_s} s, so its data ports stay down: {}",
        differences.join("; ")
    )]
    Unfit {
        /// Seconds waited.
        waited_s: u64,
        /// The differences, in words.
        differences: Vec<String>,
    },
    /// The configuration file is refused.
    #[error(transparent)]
    File(#[from] SwitchFileError),
    /// The system gives no randomness.
    #[error("cannot draw random values: {0}")]
    Random(io::Error),
    /// A watched register showed no sign of life in the time given at the start.
    #[error(
        "no sign of life in {waited_s} s: register `{register}`[{index}] is not written, so ports {ports:?} stay down; what the program waits for (the state store, if it is replicated) does not answer: check that it runs and that its address and port in the configuration are right"
    )]
    NoSignOfLife {
        /// Seconds waited.
        waited_s: u64,
        /// The register.
        register: String,
        /// Its element.
        index: u64,
        /// The ports that depend on it.
        ports: Vec<Port>,
    },
    /// The control plane cannot be attached.
    #[error("{0}")]
    Control(String),
    /// The system refuses to wait for frames.
    #[error("cannot wait for frames: {0}")]
    Wait(io::Error),
}

impl SwitchServerError {
    /// A short stable code, for messages and tests; that of the inner error if
    /// there is one.
    pub fn code(&self) -> &'static str {
        match self {
            SwitchServerError::Port(error) => error.code(),
            SwitchServerError::Switch(error) => error.code(),
            SwitchServerError::NoPorts => "H211",
            SwitchServerError::Wait(_) => "H212",
            SwitchServerError::PortWithoutInterface(_) => "H213",
            SwitchServerError::Random(_) => "H214",
            SwitchServerError::NoSignOfLife { .. } => "H215",
            SwitchServerError::Control(_) => "H216",
            SwitchServerError::SealedPort(_) => "H217",
            SwitchServerError::LongPayloads { .. } => "H251",
            SwitchServerError::ReservedPort(_) => "H252",
            SwitchServerError::Incomplete(error) => error.code(),
            SwitchServerError::Unfit { .. } => "H219",
            SwitchServerError::File(error) => error.code(),
        }
    }
}
