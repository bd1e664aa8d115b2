//! Reasons for which there is nothing to see.

use stateplane_host::ports::PortError;
use std::io;
use std::net::SocketAddr;

/// Reason for which there is nothing to see.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// The capture cannot be read, or has nothing that a switch would count.
    #[error(transparent)]
    Capture(#[from] PortError),
    /// The program in this process does not run.
    #[error("count-min does not run here: {0}")]
    Program(String),
    /// An engine refuses, or does not answer.
    #[error("{message}")]
    Engine {
        /// The refusal's code, if it has one.
        code: Option<String>,
        /// Words of the engine, or of the system.
        message: String,
    },
    /// The page cannot be served.
    #[error("a page cannot be served at {address}: {cause}")]
    Serve {
        /// The address.
        address: SocketAddr,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The terminal, or standard output, fails.
    #[error("terminal or output: {0}")]
    Terminal(#[from] io::Error),
}

impl TopError {
    /// A short stable code, if there is one.
    pub fn code(&self) -> Option<&str> {
        match self {
            TopError::Capture(error) => Some(error.code()),
            TopError::Engine { code, .. } => code.as_deref(),
            TopError::Program(_) | TopError::Serve { .. } | TopError::Terminal(_) => None,
        }
    }
}
