//! Ternary keys by bit vectors (Lakshman and Stiliadis, SIGCOMM 1998), a byte of the key
//! at a time: for each byte and each of its values a vector of the entries that it fits,
//! best first. The first entry that is in the vectors of all bytes wins.

use super::KeyShape;
use super::tuples::{Order, RangeEnds, order_of, within};
use stateplane_runtime::table::Rule;

/// Entries up to which vectors are short enough to be moved at each change.
pub(super) const MOST: usize = 4096;

/// Entries of one word of a vector.
const BITS: usize = 64;

/// Words that are looked at together.
const LANE: usize = 8;

#[derive(Debug)]
struct Entry {
    number: u32,
    order: Order,
    ranges: RangeEnds,
}

/// Entries of any match kinds, at most [`MOST`].
#[derive(Debug)]
pub(super) struct Slices {
    /// Bytes of a key.
    bytes: usize,
    /// Words of a vector.
    words: usize,
    /// Vectors by byte of the key, from the lowest on, and value.
    vectors: Vec<u64>,
    /// Best first; an entry's place is its bit's.
    entries: Vec<Entry>,
    /// Sort keys of entries, by their numbers.
    orders: Vec<Option<Order>>,
    ranges: bool,
}

impl Slices {
    pub(super) fn new(shape: &KeyShape) -> Slices {
        Slices {
            bytes: shape.words * 8,
            words: 0,
            vectors: Vec::new(),
            entries: Vec::new(),
            orders: Vec::new(),
            ranges: shape.parts.iter().any(|part| part.range),
        }
    }

    /// Makes the vectors longer.
    fn grow(&mut self) {
        let words = (self.words * 2).max(LANE);
        let mut vectors = vec![0; self.bytes * 256 * words];
        if self.words > 0 {
            let old = self.vectors.chunks_exact(self.words);
            for (new, old) in vectors.chunks_exact_mut(words).zip(old) {
                new[..old.len()].copy_from_slice(old);
            }
        }
        self.vectors = vectors;
        self.words = words;
    }

    /// Place of the entry with an order, or where it belongs.
    fn place(&self, order: Order) -> usize {
        self.entries.partition_point(|entry| entry.order > order)
    }

    pub(super) fn insert(&mut self, number: u32, shape: &KeyShape, rule: &Rule<'_>) {
        if self.entries.len() == self.words * BITS {
            self.grow();
        }
        let mask = shape.pack(rule.high, false);
        let key = shape.pack(rule.low, false);
        let order = order_of(&mask, rule);
        let place = self.place(order);
        let entry = Entry {
            number,
            order,
            ranges: RangeEnds::of(shape, rule),
        };
        self.entries.insert(place, entry);
        let index = number as usize;
        if self.orders.len() <= index {
            self.orders.resize(index + 1, None);
        }
        self.orders[index] = Some(order);
        for (at, vector) in self.vectors.chunks_exact_mut(self.words).enumerate() {
            let (byte, value) = (at / 256, at as u8);
            let part = |words: &[u64]| (words[byte / 8] >> (byte % 8 * 8)) as u8;
            insert_bit(vector, place, value & part(&mask) == part(&key));
        }
    }

    /// Removes an entry, if it is there.
    pub(super) fn remove(&mut self, number: u32) {
        let Some(order) = self.orders.get_mut(number as usize).and_then(Option::take) else {
            return;
        };
        let place = self.place(order);
        self.entries.remove(place);
        for vector in self.vectors.chunks_exact_mut(self.words) {
            remove_bit(vector, place);
        }
    }

    #[inline]
    pub(super) fn find(&self, shape: &KeyShape, key: &[u64]) -> u32 {
        let mut from = 0;
        while from < self.words {
            let mut fits = [u64::MAX; LANE];
            for byte in 0..self.bytes {
                let value = (key[byte / 8] >> (byte % 8 * 8)) as u8;
                let at = (byte * 256 + usize::from(value)) * self.words + from;
                if let Some(vector) = self.vectors[at..].first_chunk::<LANE>() {
                    for (fits, vector) in fits.iter_mut().zip(vector) {
                        *fits &= vector;
                    }
                }
            }
            for (index, mut word) in fits.into_iter().enumerate() {
                while word != 0 {
                    let place = (from + index) * BITS + word.trailing_zeros() as usize;
                    word &= word - 1;
                    let entry = &self.entries[place];
                    if !self.ranges || within(shape, key, &entry.ranges) {
                        return entry.number;
                    }
                }
            }
            from += LANE;
        }
        0
    }

    pub(super) fn bytes(&self) -> usize {
        self.vectors.capacity() * 8 + self.entries.capacity() * size_of::<Entry>()
    }
}

/// Moves the bits from `place` on up by one, and puts one there.
fn insert_bit(vector: &mut [u64], place: usize, bit: bool) {
    let (first, shift) = (place / BITS, place % BITS);
    let below = (1u64 << shift) - 1;
    let word = vector[first];
    let mut carry = word >> (BITS - 1);
    vector[first] = word & below | (word & !below) << 1 | u64::from(bit) << shift;
    for word in &mut vector[first + 1..] {
        let next = *word >> (BITS - 1);
        *word = *word << 1 | carry;
        carry = next;
    }
}

/// Takes the bit at `place` out, and moves those behind it down by one.
fn remove_bit(vector: &mut [u64], place: usize) {
    let (first, shift) = (place / BITS, place % BITS);
    let mut carry = 0;
    for word in vector[first + 1..].iter_mut().rev() {
        let next = *word << (BITS - 1);
        *word = *word >> 1 | carry;
        carry = next;
    }
    let below = (1u64 << shift) - 1;
    let word = vector[first];
    vector[first] = word & below | (word >> 1) & !below | carry;
}

#[cfg(test)]
mod tests {
    use super::{insert_bit, remove_bit};
    use proptest::prelude::*;

    fn bits(vector: &[u64]) -> Vec<bool> {
        (0..vector.len() * 64)
            .map(|place| vector[place / 64] >> (place % 64) & 1 == 1)
            .collect()
    }

    proptest! {
        #[test]
        fn bits_move(vector in any::<[u64; 3]>(), place in 0usize..192, bit: bool) {
            let mut expected = bits(&vector);
            expected.insert(place, bit);
            expected.pop();
            let mut changed = vector;
            insert_bit(&mut changed, place, bit);
            prop_assert_eq!(bits(&changed), expected.clone());
            expected.remove(place);
            expected.push(false);
            remove_bit(&mut changed, place);
            prop_assert_eq!(bits(&changed), expected);
        }
    }
}
