//! Why an engine does not start, and why a request of a client is refused.

use std::io;
use std::net::SocketAddrV4;
use std::path::PathBuf;

use stateplane_disk::LogError;
use stateplane_sync::{SettingsError, WriteError};

/// Why an engine does not start, or stops.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The file cannot be read.
    #[error("{} cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The file is no configuration of an engine.
    #[error("{}: {cause}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Mistake in it.
        cause: Box<toml::de::Error>,
    },
    /// A setting is out of its range.
    #[error("{}{field} must be {must}", of_section(group))]
    Setting {
        /// Name of the group or flows; empty for the whole file.
        group: String,
        /// The setting.
        field: &'static str,
        /// Its range.
        must: String,
    },
    /// There is not one place for what outlives the engine.
    #[error(
        "`data`, a folder of this engine alone, and [etcd], which several share: {there} there, and \
         one of them has to be"
    )]
    Place {
        /// Which are there.
        there: &'static str,
    },
    /// The log cannot be used.
    #[error("log of the engine: {0}")]
    Log(#[from] LogError),
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
    #[error("cannot draw a number: {0}")]
    Random(io::Error),
}

impl SyncError {
    /// A short stable code, for messages and tests; that of the inner error if there is one.
    pub fn code(&self) -> &'static str {
        match self {
            SyncError::Read { .. } => "H501",
            SyncError::Parse { .. } => "H502",
            SyncError::Setting { .. } => "H503",
            SyncError::Place { .. } => "H507",
            SyncError::Log(error) => error.code(),
            SyncError::Bind { .. } => "H504",
            SyncError::Receive(_) => "H505",
            SyncError::Random(_) => "H506",
        }
    }

    pub(super) fn setting(group: &str, error: SettingsError) -> SyncError {
        SyncError::Setting {
            group: group.to_owned(),
            field: error.field,
            must: error.must.to_owned(),
        }
    }
}

/// Why a request of a client is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The engine has no such group.
    #[error("there is no group `{name}`; groups are: {known}")]
    UnknownGroup {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The engine has no such flows.
    #[error("there are no flows `{name}`; flows are: {known}")]
    UnknownFlows {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The view is not complete: the switch does not answer, or a view has just begun.
    #[error("the view of group `{0}` is not complete: its switch did not answer in time")]
    Incomplete(String),
    /// The view of flows is not complete: a chain does not answer, or the view has just begun.
    #[error(
        "the view of flows `{0}` is not complete: some chain of the store did not answer in time"
    )]
    FlowsIncomplete(String),
    /// The view of flows did not become as young as asked in time.
    #[error("the view of flows `{flows}` did not come within the limits asked for in time: {met}")]
    FlowsUnmet {
        /// Name of the flows.
        flows: String,
        /// The age that it has.
        met: String,
    },
    /// The store has no flow with this key, or several shards have one.
    #[error("flows `{flows}` have {} with this key", of_shards(shards))]
    UnknownFlow {
        /// Name of the flows.
        flows: String,
        /// Shards that have one: none, or several of which the request has to name one.
        shards: Vec<u16>,
    },
    /// The store refused to change a flow; nothing was written.
    #[error("the store refused to change the flow, and nothing was written: {reason}")]
    StoreRefused {
        /// Why.
        reason: &'static str,
    },
    /// The flow's state has another length than the request takes; nothing was written.
    #[error(
        "the state of the flow has {length} bytes, which the request does not fit; nothing was written"
    )]
    StateLength {
        /// Bytes of the flow's state.
        length: usize,
    },
    /// The engine's file lets nobody change these flows.
    #[error("flows `{0}` are not changed by this engine: its file says `writes = false`")]
    FlowsReadOnly(String),
    /// A flow was not changed in time; nothing was written.
    #[error("the flow was not changed in time: the store gave no lease of it; nothing was written")]
    NotInTime,
    /// The view did not become as near or as young as asked in time.
    #[error("the view of group `{group}` did not come within the limits asked for in time: {met}")]
    Unmet {
        /// The group.
        group: String,
        /// Bound and age that it has.
        met: String,
    },
    /// Totals of a group whose counters are not continued.
    #[error(
        "totals of group `{0}` are not kept: if its values are counters, give their width as \
         `counter_bits` in its section of the engine's file"
    )]
    NotContinued(String),
    /// A location beyond the group's.
    #[error("group `{group}` has no location {location}: they are 0 to {last}")]
    Location {
        /// The group.
        group: String,
        /// The location.
        location: u64,
        /// The last one.
        last: u32,
    },
    /// The request is malformed.
    #[error("{0}")]
    Malformed(String),
    /// The outcome of a write or cut is unknown: switch or engine started anew meanwhile.
    #[error("it is unknown whether the change was made: {0}")]
    Unknown(String),
    /// As many requests wait as may.
    #[error("too many requests wait: {0}")]
    Busy(String),
    /// A window that is not kept any more.
    #[error("windows behind {after} are asked for, and the oldest kept is {oldest}")]
    Gone {
        /// The number given.
        after: u64,
        /// Number of the oldest window kept.
        oldest: u64,
    },
    /// Another engine leads, or none does yet.
    #[error("this engine stands by: {}", of_leader(leader.as_deref()))]
    Standby {
        /// Address for clients of the one that leads, if it is known.
        leader: Option<String>,
    },
    /// Another engine has a higher term.
    #[error("another engine has a higher term: this one does nothing more for group `{0}`")]
    Fenced(String),
    /// The switch refuses writes and cuts, because messages to it are not sealed.
    #[error(
        "the switch of group `{0}` refuses writes and cuts, because anybody could send them: seal its \
         port with --keys, or set `unsealed_writes = true` in its section [sync]"
    )]
    ReadOnly(String),
    /// A change of values that a program in bounded inconsistency keeps snapshots of.
    #[error(
        "the values of group `{0}` are copies of which the program keeps snapshots, and only packets \
         change them: leave the group out of `views` of [[flows.snapshots]] to change it all the same"
    )]
    OfSnapshots(String),
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Stopped,
    /// A look at a view that would wait for the thread that it is in.
    #[error(
        "a view is looked at in the thread of an engine, or within another look: it would wait for \
         itself"
    )]
    Nested,
}

