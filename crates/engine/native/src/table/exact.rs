//! Exact keys: open addressing with linear probing. Each slot has the entry's record and
//! its key side by side, so that a lookup mostly touches one line of the cache.

use super::{Record, number_of};

/// Slots at first; always a power of two.
const FIRST: usize = 8;

/// Entries up to which a table has each key in its home, if a start of the hash is found that does
/// it.
const SMALL: usize = 64;

/// Entries up to which three quarters of the slots are free, of more a quarter: all slots are in the
/// second-level cache, where more of them cost less than searches that go on.
const MEDIUM: usize = 4096;

/// Slots at most for each entry of a small table, and starts that are tried for each number of slots.
const ROOM: usize = 16;
const STARTS: u64 = 16;

/// Records of entries by key.
#[derive(Debug)]
pub(super) struct Exact {
    /// Words of a key.
    words: usize,
    /// Words of a record.
    record: usize,
    /// For each slot the entry's record, whose number is 0 in a free slot, and the words
    /// of its key.
    slots: Vec<u64>,
    mask: usize,
    /// The hash of no words.
    start: u64,
    count: usize,
    /// Keys by the entries' numbers, to find what is to be removed.
    keys: Vec<u64>,
    present: Vec<bool>,
}

/// Multiplies to twice the width and folds: every bit of the input moves every bit of
/// the output.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// First start of a hash; others are its odd multiples.
pub(super) const FIRST_START: u64 = 0x9e37_79b9_7f4a_7c15;

/// Multiplier of [`step`].
pub(crate) const HASH_FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// The hash with one word more.
#[inline]
pub(super) fn step(hash: u64, word: u64) -> u64 {
    mix(hash ^ word, HASH_FACTOR)
}

/// A hash of the words of a key.
#[inline]
pub(super) fn hash(start: u64, words: &[u64]) -> u64 {
    words.iter().fold(start, |hash, word| step(hash, *word))
}

impl Exact {
    /// A table for keys of `words` words and records of `record` words.
    pub(super) fn new(words: usize, record: usize) -> Exact {
        let mut made = Exact {
            words,
            record,
            slots: Vec::new(),
            mask: FIRST - 1,
            start: FIRST_START,
            count: 0,
            keys: Vec::new(),
            present: Vec::new(),
        };
        made.slots = made.fresh(FIRST);
        made
    }

    fn fresh(&self, slots: usize) -> Vec<u64> {
        let fresh = vec![0; slots * self.stride()];
        super::memory::prefer_huge_pages(fresh.as_ptr(), slots * self.stride() * 8);
        fresh
    }

    fn stride(&self) -> usize {
        self.record + self.words
    }

    fn slot(&self, slot: usize) -> &[u64] {
        &self.slots[slot * self.stride()..][..self.stride()]
    }

    fn number(&self, slot: usize) -> u32 {
        number_of(self.slots[slot * self.stride()])
    }

    fn key(&self, slot: usize) -> &[u64] {
        &self.slot(slot)[self.record..]
    }

    /// The hash of a key.
    #[inline]
    pub(super) fn hash(&self, key: &[u64]) -> u64 {
        hash(self.start, key)
    }

    fn home(&self, key: &[u64]) -> usize {
        self.hash(key) as usize & self.mask
    }

    /// The record of a key of `N` words, which is how many a key of this table has.
    #[inline]
    pub(super) fn find<const N: usize>(&self, key: [u64; N]) -> Option<Record> {
        let mut slot = self.home(&key);
        loop {
            let words = &self.slots[slot * (self.record + N)..][..self.record + N];
            if number_of(words[0]) == 0 {
                return None;
            }
            if words[self.record..] == key {
                return Some(Record(words.as_ptr()));
            }
            slot = (slot + 1) & self.mask;
        }
    }

    /// The record of a key of any length.
    pub(super) fn find_long(&self, key: &[u64]) -> Option<Record> {
        let slot = self.locate(key)?;
        Some(Record(self.slot(slot).as_ptr()))
    }

    /// The slots, the mask of their numbers and the start of the hash, as generated code reads them.
    pub(super) fn slots(&self) -> (*const u64, u64, u64) {
        (self.slots.as_ptr(), self.mask as u64, self.start)
    }

