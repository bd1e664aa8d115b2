//! Why a file of keys is refused.

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use stateplane_seal::{ConfigError, KeyError, KeyId};

/// Why a file of keys is refused. No message contains a key.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// Others than its owner can read or write a file.
    #[error(
        "{}: others than its owner can get at it (mode {mode:03o}): chmod 600 it, and draw new keys if others may have read it",
        path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file is not TOML, or has other fields.
    #[error("{}: line {line}: {message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1; its text is left out, because it may hold a key.
        line: usize,
        /// Description of the error in that line.
        message: String,
    },
    /// A key that is none.
    #[error("{}: key {key} of peer {peer}: {cause}", path.display())]
    Key {
        /// The file that has it.
        path: PathBuf,
        /// The peer.
        peer: u32,
        /// The key's number.
        key: KeyId,
        /// Description of the error.
        cause: KeyError,
    },
    /// A key that is given in both forms or in none.
    #[error("{}: key {key} of peer {peer}: give it as `hex` or as `file`", path.display())]
    KeySource {
        /// The file.
        path: PathBuf,
        /// The peer.
        peer: u32,
        /// The key's number.
        key: KeyId,
    },
    /// Two peers at one address.
    #[error("{}: peers {first} and {second} have the address {address}: each has its own", path.display())]
    DuplicateAddress {
        /// The file.
        path: PathBuf,
        /// A peer.
        first: u32,
        /// The other.
        second: u32,
        /// The address.
        address: Ipv4Addr,
    },
    /// The keys contradict each other.
    #[error("{}: {cause}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The wrong setting, and how to mend it.
        cause: ConfigError,
    },
    /// The system gives no randomness.
    #[error("cannot draw random values: {0}")]
    Random(io::Error),
}

impl KeysError {
    /// A short stable code, for messages and tests; that of the inner error if
    /// there is one.
    pub fn code(&self) -> &'static str {
        match self {
            KeysError::Read { .. } => "H301",
            KeysError::Open { .. } => "H302",
            KeysError::Parse { .. } => "H303",
            KeysError::Key { .. } => "H304",
            KeysError::KeySource { .. } => "H305",
            KeysError::DuplicateAddress { .. } => "H306",
            KeysError::Config { cause, .. } => cause.code(),
            KeysError::Random(_) => "H307",
        }
    }
}
