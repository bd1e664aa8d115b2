//! Counts of values, for percentiles.

/// Values below this have a bucket each; above, buckets are at most 1/512 of their values wide.
const EXACT: u64 = 1024;
const HALF: u64 = EXACT / 2;

/// Counts of values, exact below 1024 and within 0.2 % above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    most: u64,
}

impl Histogram {
    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.most = self.most.max(value);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Greatest value; 0 if there is none.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// The least value that at least `share` (0 to 1) of all values do not exceed; 0 if there is
    /// no value.
    pub fn percentile(&self, share: f64) -> u64 {
        let wanted = (share.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return last_of(bucket).min(self.most);
            }
        }
        self.most
    }
}

fn bucket(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    let shift = value.ilog2() - HALF.ilog2();
    (u64::from(shift) * HALF + (value >> shift)) as usize
}

/// Greatest value of a bucket.
fn last_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let shift = bucket / HALF - 1;
    let first = bucket - shift * HALF;
    (((u128::from(first) + 1) << shift) - 1).min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_exact_below_1024_and_narrow_above() {
        for value in (0..5000).chain([1 << 20, (1 << 40) + 12_345, u64::MAX]) {
            let last = last_of(bucket(value));
            assert!(last >= value, "{value}: {last}");
            assert!(last - value <= value / 512, "{value}: {last}");
            assert!(value >= EXACT || last == value, "{value}: {last}");
        }
    }

    #[test]
    fn percentiles_are_the_values_at_their_ranks() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(0.5), 0);
        for value in 1..=100 {
            histogram.add(value);
        }
        let at = [0.0, 0.01, 0.5, 0.99, 0.999, 1.0].map(|share| histogram.percentile(share));
        assert_eq!(at, [1, 1, 50, 99, 100, 100]);
        assert_eq!((histogram.count(), histogram.most()), (100, 100));
    }
}
