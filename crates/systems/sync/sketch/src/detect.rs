//! Detections.

use crate::distinct::Distinct;
use crate::interval::{Interval, Verdict};
use crate::key::Key;
use crate::sketch::Sketch;

/// A flow, or an address, that is or may be above a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Its key.
    pub key: Key,
    /// Its count.
    pub count: Interval,
    /// *Certainly* or *possibly*.
    pub verdict: Verdict,
}

/// Those of `keys` that are not certainly below, the largest estimate first.
fn above(
    keys: impl IntoIterator<Item = Key>,
    threshold: u64,
    count: impl Fn(Key) -> Interval,
) -> Vec<Found> {
    let found = keys.into_iter().map(|key| {
        let count = count(key);
        let verdict = count.verdict(threshold);
        Found {
            key,
            count,
            verdict,
        }
    });
    let mut found: Vec<Found> = found.filter(|it| it.verdict > Verdict::Not).collect();
    found.sort_by_key(|it| (std::cmp::Reverse(it.count.estimate), it.key));
    found.dedup_by_key(|it| it.key);
    found
}

/// Heavy hitters among `keys`: flows with more than `threshold` packets.
pub fn heavy_hitters(
    sketch: &Sketch,
    keys: impl IntoIterator<Item = Key>,
    threshold: u64,
) -> Vec<Found> {
    match sketch.decode() {
        Some(decoded) => above(keys, threshold, |key| decoded.query(sketch, key)),
        None => above(keys, threshold, |key| sketch.query(key)),
    }
}

/// Icebergs among `keys`: flows with more than `threshold` packets in all places together. The
/// sketches may be of any family, seed and shape, and must count different packets.
pub fn icebergs(
    sketches: &[Sketch],
    keys: impl IntoIterator<Item = Key>,
    threshold: u64,
) -> Vec<Found> {
    above(keys, threshold, |key| {
        let all = sketches.iter().map(|sketch| sketch.query(key));
        all.fold(Interval::exact(0), |sum, one| sum.plus(&one))
    })
}

/// Super-spreaders among `sources`: those that sent to more than `threshold` destinations, by the
/// distinct destinations of each source.
pub fn super_spreaders(
    destinations: &Distinct,
    sources: impl IntoIterator<Item = Key>,
    threshold: u64,
) -> Vec<Found> {
    above(sources, threshold, |key| destinations.query(key))
}

/// Victims of DDoS among `destinations`: those to which more than `threshold` sources sent, by the
/// distinct sources of each destination.
pub fn victims(
    sources: &Distinct,
    destinations: impl IntoIterator<Item = Key>,
    threshold: u64,
) -> Vec<Found> {
    above(destinations, threshold, |key| sources.query(key))
}
