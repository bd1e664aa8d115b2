//! Records of entries that an index gives by number: the default action's is the 0th.

use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Records one after the other.
#[derive(Debug)]
pub(super) struct Records {
    /// Words of one.
    size: usize,
    words: Vec<u64>,
    /// Of entries that do the same one record is kept; `None` if each has its own, whose
    /// number is the entry's.
    shared: Option<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Numbers of records by what they hold.
    numbers: FxHashMap<Box<[u64]>, u32>,
    /// Number of entries of each record.
    uses: Vec<u32>,
    /// The record of each entry, or 0.
    of_entry: Vec<u32>,
    free: Vec<u32>,
}

impl Records {
    /// Records of `size` words; entries may share them if the hit entry is never asked for.
    pub(super) fn new(size: usize, share: bool) -> Records {
        Records {
            size,
            words: vec![0; size],
            shared: share.then(Shared::default),
        }
    }

    /// Forgets all but the default action's.
    pub(super) fn clear(&mut self) {
        self.words.truncate(self.size);
        self.shared = self.shared.take().map(|_| Shared::default());
    }

    /// The record of the default action.
    pub(super) fn set_default(&mut self, record: &[u64]) {
        self.words[..self.size].copy_from_slice(record);
    }

    /// Gives the entry `number` a record, and returns the record's number.
    pub(super) fn insert(&mut self, number: u32, record: &[u64]) -> u32 {
        let Some(shared) = &mut self.shared else {
            self.write(number, record);
            return number;
        };
        let mut record = record.to_vec();
        // Whose it is.
        record[0] &= u64::from(u32::MAX);
        let (to, fresh) = match shared.numbers.entry(record.clone().into_boxed_slice()) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(free) => {
                let to = shared.free.pop().unwrap_or(shared.uses.len().max(1) as u32);
                (*free.insert(to), true)
            }
        };
        if shared.uses.len() <= to as usize {
            shared.uses.resize(to as usize + 1, 0);
        }
        shared.uses[to as usize] += 1;
        let index = number as usize;
        if shared.of_entry.len() <= index {
            shared.of_entry.resize(index + 1, 0);
        }
        shared.of_entry[index] = to;
        if fresh {
            record[0] |= u64::from(to) << 32;
            self.write(to, &record);
        }
        to
    }

    /// The entry `number` has no record any more, if it had one.
    pub(super) fn remove(&mut self, number: u32) {
        let Some(shared) = &mut self.shared else {
            return;
        };
        let Some(from) = shared.of_entry.get_mut(number as usize) else {
            return;
        };
        let from = std::mem::take(from);
        if from == 0 {
            return;
        }
        shared.uses[from as usize] -= 1;
        if shared.uses[from as usize] == 0 {
            let mut record = self.words[from as usize * self.size..][..self.size].to_vec();
            record[0] &= u64::from(u32::MAX);
            shared.numbers.remove(record.as_slice());
            shared.free.push(from);
        }
    }

    fn write(&mut self, number: u32, record: &[u64]) {
        let at = number as usize * self.size;
        if self.words.len() < at + self.size {
            self.words.resize(at + self.size, 0);
        }
        self.words[at..at + self.size].copy_from_slice(record);
    }

    /// The default action's record, behind which the others are.
    pub(super) fn first(&self) -> *const u64 {
        self.words.as_ptr()
    }

    /// The record of a number that an index gave.
    #[inline]
    pub(super) fn get(&self, number: u32) -> *const u64 {
        self.words[number as usize * self.size..].as_ptr()
    }

    pub(super) fn bytes(&self) -> usize {
        let shared = self.shared.as_ref().map_or(0, |shared| {
            (shared.uses.capacity() + shared.of_entry.capacity()) * 4
                + shared.numbers.capacity() * (24 + self.size * 8)
        });
        self.words.capacity() * 8 + shared
    }
}
