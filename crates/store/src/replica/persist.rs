//! What a replica keeps on a disk, and how it comes back from there.
//!
//! A disk has a snapshot, and the entries applied since. Both are records: strings of
//! bytes that the host keeps whole and in order, and of which it may lose the last ones
//! that it was not told to have saved. A replica that comes back goes on under its former
//! incarnation: whatever it sent before followed from what was saved, so to its neighbours
//! it was slow, and nothing more. All integers are big-endian.

use std::collections::VecDeque;
use std::sync::Arc;

use stateplane_wire::chain::{Decision, Entry, Item};
use stateplane_wire::replication::Packet;

use super::Replica;
use super::feed::Rest;
use crate::config::{Config, ConfigError, FirstLease};
use crate::link::Receiver;

/// Version of the records.
const VERSION: u8 = 1;

/// First byte of each record.
mod kind {
    /// An entry that was applied, behind the incarnation of the predecessor that sent it
    /// (4 bytes, 0 at the head).
    pub const ENTRY: u8 = 1;
    /// The first record: see [`super::Begin`].
    pub const BEGIN: u8 = 2;
    /// Items of a snapshot.
    pub const ITEMS: u8 = 3;
    /// An entry of before the snapshot that replicas behind this one may lack.
    pub const KEPT: u8 = 4;
}

/// Bytes of items in one record, about.
const PART: usize = 1 << 16;

/// The first record.
struct Begin {
    incarnation: u32,
    /// 0 if nothing came from a predecessor yet.
    predecessor: u32,
    /// Number of the last entry in the snapshot.
    applied: u64,
    /// Of the configuration.
    fingerprint: u64,
}

impl Begin {
    const LENGTH: usize = 2 + 4 + 4 + 8 + 8;

    fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Begin::LENGTH);
        bytes.extend([kind::BEGIN, VERSION]);
        bytes.extend(self.incarnation.to_be_bytes());
        bytes.extend(self.predecessor.to_be_bytes());
        bytes.extend(self.applied.to_be_bytes());
        bytes.extend(self.fingerprint.to_be_bytes());
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<Begin, RecoveryError> {
        let version = bytes.get(1).copied().ok_or(RecoveryError::Malformed)?;
        if version != VERSION {
            return Err(RecoveryError::Version { version });
        }
        if bytes.len() != Begin::LENGTH {
            return Err(RecoveryError::Malformed);
        }
        let number = |at: usize, length: usize| {
            let bytes = bytes[at..at + length].iter();
            bytes.fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        Ok(Begin {
            incarnation: number(2, 4) as u32,
            predecessor: number(6, 4) as u32,
            applied: number(10, 8),
            fingerprint: number(18, 8),
        })
    }
}

/// Records that are not on the disk yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Unsaved {
    records: VecDeque<Vec<u8>>,
    /// The host has taken records and not said yet that they are on the disk.
    taken: bool,
}

/// A whole state as records, made one by one. It is a copy, so the replica may go on.
#[derive(Debug)]
pub struct SavedState {
    begin: Option<Vec<u8>>,
    rest: Rest,
    kept: VecDeque<Arc<[u8]>>,
}

impl Iterator for SavedState {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(begin) = self.begin.take() {
            return Some(begin);
        }
        let (kind, body) = match self.rest.next_part(PART) {
            Some(items) => (kind::ITEMS, items),
            None => (kind::KEPT, self.kept.pop_front()?.to_vec()),
        };
        let mut record = Vec::with_capacity(1 + body.len());
        record.push(kind);
        record.extend(body);
        Some(record)
    }
}

impl Replica {
    /// The next record to append to those on the disk. None if the configuration does not
    /// say `durable`.
    pub fn poll_record(&mut self) -> Option<Vec<u8>> {
        let record = self.unsaved.records.pop_front()?;
        self.unsaved.taken = true;
        Some(record)
    }