    /// Asks for the memory in which a key's record probably is: a slot may reach into a
    /// second line, or the search go on to the next slot.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        let first = (hash as usize & self.mask) * self.stride();
        let last = (first + 2 * self.stride()).min(self.slots.len()) - 1;
        super::memory::prefetch(&self.slots[first]);
        super::memory::prefetch(&self.slots[last]);
    }

    fn locate(&self, key: &[u64]) -> Option<usize> {
        let mut slot = self.home(key);
        while self.number(slot) != 0 {
            if self.key(slot) == key {
                return Some(slot);
            }
            slot = (slot + 1) & self.mask;
        }
        None
    }

    /// Enters an entry, whose record has its number.
    pub(super) fn insert(&mut self, record: &[u64], key: &[u64]) {
        let room = if self.count < MEDIUM { 1 } else { 3 };
        if (self.count + 1) * 4 > (self.mask + 1) * room {
            self.grow();
        }
        self.place(record, key);
        self.count += 1;
        self.spread();
        let index = number_of(record[0]) as usize;
        if self.present.len() <= index {
            self.present.resize(index + 1, false);
            self.keys.resize((index + 1) * self.words, 0);
        }
        self.present[index] = true;
        self.keys[index * self.words..][..self.words].copy_from_slice(key);
    }

    fn place(&mut self, record: &[u64], key: &[u64]) {
        let mut slot = self.home(key);
        while self.number(slot) != 0 {
            slot = (slot + 1) & self.mask;
        }
        let at = slot * self.stride();
        let (record_slot, key_slot) =
            self.slots[at..at + self.record + self.words].split_at_mut(self.record);
        record_slot.copy_from_slice(record);
        key_slot.copy_from_slice(key);
    }

    /// In a small table, gives each key its home, so that a search for it never goes on: how far it goes
    /// cannot be foretold by the processor, packet by packet.
    fn spread(&mut self) {
        if self.count > SMALL {
            return;
        }
        let used = |slot: &usize| self.number(*slot) != 0;
        let used: Vec<usize> = (0..=self.mask).filter(used).collect();
        if used.iter().all(|slot| self.home(self.key(*slot)) == *slot) {
            return;
        }
        let keys: Vec<&[u64]> = used.iter().map(|slot| self.key(*slot)).collect();
        let apart = |slots: usize, start: u64| {
            let home = |key: &&[u64]| hash(start, key) as usize & (slots - 1);
            let mut homes: Vec<usize> = keys.iter().map(home).collect();
            homes.sort_unstable();
            homes.windows(2).all(|pair| pair[0] != pair[1])
        };
        let sizes = std::iter::successors(Some(self.mask + 1), |slots| Some(slots * 2));
        let found = sizes
            .take_while(|slots| *slots <= FIRST.max(self.count * ROOM))
            .flat_map(|slots| (0..STARTS).map(move |number| (slots, 2 * number + 1)))
            .map(|(slots, factor)| (slots, FIRST_START.wrapping_mul(factor)))
            .find(|(slots, start)| apart(*slots, *start));
        if let Some((slots, start)) = found {
            self.start = start;
            self.resize(slots);
        }
    }

    fn grow(&mut self) {
        self.resize((self.mask + 1) * 2);
    }

    /// Places all entries anew, in so many slots.
    fn resize(&mut self, size: usize) {
        let fresh = self.fresh(size);
        let old = std::mem::replace(&mut self.slots, fresh);
        self.mask = size - 1;
        for slot in old.chunks_exact(self.stride()) {
            if number_of(slot[0]) != 0 {
                let (record, key) = slot.split_at(self.record);
                self.place(record, key);
            }
        }
    }

    /// Removes an entry, if it is there.
    pub(super) fn remove(&mut self, number: u32) {
        let index = number as usize;
        if !self.present.get(index).copied().unwrap_or(false) {
            return;
        }
        self.present[index] = false;
        let key = self.keys[index * self.words..][..self.words].to_vec();
        let Some(mut slot) = self.locate(&key) else {
            return;
        };
        self.count -= 1;
        // Closes the gap: a later key of the run moves into it unless that would put
        // it before its home.
        let stride = self.stride();
        let mut next = (slot + 1) & self.mask;
        while self.number(next) != 0 {
            let home = self.home(self.key(next));
            if (next.wrapping_sub(home) & self.mask) >= (next.wrapping_sub(slot) & self.mask) {
                self.slots
                    .copy_within(next * stride..(next + 1) * stride, slot * stride);
                slot = next;
            }
            next = (next + 1) & self.mask;
        }
        self.slots[slot * stride..(slot + 1) * stride].fill(0);
    }

    /// Bytes that lookups read.
    pub(super) fn looked_at(&self) -> usize {
        self.slots.len() * 8
    }

    pub(super) fn bytes(&self) -> usize {
        (self.slots.capacity() + self.keys.capacity()) * 8 + self.present.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_tables_have_each_key_at_its_home() {
        let mut table = Exact::new(1, 1);
        for number in 1..=32_u64 {
            table.insert(
                &[number << 32],
                &[number.wrapping_mul(0x1234_5678_9abc_def1)],
            );
            let used = |slot: &usize| table.number(*slot) != 0;
            let used: Vec<usize> = (0..=table.mask).filter(used).collect();
            assert_eq!(used.len() as u64, number);
            assert!(
                used.iter()
                    .all(|slot| table.home(table.key(*slot)) == *slot)
            );
        }
    }
}
