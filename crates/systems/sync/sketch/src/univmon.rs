//! UnivMon: levels of count sketches, each of one row, of which level l has the keys whose first l
//! bits of a hash are ones; and at each level a table of the keys that were large there.
//!
//! A counter of a count sketch is two that only grow, one for each sign, so that the view's bound
//! is as tight as that of any counter. Registers: levels × columns × 2 of counters, then levels ×
//! keys of buckets (address, estimate).

use crate::address::{bucket, key as key_of, low};
use crate::interval::Interval;
use crate::key::Key;
use crate::reading::Reading;
use crate::shape::Family;
use crate::sketch::Sketch;
use core::cmp::Reverse;

/// Of a level's keys so many are its large ones: a quarter of its table, which then has lost few
/// of them to others of their places.
const LARGE_SHIFT: u32 = 2;

/// The deepest level that has the key.
fn depth(sketch: &Sketch, key: Key) -> u32 {
    let ones = sketch.shape.hash(0).of(key.0).leading_ones();
    ones.min(sketch.shape.rows - 1)
}

/// The key's counter at a level. That of the other sign is beside it.
fn place(sketch: &Sketch, key: Key, level: u32) -> usize {
    let shape = sketch.shape;
    let column = shape.hash(1 + level).column(key.0, shape.column_bits + 1);
    level as usize * shape.columns() * 2 + column
}

/// A level's estimate, which may be below 0.
fn estimate(sketch: &Sketch, key: Key, level: u32) -> i64 {
    let place = place(sketch, key, level);
    let part = &sketch.parts[0];
    part.at(place) as i64 - part.at(place ^ 1) as i64
}

pub(crate) fn update(sketch: &mut Sketch, key: Key) {
    let shape = sketch.shape;
    let deepest = depth(sketch, key);
    for level in 0..=deepest {
        let place = place(sketch, key, level);
        sketch.add(place, 1);
    }
    let estimate = estimate(sketch, key, deepest).max(0) as u64;
    let slot = shape.hash(1 + shape.rows).column(key.0, shape.part_bits);
    let held = &mut sketch.parts[1].values[((deepest as usize) << shape.part_bits) + slot];
    if key_of(*held) == key || estimate >= low(*held) {
        *held = bucket(key, estimate);
    }
}

/// The least of the key's counters, each of which counted all of its packets.
fn most(sketch: &Sketch, key: Key, deepest: u32) -> u64 {
    let part = &sketch.parts[0];
    let own = (0..=deepest).map(|level| part.at(place(sketch, key, level)));
    own.min().unwrap_or(0)
}

/// The flow's own counter of each level has counted all of it. At level 0 the estimate is off by
/// more than twice √(F₂/w) with a probability of 1/4 at most (Chebyshev), and F₂ is at most the sum
/// of the columns' squares.
pub(crate) fn query(sketch: &Sketch, key: Key) -> Interval {
    let part = &sketch.parts[0];
    let deepest = depth(sketch, key);
    let most = most(sketch, key, deepest);
    let guess = estimate(sketch, key, deepest).max(0) as u64;
    let Some(error) = part.error() else {
        return Interval::sure(0, u64::MAX, guess);
    };
    let columns = sketch.shape.columns();
    let (pairs, _) = part.values[..2 * columns].as_chunks::<2>();
    let squares = pairs.iter().map(|[one, other]| {
        let column = *one as f64 + *other as f64 + 2.0 * error as f64;
        column * column
    });
    let deviation = 2.0 * (squares.sum::<f64>() / columns as f64).sqrt();
    let beside = error.saturating_add(deviation.ceil() as u64);
    let low = (estimate(sketch, key, 0).max(0) as u64).saturating_sub(beside);
    let high = most.saturating_add(error);
    Interval {
        low: low.min(high),
        high,
        estimate: guess.clamp(low.min(high), high),
        low_miss: 0.25,
        high_miss: 0.0,
    }
}

pub(crate) fn keys(sketch: &Sketch) -> Vec<Key> {
    let held = sketch.parts[1].values.iter();
    held.filter(|held| low(**held) != 0)
        .map(|held| key_of(*held))
        .collect()
}

/// Of two tables the larger key of each place: they only name candidates.
pub(crate) fn join(keys: &mut Reading, more: &Reading) {
    for (held, other) in keys.values.iter_mut().zip(&more.values) {
        if low(*other) > low(*held) {
            *held = *other;
        }
    }
}

impl Sketch {
    /// Estimate of the sum of `g` over the counts of all flows, of a UnivMon sketch (the
    /// recursion of its §4.2); `None` of others. With g(x) = 1 it is the number of flows, with
    /// x·log₂(x) what the entropy needs.
    pub fn sum_of(&self, g: impl Fn(f64) -> f64) -> Option<f64> {
        if self.shape.family != Family::UnivMon {
            return None;
        }
        let keys: Vec<(Key, u32)> = self
            .keys()
            .into_iter()
            .map(|key| (key, depth(self, key)))
            .collect();
        let last = self.shape.rows - 1;
        let mut sum = 0.0;
        for level in (0..=last).rev() {
            let of_level = keys.iter().filter(|(_, deepest)| *deepest >= level);
            let mut own: Vec<(usize, Reverse<u32>, u64)> = of_level
                .map(|(key, deepest)| {
                    let count = estimate(self, *key, level).max(0) as u64;
                    let least = most(self, *key, *deepest);
                    // Elsewhere the key has too few packets for most of these to be its own.
                    let count = if least < count / 2 {
                        0
                    } else {
                        count.min(least)
                    };
                    (place(self, *key, level), Reverse(*deepest), count)
                })
                .filter(|(.., count)| *count > 0)
                .collect();
            // A counter is of one large key: of the one that most levels speak for.
            own.sort_unstable();
            own.dedup_by_key(|(place, ..)| *place);
            own.sort_unstable_by_key(|(.., count)| Reverse(*count));
            own.truncate(1 << self.shape.part_bits >> LARGE_SHIFT);
            let signed = own.iter().map(|(_, deepest, count)| {
                let sign = if deepest.0 > level { -1.0 } else { 1.0 };
                sign * g(*count as f64)
            });
            sum = 2.0 * sum + signed.sum::<f64>();
        }
        Some(sum)
    }
}
