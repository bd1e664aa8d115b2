//! The disk of a store server: what outlives its process, and what a power cut takes.

use stateplane_hosts::Random;

/// Records of a replica, as its host keeps them.
#[derive(Default)]
pub(crate) struct Disk {
    snapshot: Vec<Vec<u8>>,
    /// Since the snapshot, and written through.
    saved: Vec<Vec<u8>>,
    /// Written, and not certain to be there after a power cut.
    unsaved: Vec<Vec<u8>>,
}

impl Disk {
    /// Puts a snapshot in the place of everything, at once.
    pub(crate) fn replace(&mut self, snapshot: impl Iterator<Item = Vec<u8>>) {
        self.snapshot = snapshot.collect();
        self.saved.clear();
        self.unsaved.clear();
    }

    pub(crate) fn append(&mut self, record: Vec<u8>) {
        self.unsaved.push(record);
    }

    /// Everything is written through.
    pub(crate) fn sync(&mut self) {
        self.saved.append(&mut self.unsaved);
    }

    /// Records since the snapshot that were written through.
    pub(crate) fn saved(&self) -> usize {
        self.saved.len()
    }

    /// Loses power: of what was not written through some may be there, in order; a record
    /// that was torn is none.
    pub(crate) fn lose_power(&mut self, random: &mut Random) {
        let kept = random.place(self.unsaved.len() + 1);
        self.unsaved.truncate(kept);
        self.sync();
    }

    /// What is there.
    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        let all = self.snapshot.iter().chain(&self.saved);
        all.map(Vec::as_slice)
    }
}
