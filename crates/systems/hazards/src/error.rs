//! Errors of settings and of traffic.

use thiserror::Error;

/// A setting or traffic that the model refuses. Its text says what, where, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HazardError {
    /// A setting is out of range or contradicts another.
    #[error("{0}")]
    Setting(String),
    /// A line of a table of sizes or of packet counts is not understood.
    #[error("line {line}: {reason}")]
    Line {
        /// Number of the line, counted from 1.
        line: usize,
        /// The mistake, and the form that is expected.
        reason: String,
    },
    /// The traffic has no packets.
    #[error("the traffic has no packets; give a capture or a table that has some")]
    Empty,
    /// A packet arrives before the one in front of it.
    #[error(
        "packet {packet} arrives in cycle {arrival}, before the packet in front of it (cycle \
         {previous}); sort packets by arrival"
    )]
    Order {
        /// Number of the packet, counted from 0.
        packet: u64,
        /// Cycle in which it arrives.
        arrival: u64,
        /// Cycle in which the packet before it arrives.
        previous: u64,
    },
    /// The traffic does not say what a key needs.
    #[error(
        "the traffic does not tell the {key} of its packets; choose a key that it tells ({known}), \
         or give a capture"
    )]
    Key {
        /// The key that was asked for.
        key: String,
        /// Keys that the traffic tells.
        known: &'static str,
    },
}

impl HazardError {
    /// Stable code: `HZ` and three digits.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Setting(_) => "HZ001",
            Self::Line { .. } => "HZ002",
            Self::Empty => "HZ003",
            Self::Order { .. } => "HZ004",
            Self::Key { .. } => "HZ005",
        }
    }
}
