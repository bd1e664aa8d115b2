//! Quantiles, distributions, and how sure a difference of medians is.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Resamplings of a bootstrap.
const RESAMPLINGS: usize = 1000;

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

/// A line through points by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Growth of y with x.
    pub slope: f64,
    /// y at x = 0.
    pub intercept: f64,
    /// Share of y's variance that the line explains, 0 to 1: the coefficient of determination.
    pub r_squared: f64,
}

/// The line through `points`; `None` of fewer than two, or of points with one x.
pub fn linear_fit(points: &[(f64, f64)]) -> Option<Line> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points
            .iter()
            .map(|point| of(point.0 - x, point.1 - y))
            .sum()
    };
    let (xx, xy, yy) = (sum(&|a, _| a * a), sum(&|a, b| a * b), sum(&|_, b| b * b));
    if points.len() < 2 || xx == 0.0 {
        return None;
    }
    let slope = xy / xx;
    Some(Line {
        slope,
        intercept: y - slope * x,
        r_squared: if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) },
    })
}

/// A figure, and the bounds between which 95 % of resampled ones lie.
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
    /// True if it lies within `bound` around 0.
    pub fn within(&self, bound: f64) -> bool {
        -bound <= self.low && self.high <= bound
    }

    fn of(value: f64, resampled: &[f64]) -> Option<Self> {
        Some(Self {
            value,
            low: quantile(resampled, 0.025)?,
            high: quantile(resampled, 0.975)?,
        })
    }
}

/// By what share the median in `with` exceeds that in `without`: the median over pairs of
/// runs, with its 95 % bootstrap interval. Runs of one place are a pair: they were made one
/// after the other, so what changes slowly on the machine changes both alike. Resampling draws
/// pairs, and then values within each run. `None` without values or with unequal numbers of
/// runs.
pub fn relative_difference(without: &[Vec<f64>], with: &[Vec<f64>], seed: u64) -> Option<Interval> {
    let runs = without.len();
    if runs == 0 || runs != with.len() || without.iter().chain(with).any(Vec::is_empty) {
        return None;
    }
    let mut random = SmallRng::seed_from_u64(seed);
    let differences = |pairs: Vec<(Option<f64>, Option<f64>)>| -> Option<f64> {
        let of = |(without, with): (Option<f64>, Option<f64>)| {
            let (without, with) = (without?, with?);
            (without > 0.0).then(|| with / without - 1.0)
        };
        let all = pairs.into_iter().map(of).collect::<Option<Vec<_>>>()?;
        middle(&all)
    };
    let pairs = without.iter().zip(with);
    let value = differences(pairs.map(|(a, b)| (median(a), median(b))).collect())?;
    let mut resampled = Vec::with_capacity(RESAMPLINGS);
    let mut drawn = Vec::new();
    for _ in 0..RESAMPLINGS {
        let pairs = (0..runs).map(|_| {
            let run = random.random_range(0..runs);
            let mut of = |values| median_of_drawn(values, &mut random, &mut drawn);
            (of(&without[run]), of(&with[run]))
        });
        resampled.push(differences(pairs.collect())?);
    }
    Interval::of(value, &resampled)
}

/// The median of a figure that each run gave, with its 95 % bootstrap interval; `None` of
/// nothing.
pub fn over_runs(values: &[f64], seed: u64) -> Option<Interval> {
    let value = middle(values)?;
    let mut random = SmallRng::seed_from_u64(seed);
    let mut drawn = Vec::new();
    let mut resampled = Vec::with_capacity(RESAMPLINGS);
    for _ in 0..RESAMPLINGS {
        drawn.clear();
        drawn.extend((0..values.len()).map(|_| values[random.random_range(0..values.len())]));
        resampled.push(middle(&drawn)?);
    }
    Interval::of(value, &resampled)
}

/// The median of few values: of an even number the mean of the two in the middle.
fn middle(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get((sorted.len() - 1) / 2)?;
    Some((lower + upper) / 2.0)
}

/// The median of as many values as there are, drawn with replacement; `drawn` is room for
/// them.
fn median_of_drawn(from: &[f64], random: &mut SmallRng, drawn: &mut Vec<f64>) -> Option<f64> {
    drawn.clear();
    drawn.extend((0..from.len()).map(|_| from[random.random_range(0..from.len())]));
    let rank = drawn.len().div_ceil(2).checked_sub(1)?;
    let (_, median, _) = drawn.select_nth_unstable_by(rank, f64::total_cmp);
    Some(*median)
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
    fn a_line_explains_what_lies_on_it() {
        let line = linear_fit(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]).unwrap();
        assert_eq!(
            (line.slope, line.intercept, line.r_squared),
            (2.0, 1.0, 1.0)
        );
        let bent = linear_fit(&[(0.0, 0.0), (1.0, 0.0), (2.0, 3.0)]).unwrap();
        assert!((bent.r_squared - 0.75).abs() < 1e-9, "{bent:?}");
        assert_eq!(linear_fit(&[(1.0, 1.0)]), None);
        assert_eq!(linear_fit(&[(1.0, 1.0), (1.0, 2.0)]), None);
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
    fn what_changes_from_pair_to_pair_alone_is_no_difference() {
        let drifting = |offset: f64| -> Vec<Vec<f64>> {
            let all = (0..6).map(|run| f64::from(run) * 40.0 + offset);
            all.map(|by| runs(by)[0].clone()).collect()
        };
        let same = relative_difference(&drifting(0.0), &drifting(0.5), 1).unwrap();
        assert!(same.within(0.03), "{same:?}");
    }

    #[test]
    fn figures_of_runs_have_an_interval_too() {
        let interval = over_runs(&[0.98, 0.97, 0.99, 0.98, 0.5, 0.98], 1).unwrap();
        assert_eq!(interval.value, 0.98);
        assert!(interval.low < 0.98 && interval.high < 1.0, "{interval:?}");
        assert_eq!(over_runs(&[1.0, 2.0], 1).unwrap().value, 1.5);
        assert_eq!(over_runs(&[], 1), None);
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
