//! Why a controller does not start, or stops.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use stateplane_chains::SettingsError;

use stateplane_disk::LogError;

/// Why a controller does not start, or stops.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The deployment has no controller.
    #[error("{}: there is no [controller] section: add one with `addresses`", path.display())]
    NoController {
        /// The file.
        path: PathBuf,
    },
    /// The settings contradict each other.
    #[error("controller: {0}")]
    Settings(#[from] SettingsError),
    /// The settings of coordination contradict each other.
    #[error("[coordination]: {0}")]
    Groups(#[from] stateplane_groups::SettingsError),
    /// The settings of multicast contradict each other.
    #[error("[multicast]: {0}")]
    Multicast(#[from] stateplane_multicast_groups::SettingsError),
    /// The deployment has nothing to control.
    #[error(
        "{}: there is no section of a system: add [replication], [coordination] or [multicast]",
        path.display()
    )]
    NoSystem {
        /// The file.
        path: PathBuf,
    },
    /// A request about a system that the deployment does not have.
    #[error("the deployment has no [{0}] section")]
    NotThere(&'static str),
    /// A switch that the section of its system does not name.
    #[error("there is no switch {number} in [{section}]")]
    NoSwitch {
        /// Its number.
        number: u32,
        /// The section.
        section: &'static str,
    },
    /// A store server that was never heard and that no chain names.
    #[error("the controller knows no server {0}: it was never heard, and no chain names it")]
    NoServer(Ipv4Addr),
    /// A group that cannot be founded anew.
    #[error("{0}")]
    Refound(#[from] stateplane_groups::RefoundError),
    /// A group of multicast that cannot be founded anew.
    #[error("{0}")]
    RefoundMulticast(#[from] stateplane_multicast_groups::RefoundError),
    /// A time that does not fit.
    #[error("controller: {name} = {value} is too long: at most {most}")]
    TooLong {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The largest value.
        most: u64,
    },
    /// Servers back a head for too short a time.
    #[error(
        "[replication]: backing_ms = {backing_ms} is shorter than term_ms ({term_ms}), detection_ms ({detection_ms}) and 100 together: with each death of a server the flows of its chains would stop; set it to {least_ms} at least"
    )]
    ShortBacking {
        /// ms of backing.
        backing_ms: u32,
        /// ms of a promise.
        term_ms: u32,
        /// ms of silence after which a server is taken for dead.
        detection_ms: u32,
        /// The least ms of backing.
        least_ms: u32,
    },
    /// The log of decisions cannot be used.
    #[error("log of the controller: {0}")]
    Log(#[from] LogError),
    /// The deployment has several addresses, and the controller was not given its own.
    #[error("the deployment names {count} controllers: name this one's address with --listen")]
    NoAddress {
        /// Number found.
        count: usize,
    },
    /// An address that the deployment does not name.
    #[error("{listen} is not among the controllers of the deployment: add it to `addresses`")]
    WrongAddress {
        /// The address.
        listen: Ipv4Addr,
    },
    /// Several controllers, and nothing that lets one of them lead.
    #[error(
        "the deployment names {count} controllers: add [controller.etcd], or leave one address"
    )]
    NoElection {
        /// Number found.
        count: usize,
    },
    /// A request that only the leader can serve.
    #[error("this controller does not lead: ask the others of the deployment")]
    NoLeader,
    /// The socket cannot be opened.
    #[error("{address} (UDP) cannot be opened: {cause}")]
    Bind {
        /// The address.
        address: SocketAddrV4,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The system refuses to wait for, or receive from, the socket.
    #[error("cannot receive: {0}")]
    Receive(io::Error),
    /// The system gives no randomness.
    #[error("cannot draw an incarnation: {0}")]
    Random(io::Error),
}

impl ControllerError {
    /// A short stable code, for messages and tests; that of the inner error if there
    /// is one.
    pub fn code(&self) -> &'static str {
        match self {
            ControllerError::NoController { .. } => "H401",
            ControllerError::Settings(error) => error.code(),
            ControllerError::Groups(error) => error.code(),
            ControllerError::Multicast(error) => error.code(),
            ControllerError::Refound(error) => error.code(),
            ControllerError::RefoundMulticast(error) => error.code(),
            ControllerError::TooLong { .. } => "H402",
            ControllerError::Log(error) => error.code(),
            ControllerError::Bind { .. } => "H406",
            ControllerError::Receive(_) => "H407",
            ControllerError::Random(_) => "H408",
            ControllerError::NoAddress { .. } => "H409",
            ControllerError::WrongAddress { .. } => "H410",
            ControllerError::NoLeader => "H411",
            ControllerError::NoElection { .. } => "H412",
            ControllerError::NoSystem { .. } => "H414",
            ControllerError::NotThere(_) => "H415",
            ControllerError::NoSwitch { .. } => "H416",
            ControllerError::NoServer(_) => "H417",
            ControllerError::ShortBacking { .. } => "H418",
        }
    }
}
