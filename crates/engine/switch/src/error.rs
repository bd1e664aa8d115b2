//! Errors of configuration.

use crate::{MAX_BATCH, MAX_FRAME, MAX_HOLD_US, MIN_FRAME};
use stateplane_runtime::Port;
use thiserror::Error;

/// A refused configuration. The switch is as it was before the call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SwitchError {
    /// A port number above 510.
    #[error("port {0} is out of range: ports are 0 to 510 (511 drops)")]
    PortOutOfRange(Port),
    /// A port given twice.
    #[error("port {0} is given twice; give each port one interface")]
    DuplicatePort(Port),
    /// A port that the switch does not have.
    #[error("port {0} is not a port of this switch; its ports are {1}")]
    UnknownPort(Port, String),
    /// A mirror session that cuts below an Ethernet header.
    #[error(
        "mirror session {session} truncates to {bytes} bytes; the least is {MIN_FRAME}, an Ethernet header"
    )]
    TruncateTooShort {
        /// The session.
        session: u32,
        /// Requested size.
        bytes: u32,
    },
    /// A hold, a period or an age that is out of range.
    #[error("{what} of {value} µs is out of range: {least} to {MAX_HOLD_US} µs (one day)")]
    TimeOutOfRange {
        /// Name of the time.
        what: &'static str,
        /// Requested value.
        value: u64,
        /// The least that is allowed.
        least: u64,
    },
    /// More of something than [`Limits`](crate::Limits) allows.
    #[error("no room for another {what}: the limit is {limit}; remove one or raise the limit")]
    TooMany {
        /// Kind of the thing.
        what: &'static str,
        /// The limit.
        limit: u32,
    },
    /// Multicast group 0.
    #[error("multicast group 0 means no multicast in v1model; number groups from 1")]
    GroupZero,
    /// A mirror session that does not exist.
    #[error("mirror session {0} does not exist")]
    UnknownMirrorSession(u32),
    /// A multicast group that does not exist.
    #[error("multicast group {0} does not exist")]
    UnknownMulticastGroup(u16),
    /// A generator's frame that could not be received either.
    #[error("a generator's frame of {0} bytes is out of range: {MIN_FRAME} to {MAX_FRAME} bytes")]
    GeneratorFrame(usize),
    /// A generator's batch of no frame, or of too many.
    #[error("a generator's batch of {0} frames is out of range: 1 to {MAX_BATCH}")]
    GeneratorBatch(u32),
    /// A generator's index that does not fit into its frame.
    #[error(
        "a generator's index takes 4 bytes, at byte {at} and after, which a frame of {length} bytes does not have"
    )]
    GeneratorIndex {
        /// Offset at which the first byte would be written.
        at: usize,
        /// Bytes of the frame.
        length: usize,
    },
    /// A watch on a register that cannot be read.
    #[error("watch on register {register}[{index}]: {reason}")]
    Watch {
        /// The register as named.
        register: String,
        /// The element.
        index: u64,
        /// Why it cannot be watched.
        reason: String,
    },
}

impl SwitchError {
    /// Stable code, `SW` and three digits.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::PortOutOfRange(_) => "SW001",
            Self::DuplicatePort(_) => "SW002",
            Self::UnknownPort(..) => "SW003",
            Self::TruncateTooShort { .. } => "SW004",
            Self::TimeOutOfRange { .. } => "SW005",
            Self::TooMany { .. } => "SW006",
            Self::GroupZero => "SW007",
            Self::UnknownMirrorSession(_) => "SW008",
            Self::UnknownMulticastGroup(_) => "SW009",
            Self::GeneratorFrame(_) => "SW010",
            Self::Watch { .. } => "SW011",
            Self::GeneratorBatch(_) => "SW012",
            Self::GeneratorIndex { .. } => "SW013",
        }
    }
}
