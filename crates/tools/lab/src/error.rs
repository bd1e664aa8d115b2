//! Errors of the lab.

use std::path::PathBuf;
use thiserror::Error;

/// A failure of the lab, of a topology file or of the demonstration. Its text says
/// what happened, where, and how to mend it.
#[derive(Debug, Error)]
pub enum LabError {
    /// The lab makes network namespaces, which only root may, and the kernel gives the
    /// user no user namespace to be root in.
    #[error(
        "the lab makes network namespaces: it needs root (effective user id 0, this is {0}) or the right to make user namespaces, which this kernel refuses (`sysctl user.max_user_namespaces`, `kernel.unprivileged_userns_clone`, AppArmor); run it with sudo"
    )]
    NotRoot(u32),
    /// A program that the lab calls is not installed.
    #[error(
        "`{tool}` is not on the PATH; install the package `{package}` (Debian: apt-get install {package})"
    )]
    ToolMissing {
        /// The program.
        tool: &'static str,
        /// The Debian package that holds it.
        package: &'static str,
    },
    /// A file could not be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        reason: std::io::Error,
    },
    /// A topology file is not TOML or does not have the fields that it should.
    #[error("{}: not a topology: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, column and reason, as the TOML reader gives them.
        reason: String,
    },
    /// A topology file contradicts itself.
    #[error("{}: {place}: {problem}; {help}", path.display())]
    Topology {
        /// The file.
        path: PathBuf,
        /// The node, link, process or table.
        place: String,
        /// Description of the error.
        problem: String,
        /// How to mend it.
        help: String,
    },
    /// A program that the lab called failed.
    #[error("`{command}` failed ({status}): {output}")]
    Tool {
        /// The program and its arguments.
        command: String,
        /// Exit status.
        status: String,
        /// The end of what it wrote.
        output: String,
    },
    /// An interface kept an offload that would hide or change packets.
    #[error(
        "{node}: interface {interface} kept the offload `{feature}` on; the driver refuses `ethtool -K`"
    )]
    Offload {
        /// The node.
        node: String,
        /// Its interface.
        interface: String,
        /// The feature as ethtool names it.
        feature: String,
    },
    /// A process of the lab ended early or did not become ready.
    #[error("process {name} {what}; the end of its log {}:\n{tail}", log.display())]
    Process {
        /// Its name in the topology.
        name: String,
        /// Failed action.
        what: String,
        /// File with its output.
        log: PathBuf,
        /// The last lines.
        tail: String,
    },
    /// A name that the running lab does not have.
    #[error("the lab has no {kind} `{name}`; it has {known}")]
    Unknown {
        /// node, process or variant.
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// Routes did not come up in time.
    #[error("{node}: no working route through {gateway} after {seconds} s; is its link up?")]
    NoRoute {
        /// The router.
        node: String,
        /// The next hop.
        gateway: String,
        /// Time waited, in seconds.
        seconds: u64,
    },
    /// No lab stands that could be entered.
    #[error("no lab stands; bring one up with `stateplane lab up FILE`")]
    NoLab,
    /// The topology declares no traffic, so there is nothing to demonstrate.
    #[error("{}: no [traffic] table; the demonstration needs one", .0.display())]
    NoTraffic(PathBuf),
    /// The options contradict each other.
    #[error("{0}")]
    Options(String),
    /// An agent wrote something that is not its report.
    #[error("agent {name} left no report; the end of its log {}:\n{tail}", log.display())]
    Agent {
        /// The agent.
        name: String,
        /// File with its output.
        log: PathBuf,
        /// The last lines.
        tail: String,
    },
    /// The plot could not be drawn.
    #[error("the plot could not be drawn: {0}")]
    Plot(String),
    /// An agent's socket failed before any traffic.
    #[error("{what}: {reason}")]
    Socket {
        /// Name of the socket and its address.
        what: String,
        /// Error of the operating system.
        reason: std::io::Error,
    },
    /// The user asked to stop (SIGINT or SIGTERM). Everything was taken down.
    #[error("interrupted; everything was taken down")]
    Interrupted,
}

impl LabError {
    /// Stable code, `LAB` and three digits.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotRoot(_) => "LAB001",
            Self::ToolMissing { .. } => "LAB002",
            Self::File { .. } => "LAB003",
            Self::Syntax { .. } => "LAB004",
            Self::Topology { .. } => "LAB005",
            Self::Tool { .. } => "LAB006",
            Self::Offload { .. } => "LAB007",
            Self::Process { .. } => "LAB008",
            Self::Unknown { .. } => "LAB009",
            Self::NoRoute { .. } => "LAB010",
            Self::NoLab => "LAB011",
            Self::NoTraffic(_) => "LAB012",
            Self::Options(_) => "LAB013",
            Self::Agent { .. } => "LAB014",
            Self::Plot(_) => "LAB015",
            Self::Socket { .. } => "LAB016",
            Self::Interrupted => "LAB130",
        }
    }

    pub(crate) fn file(path: impl Into<PathBuf>, reason: std::io::Error) -> Self {
        Self::File {
            path: path.into(),
            reason,
        }
    }
}
