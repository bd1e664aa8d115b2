//! Why bytes are not the header they were taken for.

use core::fmt;

/// The header that an [`Error`] speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Header {
    /// Ethernet II ([`crate::ethernet`]).
    Ethernet,
    /// IPv4 ([`crate::ipv4`]).
    Ipv4,
    /// UDP ([`crate::udp`]).
    Udp,
    /// TCP ([`crate::tcp`]).
    Tcp,
    /// A message between switch and store ([`crate::replication`]).
    Replication,
    /// A greeting between switch and store ([`crate::greeting`]).
    Greeting,
    /// A heartbeat of a term, a question for backing, or the answer ([`crate::term`]).
    Term,
    /// A question of an observer of a chain, or the answer ([`crate::observe`]).
    Observe,
    /// A message between replicas ([`crate::chain`]).
    Chain,
    /// The entry inside a chain message ([`crate::chain`]).
    ChainEntry,
    /// An item of a snapshot ([`crate::chain::Item`]).
    SnapshotItem,
    /// A message to or from the controller ([`crate::control`]).
    Control,
    /// A message of the coordination service ([`crate::coordination`]).
    Coordination,
    /// A message between a client of coordination and the controller
    /// ([`crate::coordination_control`]).
    CoordinationControl,
    /// A message of sync ([`crate::sync`]).
    Sync,
    /// A message of multicast ([`crate::multicast`]).
    Multicast,
    /// A message between multicast's controller and hosts ([`crate::multicast_control`]).
    MulticastControl,
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Header::Ethernet => "Ethernet",
            Header::Ipv4 => "IPv4",
            Header::Udp => "UDP",
            Header::Tcp => "TCP",
            Header::Replication => "replication message",
            Header::Greeting => "greeting",
            Header::Term => "message of a term",
            Header::Observe => "message of an observer",
            Header::Chain => "chain message",
            Header::ChainEntry => "chain entry",
            Header::SnapshotItem => "item of a snapshot",
            Header::Control => "control message",
            Header::Coordination => "coordination message",
            Header::CoordinationControl => "coordination control message",
            Header::Sync => "sync message",
            Header::Multicast => "multicast message",
            Header::MulticastControl => "multicast control message",
        })
    }
}

/// Why bytes were refused, or why a meaning has no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Fewer bytes than the header, or a length it states, asks for.
    #[error("{header}: {found} bytes where at least {needed} are needed")]
    Truncated {
        /// The header in question.
        header: Header,
        /// Bytes asked for.
        needed: usize,
        /// Bytes there.
        found: usize,
    },
    /// Bytes follow the last field although nothing announces them.
    #[error("{header}: {extra} bytes follow the last field")]
    TrailingBytes {
        /// The header in question.
        header: Header,
        /// How many bytes there are too many.
        extra: usize,
    },
    /// A version that this module does not speak.
    #[error("{header}: version {found} is not spoken here")]
    Version {
        /// The header in question.
        header: Header,
        /// The version found.
        found: u8,
    },
    /// A type, kind, flag or code that has no meaning.
    #[error("{header}: {field} {found} has no meaning")]
    Unknown {
        /// The header in question.
        header: Header,
        /// Name of the field.
        field: &'static str,
        /// The value found.
        found: u32,
    },
    /// A length field smaller than the header that contains it.
    #[error("{header}: the header states a length of {stated} bytes, less than its own {least}")]
    LengthField {
        /// The header in question.
        header: Header,
        /// The length stated.
        stated: usize,
        /// The least length possible.
        least: usize,
    },
    /// The checksum does not fit the bytes.
    #[error("{header}: the checksum does not fit")]
    Checksum {
        /// The header in question.
        header: Header,
    },
    /// A value that has no room in its field.
    #[error("{header}: the value of {field} does not fit the field")]
    Unrepresentable {
        /// The header in question.
        header: Header,
        /// Name of the field.
        field: &'static str,
    },
    /// `emit` was given a buffer whose length is not `buffer_len()`.
    #[error("{header}: a buffer of {found} bytes where exactly {needed} are needed")]
    Buffer {
        /// The header in question.
        header: Header,
        /// Bytes needed.
        needed: usize,
        /// Bytes given.
        found: usize,
    },
}

impl Error {
    /// Refuses a version other than the one `spoken`.
    pub(crate) fn unless_spoken(header: Header, found: u8, spoken: u8) -> Result<(), Error> {
        if found == spoken {
            Ok(())
        } else {
            Err(Error::Version { header, found })
        }
    }

    /// The meaning of a number, if it has one.
    pub(crate) fn unless_known<T>(
        header: Header,
        field: &'static str,
        found: u8,
        meaning: Option<T>,
    ) -> Result<T, Error> {
        meaning.ok_or(Error::Unknown {
            header,
            field,
            found: found.into(),
        })
    }

    /// A short stable code, for counters, logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Truncated { .. } => "WIRE001",
            Error::TrailingBytes { .. } => "WIRE002",
            Error::Version { .. } => "WIRE003",
            Error::Unknown { .. } => "WIRE004",
            Error::LengthField { .. } => "WIRE005",
            Error::Checksum { .. } => "WIRE006",
            Error::Unrepresentable { .. } => "WIRE007",
            Error::Buffer { .. } => "WIRE008",
        }
    }
}

/// Refuses `bytes` shorter than `needed`.
pub(crate) fn at_least(header: Header, bytes: &[u8], needed: usize) -> Result<(), Error> {
    if bytes.len() < needed {
        return Err(Error::Truncated {
            header,
            needed,
            found: bytes.len(),
        });
    }
    Ok(())
}

/// Splits a header of `N` bytes from what follows it.
pub(crate) fn split<const N: usize>(
    header: Header,
    bytes: &[u8],
) -> Result<(&[u8; N], &[u8]), Error> {
    bytes.split_first_chunk().ok_or(Error::Truncated {
        header,
        needed: N,
        found: bytes.len(),
    })
}

/// Refuses a buffer for `emit` that is not exactly `needed` long.
pub(crate) fn exactly(header: Header, buffer: &[u8], needed: usize) -> Result<(), Error> {
    if buffer.len() != needed {
        return Err(Error::Buffer {
            header,
            needed,
            found: buffer.len(),
        });
    }
    Ok(())
}
