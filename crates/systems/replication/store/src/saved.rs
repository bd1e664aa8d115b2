//! The records that a server keeps on a disk.
//!
//! A disk has a snapshot of the whole server, and what changed since: entries that its
//! replicas applied, configurations that it took, parts of snapshots that it was sent.
//! Each is a record: a string of bytes that the host keeps whole and in order, and of which
//! it may lose the last ones that it was not told to have saved. All integers are
//! big-endian. A record is its kind (1 byte), the number of the chain that it is about (2),
//! and what the kind says.

use stateplane_wire::chain::{Decision, ENTRY_HEADER_LENGTH, Entry};
use stateplane_wire::replication::older;

/// Version of the records.
pub(crate) const VERSION: u8 = 4;

/// The version before, whose entries have messages of version 1 between switch and store.
const OLDER: u8 = 3;

/// First byte of each record.
pub(crate) mod kind {
    /// An entry that was applied, behind the incarnation of the predecessor that sent it
    /// (4 bytes, 0 at the head).
    pub(crate) const ENTRY: u8 = 1;
    /// The first record of all: see [`super::Begin`]. It is about no chain.
    pub(crate) const BEGIN: u8 = 2;
    /// Items of a state.
    pub(crate) const ITEMS: u8 = 3;
    /// An entry of before the state that replicas behind this one may lack.
    pub(crate) const KEPT: u8 = 4;
    /// A state begins, whose items follow: the predecessor's incarnation (4 bytes, 0 if
    /// none was heard) and the number of the last entry in it (8 bytes).
    pub(crate) const STATE: u8 = 5;
    /// A configuration of the chain, as the controller's message says it.
    pub(crate) const CONFIGURATION: u8 = 6;
    /// The newest configuration of a chain that the server is not in: its number (4
    /// bytes), and 1 if it has a place there and left it, since its disk lost entries.
    pub(crate) const LEFT: u8 = 7;
    /// The server came back from the disk, and the version of the records behind (1 byte; none in
    /// version 3). It is about no chain.
    pub(crate) const START: u8 = 8;
}

/// Bytes of kind and chain.
const HEADER: usize = 3;

/// A record of `kind` about `chain` with `parts` behind one another.
pub(crate) fn record(kind: u8, chain: u16, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut record = Vec::with_capacity(HEADER + length);
    record.push(kind);
    record.extend(chain.to_be_bytes());
    for part in parts {
        record.extend_from_slice(part);
    }
    record
}

/// Kind, chain and the rest of a record.
pub(crate) fn split(record: &[u8]) -> Result<(u8, u16, &[u8]), RecoveryError> {
    match record {
        [kind, high, low, rest @ ..] => Ok((*kind, u16::from_be_bytes([*high, *low]), rest)),
        _ => Err(RecoveryError::Malformed),
    }
}

/// The number that the first `N` bytes say, and the bytes behind.
pub(crate) fn number<const N: usize>(bytes: &[u8]) -> Result<(u64, &[u8]), RecoveryError> {
    let (bytes, rest) = bytes
        .split_first_chunk::<N>()
        .ok_or(RecoveryError::Malformed)?;
    let number = bytes
        .iter()
        .fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    Ok((number, rest))
}

/// The version that the first byte says, and the bytes behind.
fn version(body: &[u8]) -> Result<(u8, &[u8]), RecoveryError> {
    let (version, rest) = number::<1>(body)?;
    let version = version as u8;
    if ![OLDER, VERSION].contains(&version) {
        return Err(RecoveryError::Version { version });
    }
    Ok((version, rest))
}

/// The record that the server came back.
pub(crate) fn start() -> Vec<u8> {
    record(kind::START, 0, &[&[VERSION]])
}

/// The version of the records behind a [`start`] with `body`; none if that does not say.
pub(crate) fn version_of_start(body: &[u8]) -> Result<Option<u8>, RecoveryError> {
    if body.is_empty() {
        return Ok(None);
    }
    match version(body)? {
        (version, []) => Ok(Some(version)),
        _ => Err(RecoveryError::Malformed),
    }
}

/// Content of the first record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begin {
    pub(crate) incarnation: u32,
    /// Number of restarts of the server from its disk.
    pub(crate) starts: u32,
    /// Fingerprint of the configuration on which the state depends.
    pub(crate) fingerprint: u64,
    /// Version of the records.
    pub(crate) version: u8,
}

impl Begin {
    pub(crate) fn record(&self) -> Vec<u8> {
        let parts: [&[u8]; 4] = [
            &[self.version],
            &self.incarnation.to_be_bytes(),
            &self.starts.to_be_bytes(),
            &self.fingerprint.to_be_bytes(),
        ];
        record(kind::BEGIN, 0, &parts)
    }

    pub(crate) fn parse(body: &[u8]) -> Result<Begin, RecoveryError> {
        let (version, rest) = version(body)?;
        let (incarnation, rest) = number::<4>(rest)?;
        let (starts, rest) = number::<4>(rest)?;
        let (fingerprint, rest) = number::<8>(rest)?;
        if !rest.is_empty() {
            return Err(RecoveryError::Malformed);
        }
        Ok(Begin {
            incarnation: incarnation as u32,
            starts: starts as u32,
            fingerprint,
            version,
        })
    }
}

/// An entry of the older version, behind `front` bytes, in the present one.
pub(crate) fn upgrade(front: usize, body: &[u8]) -> Result<Vec<u8>, RecoveryError> {
    let (before, entry) = body
        .split_at_checked(front)
        .ok_or(RecoveryError::Malformed)?;
    // The times of a lease, 8 bytes behind the first 8, are no more.
    let (fixed, rest) = entry.split_at_checked(8).ok_or(RecoveryError::Malformed)?;
    let (_, rest) = rest.split_at_checked(8).ok_or(RecoveryError::Malformed)?;
    let mut upgraded = [before, fixed, rest].concat();
    let Ok(entry) = Entry::parse(&upgraded[front..]) else {
        return Err(RecoveryError::Malformed);
    };
    if !matches!(entry.decision, Decision::Expire { .. }) {
        let message = older::upgrade(entry.request).map_err(|_| RecoveryError::Malformed)?;
        upgraded.truncate(front + ENTRY_HEADER_LENGTH);
        upgraded.extend_from_slice(&message);
    }
    Ok(upgraded)
}

/// Why records make no server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    /// A record is none, or not at its place.
    #[error("a record is malformed, or not at its place")]
    Malformed,
    /// Written by another version.
    #[error("the records are of version {version}, this program reads version {VERSION}")]
    Version {
        /// The version found.
        version: u8,
    },
    /// The configuration differs in what the state depends on.
    #[error(
        "the state was kept under another configuration: address, chain, shards, classes and pool must stay"
    )]
    OtherConfiguration,
    /// A record contradicts those before it.
    #[error("a record contradicts those before it")]
    Inconsistent,
    /// The snapshot has no end.
    #[error("the snapshot is not whole")]
    Incomplete,
}

impl RecoveryError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            RecoveryError::Version { .. } => "S019",
            RecoveryError::OtherConfiguration => "S020",
            _ => "S018",
        }
    }
}