    /// All records that [`Replica::poll_record`] gave are on the disk.
    pub fn handle_saved(&mut self) {
        self.unsaved.taken = false;
    }

    /// The records that stand for everything up to here. They take the place of all that
    /// came before, and come before those of [`Replica::poll_record`] from here on. `None`
    /// as long as some of these wait.
    pub fn saved_state(&self) -> Option<SavedState> {
        if !self.unsaved.records.is_empty() {
            return None;
        }
        let begin = Begin {
            incarnation: self.incarnation,
            predecessor: self.predecessor.incarnation().unwrap_or(0),
            applied: self.applied,
            fingerprint: fingerprint(&self.config),
        };
        let kept = self.log.range(self.log.before() + 1, self.applied);
        Some(SavedState {
            begin: Some(begin.to_vec()),
            rest: Rest::new(self),
            kept: kept.cloned().collect(),
        })
    }

    pub(super) fn must_save_first(&self) -> bool {
        let unsaved = &self.unsaved;
        (unsaved.taken || !unsaved.records.is_empty()) && !self.config.faults.send_unsaved
    }

    /// Lets an entry that was just applied be saved.
    pub(super) fn save(&mut self, body: &[u8]) {
        if !self.config.durable {
            return;
        }
        let predecessor = self.predecessor.incarnation().unwrap_or(0);
        let mut record = Vec::with_capacity(5 + body.len());
        record.push(kind::ENTRY);
        record.extend(predecessor.to_be_bytes());
        record.extend(body);
        self.unsaved.records.push_back(record);
    }
}

/// Why records make no replica.
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
        "the state was kept under another configuration: chain, shards, classes and pool must stay"
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

/// A replica that comes back: takes the records of the disk, in order.
#[derive(Debug)]
pub struct Recovery {
    config: Config,
    replica: Option<Replica>,
    predecessor: u32,
    whole: bool,
    entries: u64,
}

impl Recovery {
    /// One that has no record yet.
    ///
    /// # Errors
    ///
    /// What [`Config::check`] finds.
    pub fn new(config: Config) -> Result<Recovery, ConfigError> {
        config.check()?;
        Ok(Recovery {
            config,
            replica: None,
            predecessor: 0,
            whole: false,
            entries: 0,
        })
    }

    /// Takes the next record at `now`. Leases last a whole period from then (rule 20): when
    /// they began is not known.
    ///
    /// # Errors
    ///
    /// What is wrong with it; then there is no replica.
    pub fn take(&mut self, now: u64, record: &[u8]) -> Result<(), RecoveryError> {
        let (kind, body) = record.split_first().ok_or(RecoveryError::Malformed)?;
        let Some(replica) = &mut self.replica else {
            if *kind != kind::BEGIN {
                return Err(RecoveryError::Malformed);
            }
            return self.begin(&Begin::parse(record)?);
        };
        match *kind {
            kind::ITEMS if !self.whole => {
                for item in Item::all(body) {
                    let item = item.map_err(|_| RecoveryError::Malformed)?;
                    let installed = replica.install_item(now, &item);
                    installed.map_err(|_| RecoveryError::Inconsistent)?;
                    self.whole |= matches!(item, Item::End { .. });
                }
                Ok(())
            }
            kind::KEPT if self.whole && self.entries == 0 => {
                replica.log.push(body.into());
                Ok(())
            }
            kind::ENTRY if self.whole && body.len() > 4 => {
                let (predecessor, body) = body.split_at(4);
                self.predecessor = predecessor
                    .iter()
                    .fold(0, |number, byte| number << 8 | u32::from(*byte));
                if self.entries == 0 {
                    replica.kept_all()?;
                }
                self.entries += 1;
                replica.replay(now, body)
            }
            _ => Err(RecoveryError::Malformed),
        }
    }

