//! Detections in windows, and how many of those that there are they find.

use super::super::plane::{SEED, sketch, wrong};
use super::super::ways::Beside;
use super::place::{COLUMN_BITS, FILTER_BITS, GROUPS, Moment, PARTNER_BITS, Place};
use crate::error::EvalError;
use rustc_hash::FxHashMap;
use stateplane_sketch::detect::{self, Found};
use stateplane_sketch::{Distinct, Key, Shape, Sketch};
use std::collections::BTreeSet;

/// The detections, in the order of scores.
pub(super) const DETECTIONS: [&str; 4] = [
    "heavy hitters",
    "icebergs",
    "super-spreaders",
    "victims of DDoS",
];

/// Thresholds, as thousandths of the packets, and of addresses and flows (the paper: 0.5 %).
const HEAVY: u64 = 1;
const PARTNERS: u64 = 5;

/// Windows and view of sync, and the other ways.
pub(super) const SYSTEMS: usize = 2 + Beside::NAMES.len();
/// The last of them reads at once.
pub(super) const IDEAL: usize = SYSTEMS - 1;

/// Name of a system.
pub(super) fn name(system: usize) -> &'static str {
    match system {
        0 => "sync, windows",
        1 => "sync, view",
        other => Beside::NAMES[other - 2],
    }
}

/// Means over windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Score {
    /// Share of those that there are which it finds.
    pub(super) recall: f64,
    /// Harmonic mean of that and of the share of its findings that are there.
    pub(super) f1: f64,
}

/// Scores of a course.
pub(super) struct Scores {
    /// By system and detection.
    pub(super) of: [[Score; 4]; SYSTEMS],
    /// Keys to be found, by detection: mean of the windows.
    pub(super) there: [f64; 4],
    /// Windows that were asked for, by switch and group, and those that were whole in time.
    pub(super) asked: usize,
    pub(super) whole: usize,
    /// Most µs that a cut was late, and from a window's end until it was whole.
    pub(super) late_us: u64,
    pub(super) took_us: u64,
}

impl Scores {
    /// Greatest difference of windows to the ideal.
    pub(super) fn difference(&self) -> f64 {
        let pairs = self.of[0].iter().zip(&self.of[IDEAL]);
        let off = pairs.map(|(one, ideal)| {
            let recall = (one.recall - ideal.recall).abs();
            recall.max((one.f1 - ideal.f1).abs())
        });
        off.fold(0.0, f64::max)
    }
}

/// Score of what was found, of what there is.
fn score(found: &BTreeSet<Key>, there: &BTreeSet<Key>) -> Score {
    let hits = found.intersection(there).count() as f64;
    let share = |of: usize| if of == 0 { 1.0 } else { hits / of as f64 };
    let (recall, precision) = (share(there.len()), share(found.len()));
    let f1 = match recall + precision {
        0.0 => 0.0,
        sum => 2.0 * recall * precision / sum,
    };
    Score { recall, f1 }
}

/// The shape of a group's sketch.
fn shape(group: usize) -> Shape {
    match group {
        0 => Shape::count_min(SEED, 0, 3, COLUMN_BITS),
        1 => Shape::count_min(SEED, 6, 3, PARTNER_BITS),
        _ => Shape::count_min(SEED, 9, 3, PARTNER_BITS),
    }
}

/// The sketch of a group as a system has it for the window; `None` if that was not whole in time.
fn seen(
    place: &Place,
    group: usize,
    epoch: usize,
    system: usize,
) -> Result<Option<Sketch>, EvalError> {
    let moment = place.moments[group].get(epoch - 1);
    let values = match system {
        0 => place.window(group, epoch).map(|(values, _)| values),
        1 => moment.map(|moment| &moment.view[..]),
        other => moment.map(|moment| &moment.others[other - 2][..]),
    };
    let made = values.map(|values| sketch(shape(group), vec![values.to_vec()]));
    made.transpose()
}

/// Keys whose estimate is above the threshold.
fn by_estimate(found: &[Found], threshold: u64) -> BTreeSet<Key> {
    let above = found.iter().filter(|it| it.count.estimate > threshold);
    above.map(|it| it.key).collect()
}

fn above(counts: &FxHashMap<Key, u64>, threshold: u64) -> BTreeSet<Key> {
    let above = counts.iter().filter(|(_, count)| **count > threshold);
    above.map(|(key, _)| *key).collect()
}

/// Keys with their counts in a window, of which those above the threshold are to be found.
struct Sought {
    counts: FxHashMap<Key, u64>,
    threshold: u64,
}

impl Sought {
    fn of(moment: &Moment, thousandths: u64) -> Self {
        Self {
            counts: moment.counts.clone(),
            threshold: moment.all * thousandths / 1000,
        }
    }

    fn keys(&self) -> impl Iterator<Item = Key> {
        self.counts.keys().copied()
    }
}

