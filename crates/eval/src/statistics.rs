//! Quantiles, distributions, and how sure a difference of medians is.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Resamplings of a bootstrap.
const RESAMPLINGS: usize = 1000;
/// Values drawn from a run in each resampling, at most.
const DRAWN: usize = 1000;

/// The value below which `share` (0 to 1) of `values` lie, by the nearest rank; `None` of
/// nothing.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// The median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// At most `points` points of the cumulative distribution: a value, and the share of values
/// up to it.
pub fn distribution(values: &[f64], points: usize) -> Vec<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let points = points.min(count);
    let rank = |point: usize| (point + 1) * count / points;
    (0..points)
        .map(|point| (sorted[rank(point) - 1], rank(point) as f64 / count as f64))
        .collect()
}

/// A difference, and the bounds between which 95 % of resampled ones lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// From the runs as they were.
    pub value: f64,
    /// 2.5 % lie below.
    pub low: f64,
    /// 2.5 % lie above.
    pub high: f64,
}

impl Interval {
    /// Whether it lies within `bound` around 0.
    pub fn within(&self, bound: f64) -> bool {
        -bound <= self.low && self.high <= bound
    }
}

/// By what share the median of all runs in `with` exceeds that in `without`, with its 95 %
/// bootstrap interval. Runs of one place belong together, having been made one after the
/// other: resampling draws runs, and then values within each. `None` without values or
/// with unequal numbers of runs.
pub fn relative_difference(without: &[Vec<f64>], with: &[Vec<f64>], seed: u64) -> Option<Interval> {
    let runs = without.len();
    if runs == 0 || runs != with.len() || without.iter().chain(with).any(Vec::is_empty) {
        return None;
    }
    let value = ratio(&without.concat(), &with.concat())?;
    let mut random = SmallRng::seed_from_u64(seed);
    let mut differences: Vec<f64> = Vec::with_capacity(RESAMPLINGS);
    for _ in 0..RESAMPLINGS {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            let run = random.random_range(0..runs);
            draw(&without[run], &mut random, &mut a);
            draw(&with[run], &mut random, &mut b);
        }
        differences.push(ratio(&a, &b)?);
    }
    Some(Interval {
        value,
        low: quantile(&differences, 0.025)?,
        high: quantile(&differences, 0.975)?,
    })
}

fn draw(from: &[f64], random: &mut SmallRng, into: &mut Vec<f64>) {
    for _ in 0..from.len().min(DRAWN) {
        into.push(from[random.random_range(0..from.len())]);
    }
}

fn ratio(without: &[f64], with: &[f64]) -> Option<f64> {
    let (a, b) = (median(without)?, median(with)?);
    (a > 0.0).then(|| b / a - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(offset: f64) -> Vec<Vec<f64>> {
        let mut random = SmallRng::seed_from_u64(7);
        (0..5)
            .map(|_| {
                (0..500)
                    .map(|_| 100.0 + offset + random.random_range(-10.0..10.0))
                    .collect()
            })
            .collect()
    }

    #[test]
    fn quantiles_are_values_of_the_list() {
        let values = [5.0, 1.0, 3.0, 2.0, 4.0];
        assert_eq!(median(&values), Some(3.0));
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 0.8), Some(4.0));
        assert_eq!(quantile(&values, 1.0), Some(5.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_distribution_ends_at_the_greatest() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        let points = distribution(&values, 10);
        assert_eq!(points.len(), 10);
        assert_eq!(points[0], (100.0, 0.1));
        assert_eq!(points[9], (1000.0, 1.0));
        assert_eq!(distribution(&values[..3], 10).len(), 3);
        assert!(distribution(&[], 10).is_empty());
    }

    #[test]
    fn equal_runs_differ_by_nothing_and_others_by_what_they_do() {
        let same = relative_difference(&runs(0.0), &runs(0.0), 1).unwrap();
        assert!(same.within(0.03), "{same:?}");
        let other = relative_difference(&runs(0.0), &runs(8.0), 1).unwrap();
        assert!(!other.within(0.03), "{other:?}");
        assert!(other.low > 0.05 && other.high < 0.11, "{other:?}");
        assert!(other.low <= other.value && other.value <= other.high);
    }

    #[test]
    fn one_run_that_differs_widens_the_interval() {
        let mut odd = runs(0.0);
        odd[2].iter_mut().for_each(|value| *value += 20.0);
        odd[3].iter_mut().for_each(|value| *value += 20.0);
        let interval = relative_difference(&runs(0.0), &odd, 1).unwrap();
        assert!(!interval.within(0.03), "{interval:?}");
    }

    #[test]
    fn a_seed_gives_one_interval() {
        let (a, b) = (runs(0.0), runs(3.0));
        assert_eq!(
            relative_difference(&a, &b, 9),
            relative_difference(&a, &b, 9)
        );
        assert_eq!(relative_difference(&a, &b[..4], 9), None);
        assert_eq!(relative_difference(&[], &[], 9), None);
        assert_eq!(relative_difference(&[vec![]], &[vec![]], 9), None);
    }
}