    fn begin(&mut self, begin: &Begin) -> Result<(), RecoveryError> {
        if begin.fingerprint != fingerprint(&self.config) {
            return Err(RecoveryError::OtherConfiguration);
        }
        let replica = Replica::new(self.config.clone(), begin.incarnation);
        let mut replica = replica.map_err(|_| RecoveryError::OtherConfiguration)?;
        replica.applied = begin.applied;
        self.predecessor = begin.predecessor;
        self.replica = Some(replica);
        Ok(())
    }

    /// Entries that came behind the snapshot.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Whether no record came.
    pub fn is_empty(&self) -> bool {
        self.replica.is_none()
    }

    /// The replica as it was when the last record was written. All of them are taken to be
    /// on the disk.
    ///
    /// # Errors
    ///
    /// [`RecoveryError::Incomplete`].
    pub fn finish(self) -> Result<Replica, RecoveryError> {
        let replica = self.replica.filter(|_| self.whole);
        let mut replica = replica.ok_or(RecoveryError::Incomplete)?;
        if self.entries == 0 {
            replica.kept_all()?;
        }
        let applied = replica.applied;
        if replica.is_tail() {
            replica.log.clear(applied);
        }
        replica.answered = applied;
        replica.base = replica.log.before();
        replica.log.begin_link();
        let window = replica.config.limits.link_window;
        let predecessor = (self.predecessor != 0).then_some(self.predecessor);
        replica.predecessor = Receiver::resumed(window, applied, predecessor);
        Ok(replica)
    }
}

/// Entries that are kept for the successor even if the window was made smaller meanwhile.
const LONGEST_WINDOW: u64 = 1 << 16;

impl Replica {
    /// All entries of before the snapshot are there: the last one is the last in it.
    fn kept_all(&mut self) -> Result<(), RecoveryError> {
        let before = self.applied.checked_sub(self.log.len() as u64);
        self.log.restore(before.ok_or(RecoveryError::Malformed)?);
        Ok(())
    }

    /// Applies an entry of the disk.
    fn replay(&mut self, now: u64, body: &[u8]) -> Result<(), RecoveryError> {
        let entry = Entry::parse(body).map_err(|_| RecoveryError::Malformed)?;
        let packet = match entry.decision {
            Decision::Expire { .. } => None,
            _ => Some(Packet::new_checked(entry.request).map_err(|_| RecoveryError::Malformed)?),
        };
        let before = self.counters.chain_inconsistent;
        self.apply(now, &entry, packet.as_ref());
        if self.counters.chain_inconsistent != before {
            return Err(RecoveryError::Inconsistent);
        }
        self.applied += 1;
        self.log.push(body.into());
        // The head is never farther ahead of the tail.
        let window = (self.config.limits.link_window as u64).max(LONGEST_WINDOW);
        self.log.trim(self.applied.saturating_sub(window));
        Ok(())
    }
}

/// A number of what the state on a disk depends on, the same for the same configuration
/// on every machine (FNV-1a).
fn fingerprint(config: &Config) -> u64 {
    let mut bytes = vec![config.chain_length, config.position];
    bytes.extend(config.chain.to_be_bytes());
    bytes.extend(config.shards.to_be_bytes());
    bytes.extend((config.served.len() as u16).to_be_bytes());
    bytes.extend(config.served.iter().flat_map(|shard| shard.to_be_bytes()));
    bytes.push(config.classes.len() as u8);
    for class in &config.classes {
        bytes.extend([class.class, class.shared_only.into()]);
        bytes.extend(class.state_length.to_be_bytes());
        bytes.extend(match class.first_lease {
            FirstLease::Zero => [0, 0, 0],
            FirstLease::NatOutbound { inbound_class } => [1, inbound_class, 0],
            FirstLease::None => [2, 0, 0],
            FirstLease::Server { service_at } => [3, service_at.address, service_at.port],
        });
    }
    if let Some(pool) = &config.nat {
        bytes.extend(pool.addresses.iter().flat_map(|address| address.octets()));
        bytes.extend(pool.first_port.to_be_bytes());
        bytes.extend(pool.last_port.to_be_bytes());
    }
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;