/// Findings of a system by detection; none in a window that was not whole in time.
fn finds(
    places: &[Place; 2],
    epoch: usize,
    system: usize,
    sought: &[Sought; 4],
) -> Result<[BTreeSet<Key>; 4], EvalError> {
    let [one, other] = places;
    let mut found: [BTreeSet<Key>; 4] = Default::default();
    let [heavy, global, wide, hit] = sought;
    let flows = seen(one, 0, epoch, system)?;
    if let Some(flows) = &flows {
        let all = detect::heavy_hitters(flows, heavy.keys(), heavy.threshold);
        found[0] = by_estimate(&all, heavy.threshold);
    }
    if let (Some(flows), Some(others)) = (flows, seen(other, 0, epoch, system)?) {
        let all = detect::icebergs(&[flows, others], global.keys(), global.threshold);
        found[1] = by_estimate(&all, global.threshold);
    }
    let distinct = |group| -> Result<Option<Distinct>, EvalError> {
        let sketch = seen(one, group, epoch, system)?;
        let distinct = sketch.map(|sketch| Distinct::new(sketch, FILTER_BITS));
        distinct.transpose().map_err(wrong)
    };
    if let Some(destinations) = distinct(1)? {
        let all = detect::super_spreaders(&destinations, wide.keys(), wide.threshold);
        found[2] = by_estimate(&all, wide.threshold);
    }
    if let Some(sources) = distinct(2)? {
        let all = detect::victims(&sources, hit.keys(), hit.threshold);
        found[3] = by_estimate(&all, hit.threshold);
    }
    Ok(found)
}

/// Keys to be found in the window that cut `epoch` ended; `None` if a switch has no such cut.
fn sought(places: &[Place; 2], epoch: usize) -> Option<[Sought; 4]> {
    let moment = |place: &Place, group: usize| {
        let moments = place.moments[group].get(epoch - 1);
        moments.map(|it| (it.counts.clone(), it.all))
    };
    let of = |group: usize, thousandths| {
        let found = places[0].moments[group].get(epoch - 1);
        found.map(|it| Sought::of(it, thousandths))
    };
    let heavy = of(0, HEAVY)?;
    let (mut counts, mut all) = moment(&places[0], 0)?;
    let (others, of_others) = moment(&places[1], 0)?;
    for (key, count) in others {
        *counts.entry(key).or_insert(0) += count;
    }
    all += of_others;
    let threshold = all * HEAVY / 1000;
    let global = Sought { counts, threshold };
    Some([heavy, global, of(1, PARTNERS)?, of(2, PARTNERS)?])
}

/// The scores of `windows` windows.
///
/// # Errors
/// `EV003` if values are of no sketch.
pub(super) fn scores(places: &[Place; 2], windows: usize) -> Result<Scores, EvalError> {
    let mut scores = Scores {
        of: Default::default(),
        there: [0.0; 4],
        asked: 2 * GROUPS * windows,
        whole: 0,
        late_us: 0,
        took_us: 0,
    };
    let mut counted = [0_u32; 4];
    for epoch in 1..=windows {
        for place in places {
            for (group, moments) in place.moments.iter().enumerate() {
                let late = moments.get(epoch - 1).map_or(0, |moment| moment.late_us);
                scores.late_us = scores.late_us.max(late);
                if let Some((_, at)) = place.window(group, epoch) {
                    scores.whole += 1;
                    let end = place.bed.cuts.iter();
                    let mut end = end.filter(|it| (it.group, it.epoch as usize) == (group, epoch));
                    let took = end.next().map_or(0, |cut| at - cut.at);
                    scores.took_us = scores.took_us.max(took);
                }
            }
        }
        let Some(sought) = sought(places, epoch) else {
            continue;
        };
        let there = sought.each_ref().map(|it| above(&it.counts, it.threshold));
        for system in 0..SYSTEMS {
            let found = finds(places, epoch, system, &sought)?;
            for detection in (0..4).filter(|at| !there[*at].is_empty()) {
                let one = score(&found[detection], &there[detection]);
                scores.of[system][detection].recall += one.recall;
                scores.of[system][detection].f1 += one.f1;
            }
        }
        for ((counted, sum), there) in counted.iter_mut().zip(&mut scores.there).zip(&there) {
            *counted += u32::from(!there.is_empty());
            *sum += there.len() as f64;
        }
    }
    for of in &mut scores.of {
        for (score, counted) in of.iter_mut().zip(counted) {
            // Nothing to find is no score.
            score.recall /= f64::from(counted);
            score.f1 /= f64::from(counted);
        }
    }
    for sum in &mut scores.there {
        *sum /= windows as f64;
    }
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_has_what_is_found_and_what_is_found_wrongly() {
        let keys = |numbers: &[u32]| -> BTreeSet<Key> {
            numbers.iter().map(|it| Key([*it, 0, 0, 0])).collect()
        };
        let found = score(&keys(&[1, 2, 3, 9]), &keys(&[1, 2, 3, 4, 5, 6]));
        assert_eq!((found.recall, found.f1), (0.5, 0.6));
        let nothing = score(&keys(&[]), &keys(&[1]));
        assert_eq!((nothing.recall, nothing.f1), (0.0, 0.0));
    }
}
