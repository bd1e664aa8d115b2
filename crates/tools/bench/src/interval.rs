//! Ratios of pairs of measurements, and how sure their mean is.

use std::fmt;

/// Pairs of measurements, one after the other, of which a ratio is the mean.
pub const PAIRS: usize = 10;

/// Standard errors on each side of the mean in an interval of 95 %: Student's distribution with one degree of
/// freedom less than there are pairs.
const QUANTILE: f64 = 2.262;

/// Mean of the values of all pairs.
pub fn mean(values: &[f64; PAIRS]) -> f64 {
    values.iter().sum::<f64>() / PAIRS as f64
}

/// Mean of the ratios of pairs, with the interval in which it lies with a probability of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    half: f64,
}

impl Interval {
    /// The interval of `ratios`.
    pub fn of(ratios: [f64; PAIRS]) -> Interval {
        let count = PAIRS as f64;
        let mean = mean(&ratios);
        let squares = ratios.iter().map(|ratio| (ratio - mean).powi(2));
        let deviation = (squares.sum::<f64>() / (count - 1.0)).sqrt();
        Interval {
            mean,
            half: QUANTILE * deviation / count.sqrt(),
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Interval { mean, half } = self;
        write!(
            f,
            "{mean:.3}, {:.3} to {:.3} with 95 % ({PAIRS} pairs)",
            mean - half,
            mean + half
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_as_wide_as_ratios_differ() {
        let steady = Interval::of([0.5; PAIRS]);
        assert_eq!(
            steady.to_string(),
            "0.500, 0.500 to 0.500 with 95 % (10 pairs)"
        );
        // Five of 0.9 and five of 1.1: a deviation of 0.1054, an error of the mean of 0.0333.
        let uneven = Interval::of(std::array::from_fn(|pair| 0.9 + 0.2 * (pair % 2) as f64));
        assert_eq!(
            uneven.to_string(),
            "1.000, 0.925 to 1.075 with 95 % (10 pairs)"
        );
    }
}
