//! ElasticSketch: a heavy part of buckets (address, flag, votes) and a light part of counters.
//!
//! The votes against a bucket decide who has it, and are no part of any answer: the program keeps
//! them to itself. [`update`] has them above the 32 bits of the light part's counters.

use crate::address::{bucket, key as key_of, low};
use crate::interval::Interval;
use crate::key::Key;
use crate::sketch::Sketch;

/// A bucket with this bit may have packets of its flow in the light part.
const FLAG: u64 = 1 << 31;
const VOTES: u64 = FLAG - 1;

/// Votes against a bucket for each of its own that take it away: λ = 8, as in the paper.
const LAMBDA_SHIFT: u32 = 3;

fn heavy(sketch: &Sketch, key: Key) -> usize {
    sketch.shape.hash(0).column(key.0, sketch.shape.column_bits)
}

fn light(sketch: &Sketch, key: Key) -> usize {
    sketch.shape.hash(1).column(key.0, sketch.shape.part_bits)
}

fn add(sketch: &mut Sketch, key: Key, count: u64) {
    let place = light(sketch, key);
    let value = &mut sketch.parts[1].values[place];
    *value = value.wrapping_add(count) & u64::from(u32::MAX);
}

pub(crate) fn update(sketch: &mut Sketch, key: Key) {
    let place = heavy(sketch, key);
    let held = sketch.parts[0].values[place];
    let votes = low(held) & VOTES;
    if votes == 0 {
        sketch.parts[0].values[place] = bucket(key, 1);
        sketch.against[place] = 0;
    } else if key_of(held) == key {
        sketch.parts[0].values[place] = bucket(key, low(held) & FLAG | (votes + 1) & VOTES);
    } else {
        sketch.against[place] = sketch.against[place].wrapping_add(1);
        if u64::from(sketch.against[place]) < votes << LAMBDA_SHIFT {
            add(sketch, key, 1);
        } else {
            sketch.parts[0].values[place] = bucket(key, FLAG | 1);
            sketch.against[place] = 1;
            add(sketch, key_of(held), votes);
        }
    }
}

pub(crate) fn query(sketch: &Sketch, key: Key) -> Interval {
    let [heavy_part, light_part] = &sketch.parts[..] else {
        return Interval::sure(0, u64::MAX, 0);
    };
    let held = heavy_part.at(heavy(sketch, key));
    let votes = low(held) & VOTES;
    let own = votes != 0 && key_of(held) == key;
    let rest = light_part.at(light(sketch, key));
    let most = light_part
        .error()
        .map_or(u64::MAX, |error| rest.saturating_add(error));
    let (count, flagged) = if own {
        (votes, held & FLAG != 0)
    } else {
        (0, true)
    };
    if !heavy_part.is_exact() {
        let estimate = count.saturating_add(if flagged { rest } else { 0 });
        return Interval::sure(count, u64::MAX, estimate);
    }
    if !flagged {
        return Interval::exact(count);
    }
    Interval::sure(
        count,
        count.saturating_add(most),
        count.saturating_add(rest),
    )
}

pub(crate) fn keys(sketch: &Sketch) -> Vec<Key> {
    let held = sketch.parts[0].values.iter();
    held.filter(|held| *held & VOTES != 0)
        .map(|held| key_of(*held))
        .collect()
}
