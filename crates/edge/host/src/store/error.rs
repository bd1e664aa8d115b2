//! Why a store server does not start, or stops.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use stateplane_store::{ConfigError, LostEntries};

use super::DiskError;
use crate::deployment::DeploymentError;

/// Why a store server does not start, or stops.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The deployment's file is refused.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The server cannot find its place in the chain.
    #[error(
        "listen address {listen} is not in the chain {chain:?}: add it, or set `position`, counted from 0 at the head"
    )]
    NotInChain {
        /// The listen address.
        listen: Ipv4Addr,
        /// The chain, head first.
        chain: Vec<Ipv4Addr>,
    },
    /// The position belongs to another server.
    #[error(
        "position {position} of the chain is {there}, but this server listens on {listen}: set one of them right"
    )]
    WrongPlace {
        /// The position set.
        position: u8,
        /// The address at that position.
        there: Ipv4Addr,
        /// The listen address.
        listen: Ipv4Addr,
    },
    /// The chain has more replicas than a position can number.
    #[error("the chain has {length} replicas: 255 are the most")]
    LongChain {
        /// Number of addresses.
        length: usize,
    },
    /// An address occurs twice in the chain.
    #[error("{address} stands twice in the chain: a server has one place")]
    TwiceInChain {
        /// The address.
        address: Ipv4Addr,
    },
    /// A class of mappings that does not name its inbound class.
    #[error(
        "class {class} makes mappings, of which the inbound records need a class too: set `inbound_class`"
    )]
    NoInboundClass {
        /// The class.
        class: u8,
    },
    /// A time that does not fit.
    #[error("{name} = {value} is too long: at most {most}")]
    TooLong {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The largest value.
        most: u64,
    },
    /// The parts contradict each other.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// Another socket has the address.
    #[error(
        "{address} (UDP) is in use: end the other process, or set `request_port` and `chain_port`"
    )]
    AddressInUse {
        /// The address.
        address: SocketAddrV4,
    },
    /// No interface has the address.
    #[error(
        "{address} (UDP) is not an address of this machine: set `listen` to one that `ip address` shows"
    )]
    AddressNotAvailable {
        /// The address.
        address: SocketAddrV4,
    },
    /// A socket cannot be opened or bound for another reason.
    #[error("{address} (UDP) cannot be opened: {cause}")]
    Bind {
        /// The address.
        address: SocketAddrV4,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The system refuses to wait for, or receive from, a socket.
    #[error("cannot receive: {0}")]
    Receive(io::Error),
    /// A server under a controller was not given its address.
    #[error("no address: name the server's own with --listen")]
    NoAddress,
    /// The folder that keeps the state cannot be used.
    #[error("{0}")]
    Disk(#[from] DiskError),
    /// The disk lost entries of a chain that no controller changes.
    #[error(
        "{}: the disk has entries up to {}, and another server of the chain knows that it had those up to {}: restore the folder from a copy that has them, or stop all servers of the chain, empty the folder of each, and start with empty state",
        folder.display(), lost.applied, lost.known
    )]
    LostEntries {
        /// The folder.
        folder: PathBuf,
        /// Entries that are missing.
        lost: LostEntries,
    },
    /// The system gives no randomness for the incarnation.
    #[error("cannot draw an incarnation: {0}")]
    Random(io::Error),
}

impl StoreError {
    /// A short stable code, for messages and tests; that of the inner error if
    /// there is one.
    pub fn code(&self) -> &'static str {
        match self {
            StoreError::Deployment(error) => error.code(),
            StoreError::NotInChain { .. } => "H103",
            StoreError::WrongPlace { .. } => "H104",
            StoreError::LongChain { .. } => "H105",
            StoreError::TwiceInChain { .. } => "H106",
            StoreError::NoInboundClass { .. } => "H107",
            StoreError::TooLong { .. } => "H108",
            StoreError::Config(error) => error.code(),
            StoreError::AddressInUse { .. } => "H109",
            StoreError::AddressNotAvailable { .. } => "H110",
            StoreError::Bind { .. } => "H111",
            StoreError::Receive(_) => "H112",
            StoreError::Random(_) => "H113",
            StoreError::NoAddress => "H114",
            StoreError::Disk(error) => error.code(),
            StoreError::LostEntries { .. } => "H123",
        }
    }
}
