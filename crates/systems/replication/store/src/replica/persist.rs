//! Records that a replica saves on a disk, and its restoration from them.
//!
//! A replica that restarts keeps its former incarnation: each message that it sent before followed
//! from saved records, so to its neighbours it was only slow.

use std::collections::VecDeque;
use std::sync::Arc;

use stateplane_wire::chain::{Decision, Entry, Item};
use stateplane_wire::replication::Packet;

use super::Replica;
use super::feed::{Feed, Rest};
use crate::link::Receiver;
use crate::saved::{RecoveryError, kind, number, record};

/// Bytes of items in one record, about.
const PART: usize = 1 << 16;

/// A replica's whole state as records, made one by one. It is a copy, so the replica may
/// go on once [`SavedReplica::copy`] has copied all of it.
#[derive(Debug)]
pub(crate) struct SavedReplica {
    chain: u16,
    uncopied: VecDeque<u16>,
    begin: Option<Vec<u8>>,
    rest: Rest,
    kept: VecDeque<Arc<[u8]>>,
}

impl SavedReplica {
    /// Copies another shard of `replica`; `false` if all are copied.
    pub(crate) fn copy(&mut self, replica: &Replica) -> bool {
        let shard = self.uncopied.pop_front();
        if let Some(shard) = shard {
            self.rest.copy(replica, shard);
        }
        shard.is_some()
    }
}

impl Iterator for SavedReplica {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(begin) = self.begin.take() {
            return Some(begin);
        }
        match self.rest.next_part(PART) {
            Some(items) => Some(record(kind::ITEMS, self.chain, &[&items])),
            None => Some(record(kind::KEPT, self.chain, &[&self.kept.pop_front()?])),
        }
    }
}

impl Replica {
    /// Takes out the records for the disk.
    pub(crate) fn take_unsaved(&mut self) -> impl Iterator<Item = Vec<u8>> {
        self.unsaved.drain(..)
    }

    /// Lets an entry that was just applied be saved.
    pub(super) fn save_entry(&mut self, body: &[u8]) {
        if self.config.durable {
            let predecessor = self.predecessor.incarnation().unwrap_or(0).to_be_bytes();
            let entry = record(kind::ENTRY, self.config.chain, &[&predecessor, body]);
            self.unsaved.push_back(entry);
        }
    }

    /// Lets it be saved that a state begins, with entries up to number `upto` in it.
    pub(super) fn save_begin(&mut self, upto: u64) {
        if self.config.durable {
            let begin = self.begin_of_state(upto);
            self.unsaved.push_back(begin);
        }
    }

    /// Lets items of the state be saved.
    pub(super) fn save_items(&mut self, items: &[u8]) {
        if self.config.durable {
            let items = record(kind::ITEMS, self.config.chain, &[items]);
            self.unsaved.push_back(items);
        }
    }

    fn begin_of_state(&self, upto: u64) -> Vec<u8> {
        let predecessor = self.predecessor.incarnation().unwrap_or(0).to_be_bytes();
        let parts: [&[u8]; 2] = [&predecessor, &upto.to_be_bytes()];
        record(kind::STATE, self.config.chain, &parts)
    }

    /// The records that stand for everything up to here, without its shards, which are to be copied;
    /// none if a state was not even begun.
    pub(crate) fn saved_state(&self) -> Option<SavedReplica> {
        let (upto, whole) = match &self.install {
            Some(install) => (install.upto()?, install.is_done()),
            None => (self.applied, true),
        };
        let upto = if whole { self.applied } else { upto };
        let kept = self.log.range(self.log.before() + 1, self.applied);
        Some(SavedReplica {
            chain: self.config.chain,
            uncopied: self.shards.keys().copied().collect(),
            begin: Some(self.begin_of_state(upto)),
            rest: Rest::empty(whole),
            kept: kept.cloned().collect(),
        })
    }
}

/// Entries that are kept for the successor even if the window was made smaller meanwhile.
pub(super) const LONGEST_WINDOW: usize = 1 << 16;

/// Progress of a replica's restoration.
#[derive(Debug, Default)]
pub(crate) struct Restoring {
    /// True if the beginning of a state was read.
    begun: bool,
    /// True if the end of the state was read.
    whole: bool,
    /// True if the log's entries follow the state restored before them.
    settled: bool,
    predecessor: u32,
}

