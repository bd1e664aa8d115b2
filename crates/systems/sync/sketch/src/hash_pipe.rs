//! HashPipe: stages of buckets (address, count), and behind them how many packets were dropped
//! with buckets that the last stage had no room for.

use crate::address::{bucket, key as key_of, low};
use crate::interval::Interval;
use crate::key::Key;
use crate::sketch::Sketch;

fn places(sketch: &Sketch, key: Key) -> impl Iterator<Item = usize> {
    let shape = sketch.shape;
    (0..shape.rows).map(move |stage| {
        let column = shape.hash(stage).column(key.0, shape.column_bits);
        stage as usize * shape.columns() + column
    })
}

pub(crate) fn update(sketch: &mut Sketch, key: Key) {
    let shape = sketch.shape;
    let last = shape.rows as usize * shape.columns();
    let (mut carried, mut count) = (key, 1);
    for stage in 0..shape.rows {
        let column = shape.hash(stage).column(carried.0, shape.column_bits);
        let held = &mut sketch.parts[0].values[stage as usize * shape.columns() + column];
        let (own, own_count) = (key_of(*held), low(*held));
        if own_count != 0 && own == carried {
            *held = bucket(own, own_count + count);
            return;
        }
        if own_count < count || stage == 0 {
            *held = bucket(carried, count);
            (carried, count) = (own, own_count);
        }
        if count == 0 {
            return;
        }
    }
    let dropped = &mut sketch.parts[0].values[last];
    *dropped = dropped.wrapping_add(count);
}

/// Of an exact reading, stages hold at most what was counted, and all that is missing was
/// dropped. Of others only that each bucket was true once: a flow's count is not less.
pub(crate) fn query(sketch: &Sketch, key: Key) -> Interval {
    let part = &sketch.parts[0];
    let held = places(sketch, key).map(|place| part.at(place));
    let own: Vec<u64> = held
        .filter(|held| low(*held) != 0 && key_of(*held) == key)
        .map(low)
        .collect();
    if part.is_exact() {
        let count = own.iter().sum();
        let dropped = part.at(sketch.shape.rows as usize * sketch.shape.columns());
        return Interval::sure(count, count.saturating_add(dropped), count);
    }
    let most = own.into_iter().max().unwrap_or(0);
    Interval::sure(most, u64::MAX, most)
}

pub(crate) fn keys(sketch: &Sketch) -> Vec<Key> {
    let stages = sketch.shape.rows as usize * sketch.shape.columns();
    let held = sketch.parts[0].values[..stages].iter();
    held.filter(|held| low(**held) != 0)
        .map(|held| key_of(*held))
        .collect()
}
