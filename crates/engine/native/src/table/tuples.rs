//! Tuple-space search (Srinivasan, Suri and Varghese, SIGCOMM 1999): entries with the
//! same masks form a tuple, which is a hash of masked keys. Tuples are looked at from
//! the best priority on, until none of the rest can be better. What a mask cannot
//! express, a range, is compared in the candidates.

use super::KeyShape;
use super::exact::{FIRST_START, hash, step};
use rustc_hash::FxHashMap;
use stateplane_runtime::bits::{WORD, mask, word_count};
use stateplane_runtime::table::Rule;
use std::cmp::{Ordering, Reverse};

/// Better entries are greater.
pub(super) type Order = (u32, Reverse<u64>);

/// Ends of an entry's ranges, in the order of the keys; several words of each if they are
/// wide.
#[derive(Debug)]
pub(super) struct RangeEnds(Box<[(u128, u128)]>);

impl RangeEnds {
    pub(super) fn of(shape: &KeyShape, rule: &Rule<'_>) -> RangeEnds {
        let ranges = shape.parts.iter().filter(|part| part.range);
        let words = ranges.flat_map(|part| part.offset..part.offset + word_count(part.width));
        RangeEnds(
            words
                .map(|word| (rule.low[word], rule.high[word]))
                .collect(),
        )
    }
}

/// Sort key of an entry; without priorities the longest prefix wins.
pub(super) fn order_of(mask: &[u64], rule: &Rule<'_>) -> Order {
    let priority = if rule.priority == 0 {
        ones(mask)
    } else {
        rule.priority
    };
    (priority, Reverse(rule.serial))
}

#[derive(Debug)]
struct Entry {
    key: Box<[u64]>,
    mask: Box<[u64]>,
    ranges: RangeEnds,
    order: Order,
}

#[derive(Debug)]
struct Tuple {
    mask: Box<[u64]>,
    /// Best of its entries.
    best: Order,
    /// Numbers of entries by the hash of their masked keys, best first; almost always
    /// one.
    entries: FxHashMap<u64, Vec<u32>>,
    count: usize,
}

/// Entries of any match kinds.
#[derive(Debug, Default)]
pub(super) struct Tuples {
    entries: Vec<Option<Entry>>,
    /// Best first.
    tuples: Vec<Tuple>,
}

/// Number of ones in the highest bits of words of a prefix, as a priority: tables with a
/// prefix and exact keys have no other.
fn ones(mask: &[u64]) -> u32 {
    mask.iter().map(|word| word.count_ones()).sum()
}

impl Tuples {
    pub(super) fn insert(&mut self, number: u32, shape: &KeyShape, rule: &Rule<'_>) {
        let mask = shape.pack(rule.high, false);
        let key = shape.pack(rule.low, false);
        let order = order_of(&mask, rule);
        let ranges = RangeEnds::of(shape, rule);
        let index = number as usize;
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
        }
        let at = self.tuples.iter().position(|tuple| tuple.mask == mask);
        let at = at.unwrap_or_else(|| {
            self.tuples.push(Tuple {
                mask: mask.clone(),
                best: order,
                entries: FxHashMap::default(),
                count: 0,
            });
            self.tuples.len() - 1
        });
        let tuple = &mut self.tuples[at];
        let same = tuple.entries.entry(hash(FIRST_START, &key)).or_default();
        let entries = &self.entries;
        let place = same.partition_point(|&other| {
            entries[other as usize]
                .as_ref()
                .is_some_and(|other| other.order > order)
        });
        same.insert(place, number);
        tuple.count += 1;
        tuple.best = tuple.best.max(order);
        self.entries[index] = Some(Entry {
            key,
            mask,
            ranges,
            order,
        });
        self.tuples.sort_by_key(|tuple| Reverse(tuple.best));
    }

    /// Removes an entry, if it is there.
    pub(super) fn remove(&mut self, number: u32) {
        let Some(entry) = self.entries.get_mut(number as usize).and_then(Option::take) else {
            return;
        };
        let Some(at) = self
            .tuples
            .iter()
            .position(|tuple| tuple.mask == entry.mask)
        else {
            return;
        };
        let tuple = &mut self.tuples[at];
        let hashed = hash(FIRST_START, &entry.key);
        if let Some(same) = tuple.entries.get_mut(&hashed) {
            same.retain(|&other| other != number);
            if same.is_empty() {
                tuple.entries.remove(&hashed);
            }
        }
        tuple.count -= 1;
        if tuple.count == 0 {
            self.tuples.remove(at);
        } else if tuple.best == entry.order {
            let numbers = tuple.entries.values().flatten();
            let orders = numbers.filter_map(|&number| {
                let entry = self.entries[number as usize].as_ref()?;
                Some(entry.order)
            });
            tuple.best = orders.max().unwrap_or(tuple.best);
            self.tuples.sort_by_key(|tuple| Reverse(tuple.best));
        }
    }

    pub(super) fn find(&self, shape: &KeyShape, key: &[u64]) -> u32 {
        let mut found = 0;
        let mut best = None;
        for tuple in &self.tuples {
            if best.is_some_and(|best| best >= tuple.best) {
                break;
            }
            let masked = key.iter().zip(&*tuple.mask);
            let hashed = masked
                .clone()
                .fold(FIRST_START, |hash, (key, mask)| step(hash, key & mask));
            let Some(numbers) = tuple.entries.get(&hashed) else {
                continue;
            };
            let first = numbers.iter().find_map(|&number| {
                let entry = self.entries[number as usize].as_ref()?;
                let same = masked
                    .clone()
                    .zip(&*entry.key)
                    .all(|((key, mask), wanted)| key & mask == *wanted);
                (same && within(shape, key, &entry.ranges)).then_some((number, entry.order))
            });
            if let Some((number, order)) = first
                && best.is_none_or(|best| order > best)
            {
                found = number;
                best = Some(order);
            }
        }
        found
    }

    pub(super) fn bytes(&self) -> usize {
        let key = |entry: &Entry| (entry.key.len() + entry.mask.len()) * 8;
        let entries = self.entries.iter().flatten();
        let entries: usize = entries.map(|entry| key(entry) + size_of::<Entry>()).sum();
        let tuples = self.tuples.iter();
        entries
            + tuples
                .map(|tuple| tuple.entries.capacity() * 48)
                .sum::<usize>()
    }
}

/// True if the range keys of a packed key lie within these ends.
pub(super) fn within(shape: &KeyShape, key: &[u64], ranges: &RangeEnds) -> bool {
    let mut rest = &*ranges.0;
    shape.parts.iter().filter(|part| part.range).all(|part| {
        let (ends, behind) = rest.split_at(word_count(part.width));
        rest = behind;
        // From the lowest word on; a higher one that differs decides.
        let (mut above, mut below) = (Ordering::Equal, Ordering::Equal);
        for (index, (low, high)) in ends.iter().enumerate() {
            let done = index as u32 * WORD;
            let value = unpack(key, part.lo + done, (part.width - done).min(WORD));
            above = value.cmp(low).then(above);
            below = value.cmp(high).then(below);
        }
        above != Ordering::Less && below != Ordering::Greater
    })
}

/// Bits of a packed key, at most 128.
fn unpack(key: &[u64], lo: u32, width: u32) -> u128 {
    let word = |index: usize| u128::from(key.get(index).copied().unwrap_or(0));
    let (index, shift) = ((lo / 64) as usize, lo % 64);
    let low = word(index) >> shift | word(index + 1) << (64 - shift);
    let high = match shift {
        0 => 0,
        _ => word(index + 2) << (128 - shift),
    };
    (low | high) & mask(width)
}
