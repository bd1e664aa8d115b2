//! Errors in a switch's configuration file, with their positions.

use stateplane_coordination_setup::SetupError as CoordinationError;
use stateplane_multicast_setup::SetupError as MulticastError;
use stateplane_runtime::StateError;
use stateplane_setup::{BoundError, SetupError};
use stateplane_switch::{Port, SwitchError};
use stateplane_sync_setup::SetupError as SyncError;
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// A configuration file that is refused.
#[derive(Debug)]
pub struct SwitchFileError {
    path: PathBuf,
    line: Option<usize>,
    cause: Box<SwitchFileCause>,
}

/// Why a configuration file is refused.
#[derive(Debug, thiserror::Error)]
pub enum SwitchFileCause {
    /// The file cannot be read.
    #[error("cannot be read: {0}; name an existing file with --config")]
    Read(io::Error),
    /// The file is not TOML, or has other fields than a switch's.
    #[error("{0}")]
    Parse(Box<toml::de::Error>),
    /// Text that is no key.
    #[error("key `{text}`: {reason}")]
    Key {
        /// The text.
        text: String,
        /// The error and how to mend it.
        reason: String,
    },
    /// A key or parameter that the table or action does not have.
    #[error("{of} has no {kind} `{name}`; it has {}", list(names))]
    UnknownName {
        /// `key` or `parameter`.
        kind: &'static str,
        /// The name as given.
        name: String,
        /// The table or action.
        of: String,
        /// The names that there are.
        names: Vec<String>,
    },
    /// A key or parameter that was not named.
    #[error("{of} needs {kind} `{name}` too")]
    MissingName {
        /// `key` or `parameter`.
        kind: &'static str,
        /// The name that is missing.
        name: String,
        /// The table or action.
        of: String,
    },
    /// A list where a value is needed.
    #[error("a list is no value of {0}; give a number or a text")]
    List(String),
    /// A register of structs that was to be random.
    #[error("register `{0}` holds structs, which cannot be \"random\"; list the members' values")]
    RandomStruct(String),
    /// A frame that is not in hexadecimal.
    #[error("frame `{0}` is not made of pairs of hexadecimal digits")]
    Frame(String),
    /// Snapshots do not keep the program's ε.
    #[error(transparent)]
    Bound(#[from] BoundError),
    /// A text that is no MAC address.
    #[error("`{0}` is no MAC address; write six pairs of hexadecimal digits, as 02:00:00:00:00:01")]
    Mac(String),
    /// A port that is named as routed and as promiscuous.
    #[error("port {0} is named in `routed` and in `promiscuous`; name it in one of them")]
    RoutedAndPromiscuous(Port),
    /// A port that the switch does not have.
    #[error("there is no port {0}; name ports that --port gives the switch")]
    NoSuchPort(Port),
    /// A switch without a number.
    #[error(
        "switch 0 is none: `switch` is a number from 1, which no other switch of the store, or of the service, has"
    )]
    SwitchZero,
    /// A controller of chains and of multicast, with keys.
    #[error(
        "with --keys the controller {0} cannot be one of `[chains]` and of `[multicast]`: let a controller at another address make the chains, or run the two programs on two switches"
    )]
    TwoEnds(Ipv4Addr),
    /// Heads of chains without the number of shards.
    #[error("`heads` needs `shards` too, the number in the store's file")]
    NoShards,
    /// The program or the switch does not take what replication needs.
    #[error(transparent)]
    Replication(#[from] SetupError),
    /// The program or the switch does not take what coordination needs.
    #[error(transparent)]
    Coordination(#[from] CoordinationError),
    /// The program or the switch does not take what multicast needs.
    #[error(transparent)]
    Multicast(#[from] MulticastError),
    /// Rates of sync that contradict each other.
    #[error(
        "the rates of group {group} are wrong: `budget_mbps` is 1 to 524288 and at least `least_mbps`, `window_us` at least 1, `finest` at most `coarsest`"
    )]
    SyncRate {
        /// The group.
        group: u16,
    },
    /// The program or the switch does not take what sync needs.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// The program's tables or registers refuse it.
    #[error(transparent)]
    State(#[from] StateError),
    /// The switch refuses it.
    #[error(transparent)]
    Switch(#[from] SwitchError),
}

impl SwitchFileError {
    pub(super) fn new(path: &Path, line: Option<usize>, cause: SwitchFileCause) -> Self {
        Self {
            path: path.to_owned(),
            line,
            cause: Box::new(cause),
        }
    }

    /// A short stable code, for messages and tests; that of the inner error if there
    /// is one.
    pub fn code(&self) -> &'static str {
        self.cause.code()
    }

    /// The line of the part that is wrong, from 1, if it is a part that is.
    pub fn line(&self) -> Option<usize> {
        match &*self.cause {
            SwitchFileCause::Parse(_) => None,
            _ => self.line,
        }
    }
}

impl SwitchFileCause {
    /// A short stable code; that of the inner error if there is one.
    pub fn code(&self) -> &'static str {
        match self {
            SwitchFileCause::Read(_) => "H221",
            SwitchFileCause::Parse(_) => "H222",
            SwitchFileCause::Key { .. } => "H223",
            SwitchFileCause::UnknownName { .. } => "H224",
            SwitchFileCause::MissingName { .. } => "H225",
            SwitchFileCause::List(_) => "H226",
            SwitchFileCause::RandomStruct(_) => "H227",
            SwitchFileCause::Frame(_) => "H228",
            SwitchFileCause::Bound(error) => error.code(),
            SwitchFileCause::Mac(_) => "H236",
            SwitchFileCause::SwitchZero => "H237",
            SwitchFileCause::NoShards => "H238",
            SwitchFileCause::TwoEnds(_) => "H250",
            SwitchFileCause::Replication(SetupError::State(error)) => error.code(),
            SwitchFileCause::Replication(SetupError::Switch(error)) => error.code(),
            SwitchFileCause::Coordination(error) => error.code(),
            SwitchFileCause::Multicast(error) => error.code(),
            SwitchFileCause::SyncRate { .. } => "H239",
            SwitchFileCause::RoutedAndPromiscuous(_) => "H241",
            SwitchFileCause::NoSuchPort(_) => "H242",
            SwitchFileCause::Sync(error) => error.code(),
            SwitchFileCause::State(error) => error.code(),
            SwitchFileCause::Switch(error) => error.code(),
        }
    }
}

impl fmt::Display for SwitchFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some(line) = self.line() {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.cause)
    }
}

impl std::error::Error for SwitchFileError {}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
