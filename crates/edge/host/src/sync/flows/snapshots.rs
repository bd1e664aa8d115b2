//! Snapshots of arrays of programs in bounded inconsistency, as the store has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use stateplane_observe::{Life, Snapshots, Told};
use stateplane_wire::replication::Key;

use crate::sync::SnapshotsFile;

/// The newest complete snapshot of one start of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotRecord {
    /// The switch, and which start of it.
    pub life: Life,
    /// Its number, counted by the switch from 1.
    pub number: u32,
    /// Values by element, then by array.
    pub values: Arc<[u32]>,
}

/// The snapshots of all switches, and in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotsReading {
    /// Promise of the view of the flows that the elements are: a snapshot that was whole in the store
    /// before its age is here, or a later one.
    pub told: Told,
    /// Arrays, each with a value for an element.
    pub arrays: u32,
    /// The newest complete one of each start of each switch, in their order.
    pub lives: Vec<SnapshotRecord>,
    /// All of them merged as the file says; zeros if there is none.
    pub merged: Vec<u32>,
}

/// One section `[[flows.snapshots]]`.
pub(super) struct Arrays {
    pub(super) file: SnapshotsFile,
    snapshots: Snapshots,
    newest: BTreeMap<Life, SnapshotRecord>,
}

impl Arrays {
    pub(super) fn new(file: &SnapshotsFile) -> Arrays {
        Arrays {
            file: file.clone(),
            snapshots: Snapshots::new(file.elements, file.arrays as usize),
            newest: BTreeMap::new(),
        }
    }

    /// A flow changed; `None` if it is gone.
    pub(super) fn take(&mut self, key: &Key, state: Option<&[u8]>) {
        if key.class() == self.file.class {
            self.snapshots.take(key, state);
        }
    }

    /// Notes the snapshots that became complete. The values of one are held while the switch overwrites
    /// them by the next but one.
    pub(super) fn turn(&mut self) {
        while let Some(complete) = self.snapshots.poll_complete() {
            let newest = self.snapshots.newest(complete.life);
            // Another one may have been completed meanwhile.
            if let Some((number, values)) = newest {
                let record = SnapshotRecord {
                    life: complete.life,
                    number,
                    values: values.into(),
                };
                self.newest.insert(complete.life, record);
            }
        }
        let snapshots = &self.snapshots;
        self.newest.retain(|life, _| snapshots.knows(*life));
    }

    pub(super) fn reading(&self, told: Told) -> SnapshotsReading {
        let mut merged = vec![0; self.file.elements as usize * self.file.arrays as usize];
        let merge = stateplane_observe::Merge::from(self.file.merge);
        for record in self.newest.values() {
            for (whole, value) in merged.iter_mut().zip(record.values.iter()) {
                *whole = merge.of(*whole, *value);
            }
        }
        SnapshotsReading {
            told,
            arrays: self.file.arrays,
            lives: self.newest.values().cloned().collect(),
            merged,
        }
    }

    /// The first snapshot, in the order of lives, that is newer than that of its life in `after`.
    pub(super) fn newer_than(&self, after: &BTreeMap<Life, u32>) -> Option<SnapshotRecord> {
        let is_newer = |record: &&SnapshotRecord| {
            let known = after.get(&record.life);
            known.is_none_or(|known| stateplane_store::newer(record.number, *known))
        };
        self.newest.values().find(is_newer).cloned()
    }
}
