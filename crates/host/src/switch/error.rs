//! Why a switch does not start, or stops.

use crate::ports::PortError;
use stateplane_switch::SwitchError;
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
        }
    }
}