impl ViewError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            ViewError::UnknownGroup { .. } | ViewError::UnknownFlows { .. } => "SYNC020",
            ViewError::Incomplete(_) | ViewError::FlowsIncomplete(_) => "SYNC021",
            ViewError::Unmet { .. } | ViewError::FlowsUnmet { .. } => "SYNC022",
            ViewError::Location { .. } => "SYNC012",
            ViewError::Malformed(_) => "SYNC023",
            ViewError::Unknown(_) => "SYNC024",
            ViewError::Busy(_) => "SYNC026",
            ViewError::Gone { .. } => "SYNC025",
            ViewError::Fenced(_) => "SYNC013",
            ViewError::ReadOnly(_) => "SYNC014",
            ViewError::Standby { .. } => "SYNC027",
            ViewError::Stopped => "SYNC028",
            ViewError::Nested => "SYNC029",
            ViewError::UnknownFlow { .. } => "SYNC031",
            ViewError::StoreRefused { .. } => "SYNC032",
            ViewError::StateLength { .. } => "SYNC033",
            ViewError::FlowsReadOnly(_) => "SYNC034",
            ViewError::NotInTime => "SYNC035",
            ViewError::NotContinued(_) => "SYNC036",
            ViewError::OfSnapshots(_) => "SYNC037",
        }
    }

    pub(super) fn of_write(group: &str, error: WriteError) -> ViewError {
        match error {
            WriteError::Full(_) => ViewError::Busy(error.to_string()),
            WriteError::Fenced => ViewError::Fenced(group.to_owned()),
            WriteError::ReadOnly => ViewError::ReadOnly(group.to_owned()),
            WriteError::Count(_) | WriteError::Location(_) => {
                ViewError::Malformed(error.to_string())
            }
        }
    }
}

/// The section of a file that a setting is in, in words.
fn of_section(name: &str) -> String {
    match name {
        "" => String::new(),
        name if name.starts_with('[') => format!("{name}: "),
        name => format!("`{name}`: "),
    }
}

/// How many flows there are with a key, in words.
fn of_shards(shards: &[u16]) -> String {
    if shards.is_empty() {
        return "none".to_owned();
    }
    let named: Vec<String> = shards.iter().map(ToString::to_string).collect();
    format!("one in each of the shards {}", named.join(", "))
}

/// The engine that leads, in words.
fn of_leader(leader: Option<&str>) -> String {
    match leader {
        Some("") => "another one leads, and serves no clients".to_owned(),
        Some(address) => format!("the one at {address} leads"),
        None => "none leads yet".to_owned(),
    }
}