impl Restoring {
    /// One that needs no state: that of a chain that just begins is empty.
    pub(crate) fn empty() -> Restoring {
        Restoring {
            begun: true,
            whole: true,
            settled: true,
            predecessor: 0,
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }
}

/// A replica that comes back from records.
impl Replica {
    /// Takes the next record, of `kind`, at `now`; `true` if it was an entry.
    pub(crate) fn restore(
        &mut self,
        restoring: &mut Restoring,
        now: u64,
        kind: u8,
        body: &[u8],
    ) -> Result<bool, RecoveryError> {
        match kind {
            kind::STATE => {
                let (predecessor, rest) = number::<4>(body)?;
                let (upto, rest) = number::<8>(rest)?;
                if !rest.is_empty() {
                    return Err(RecoveryError::Malformed);
                }
                self.begin_install();
                self.install_begins(upto);
                *restoring = Restoring {
                    begun: true,
                    whole: false,
                    settled: false,
                    predecessor: predecessor as u32,
                };
            }
            kind::ITEMS if restoring.begun && !restoring.whole => {
                for item in Item::all(body) {
                    let item = item.map_err(|_| RecoveryError::Malformed)?;
                    if let Item::End { digest } = item {
                        if digest != self.digest() {
                            return Err(RecoveryError::Inconsistent);
                        }
                        self.install_ends();
                        self.restore_role();
                        restoring.whole = true;
                    } else {
                        let installed = self.install_item(now, &item);
                        installed.map_err(|_| RecoveryError::Inconsistent)?;
                    }
                }
            }
            kind::KEPT if restoring.whole && !restoring.settled => self.log.push(body.into()),
            kind::ENTRY if restoring.whole => {
                let (predecessor, body) = number::<4>(body)?;
                restoring.predecessor = predecessor as u32;
                self.settle(restoring)?;
                self.replay(now, body)?;
                return Ok(true);
            }
            _ => return Err(RecoveryError::Malformed),
        }
        Ok(false)
    }

    /// With its state it is what its place says.
    fn restore_role(&mut self) {
        if self.place.position < self.place.length {
            self.install = None;
        }
        self.feed = (self.place.feeds && self.is_tail()).then(|| Feed::resumed(self));
    }

    /// All entries of before the state are there: the last one is the last in it.
    fn settle(&mut self, restoring: &mut Restoring) -> Result<(), RecoveryError> {
        if restoring.whole && !restoring.settled {
            let before = self.applied.checked_sub(self.log.len() as u64);
            self.log.restore(before.ok_or(RecoveryError::Malformed)?);
            restoring.settled = true;
        }
        Ok(())
    }

    /// A new place follows.
    pub(crate) fn restore_place(&mut self, restoring: &mut Restoring) -> Result<(), RecoveryError> {
        self.settle(restoring)?;
        // The link to the predecessor in that place has not begun.
        restoring.predecessor = 0;
        Ok(())
    }

    /// Applies an entry of the disk.
    fn replay(&mut self, now: u64, body: &[u8]) -> Result<(), RecoveryError> {
        let entry = Entry::parse(body).map_err(|_| RecoveryError::Malformed)?;
        let packet = match entry.decision {
            Decision::Expire { .. } => None,
            _ => Some(Packet::new_checked(entry.request).map_err(|_| RecoveryError::Malformed)?),
        };
        let applied = self.apply(now, &entry, packet.as_ref());
        applied.map_err(|_| RecoveryError::Inconsistent)?;
        self.applied += 1;
        if !self.keeps_entries() && self.install.is_none() {
            self.log.clear(self.applied);
            return Ok(());
        }
        self.log.push(body.into());
        // Any replica that is farther behind is fed a new copy.
        let limits = &self.config.limits;
        let most = (limits.link_window.max(limits.join_backlog)).max(LONGEST_WINDOW) as u64;
        self.log.trim(self.applied.saturating_sub(most));
        Ok(())
    }

    /// Goes on, with all that the records said, for the time numbered `start`.
    pub(crate) fn resume(
        &mut self,
        mut restoring: Restoring,
        start: u32,
    ) -> Result<(), RecoveryError> {
        self.settle(&mut restoring)?;
        self.outbox.clear();
        self.base = self.log.before();
        self.restore_role();
        // Who joined behind it may be a member by now, and has no more than was kept for it.
        if self.is_tail() && self.feed.is_none() {
            self.base = self.applied;
        }
        // Which of these were answered is not known; who missed an answer asks again, and
        // is told what holds then.
        self.answered = self.applied;
        self.log.begin_link();
        let predecessor = (restoring.predecessor != 0).then_some(restoring.predecessor);
        let window = self.config.limits.link_window;
        self.predecessor = Receiver::resumed(window, self.applied, predecessor);
        self.begin_comparing(start);
        Ok(())
    }
}
