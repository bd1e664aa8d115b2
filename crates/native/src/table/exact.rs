//! Exact keys: open addressing with linear probing, keys beside the entries' numbers, so
//! that a lookup mostly touches one line of the cache.

/// Slots at first; always a power of two.
const FIRST: usize = 8;

/// Numbers of entries by key.
#[derive(Debug)]
pub(super) struct Exact {
    /// Words of a key.
    words: usize,
    /// For each slot the words of its key, and the entry's number or 0.
    slots: Vec<u64>,
    mask: usize,
    count: usize,
    /// Slots' keys by the entries' numbers, to find what is to be removed.
    keys: Vec<u64>,
    present: Vec<bool>,
}

/// Multiplies to twice the width and folds: every bit of the input moves every bit of
/// the output.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of no words.
pub(super) const HASH_START: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash with one word more.
#[inline]
pub(super) fn step(hash: u64, word: u64) -> u64 {
    mix(hash ^ word, 0xd6e8_feb8_6659_fd93)
}

/// A hash of the words of a key.
#[inline]
pub(super) fn hash(words: &[u64]) -> u64 {
    words
        .iter()
        .fold(HASH_START, |hash, word| step(hash, *word))
}

impl Exact {
    pub(super) fn new(words: usize) -> Exact {
        Exact {
            words,
            slots: vec![0; FIRST * (words + 1)],
            mask: FIRST - 1,
            count: 0,
            keys: Vec::new(),
            present: Vec::new(),
        }
    }

    fn stride(&self) -> usize {
        self.words + 1
    }

    fn number(&self, slot: usize) -> u32 {
        self.slots[slot * self.stride() + self.words] as u32
    }

    fn key(&self, slot: usize) -> &[u64] {
        &self.slots[slot * self.stride()..][..self.words]
    }

    fn home(&self, key: &[u64]) -> usize {
        hash(key) as usize & self.mask
    }

    /// The number of a key of `N` words, which is how many a key of this table has.
    #[inline]
    pub(super) fn find<const N: usize>(&self, key: [u64; N]) -> u32 {
        let mut slot = hash(&key) as usize & self.mask;
        loop {
            let Some(found) = self.slots[slot * (N + 1)..].first_chunk::<N>() else {
                return 0;
            };
            let number = self.slots[slot * (N + 1) + N] as u32;
            if number == 0 || *found == key {
                return number;
            }
            slot = (slot + 1) & self.mask;
        }
    }

    /// The number of a key of any length.
    pub(super) fn find_long(&self, key: &[u64]) -> u32 {
        let mut slot = self.home(key);
        loop {
            let number = self.number(slot);
            if number == 0 || self.key(slot) == key {
                return number;
            }
            slot = (slot + 1) & self.mask;
        }
    }

    pub(super) fn insert(&mut self, number: u32, key: &[u64]) {
        if (self.count + 1) * 4 > (self.mask + 1) * 3 {
            self.grow();
        }
        self.place(number, key);
        self.count += 1;
        let index = number as usize;
        if self.present.len() <= index {
            self.present.resize(index + 1, false);
            self.keys.resize((index + 1) * self.words, 0);
        }
        self.present[index] = true;
        self.keys[index * self.words..][..self.words].copy_from_slice(key);
    }

    fn place(&mut self, number: u32, key: &[u64]) {
        let mut slot = self.home(key);
        while self.number(slot) != 0 {
            slot = (slot + 1) & self.mask;
        }
        let at = slot * self.stride();
        self.slots[at..at + self.words].copy_from_slice(key);
        self.slots[at + self.words] = u64::from(number);
    }

    fn grow(&mut self) {
        let size = (self.mask + 1) * 2;
        let old = std::mem::replace(&mut self.slots, vec![0; size * (self.words + 1)]);
        self.mask = size - 1;
        for slot in old.chunks_exact(self.stride()) {
            let number = slot[self.words] as u32;
            if number != 0 {
                self.place(number, &slot[..self.words]);
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
        let mut slot = self.home(&key);
        while self.number(slot) != number {
            slot = (slot + 1) & self.mask;
        }
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

    pub(super) fn bytes(&self) -> usize {
        (self.slots.capacity() + self.keys.capacity()) * 8 + self.present.capacity()
    }
}
