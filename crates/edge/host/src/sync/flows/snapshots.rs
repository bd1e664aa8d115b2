//! Snapshots of arrays of programs in bounded inconsistency, as the store has them.

use std::collections::BTreeMap;

use stateplane_observe::{Complete, Life, Snapshots, Told};
use stateplane_wire::replication::Key;

use crate::sync::SnapshotsFile;

/// The snapshots of all switches, and in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotsReading {
    /// Promise of the view of the flows that the elements are: a snapshot that was whole in the store
    /// before its age is here, or a later one.
    pub told: Told,
    /// Arrays, each with a value for an element.
    pub arrays: u32,
    /// The newest complete one of each start of each switch, in their order.
    pub lives: Vec<Complete>,
    /// All of them merged as the file says; zeros if there is none.
    pub merged: Vec<u32>,
}

/// One section `[[flows.snapshots]]`.
pub(in crate::sync) struct Arrays {
    pub(super) file: SnapshotsFile,
    snapshots: Snapshots,
}

impl Arrays {
    pub(super) fn new(file: &SnapshotsFile) -> Arrays {
        Arrays {
            file: file.clone(),
            snapshots: Snapshots::new(file.elements, file.arrays as usize),
        }
    }

    /// A flow changed; `None` if it is gone.
    pub(super) fn take(&mut self, key: &Key, state: Option<&[u8]>) {
        if key.class() == self.file.class {
            self.snapshots.take(key, state);
        }
    }

    pub(in crate::sync) fn reading(&self, told: Told) -> SnapshotsReading {
        SnapshotsReading {
            told,
            arrays: self.file.arrays,
            lives: self.snapshots.newest().cloned().collect(),
            merged: self.snapshots.merged(self.file.merge.into()),
        }
    }

    /// The first snapshot, in the order of lives, that is newer than that of its life in `after`.
    pub(in crate::sync) fn newer_than(&self, after: &BTreeMap<Life, u32>) -> Option<Complete> {
        self.snapshots.newer_than(after).cloned()
    }
}
