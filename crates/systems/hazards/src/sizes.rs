//! Sizes of packets: distributions, and their way to the worst case.

use crate::HazardError;

/// Least length of a packet in bytes: an IPv4 and a TCP header.
pub const LEAST_BYTES: f64 = 40.0;

/// The α at which sizes follow the distribution of Facebook's data centre (§2 of the paper).
pub const FACEBOOK_ALPHA: f64 = 0.2;

/// Distribution of sizes, between whose points sizes are spread evenly.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Sizes in bytes, each with the share of packets that are at most so long; ascending.
    points: Vec<(f64, f64)>,
}

impl Sizes {
    /// Reads a row of a table of cumulative distributions: columns separated by tabs, the first
    /// with the names of the rows, others named `<=BYTES` with shares from 0 to 1, any others
    /// skipped. `name` is the row's.
    ///
    /// # Errors
    ///
    /// [`HazardError::Line`] if the table or the row is not understood; [`HazardError::Setting`]
    /// if no row has the name.
    pub fn parse(text: &str, name: &str) -> Result<Self, HazardError> {
        let mut lines = text.lines().enumerate();
        let (_, head) = lines.next().ok_or(HazardError::Empty)?;
        let upper = |column: &str| column.strip_prefix("<=")?.parse::<u32>().ok();
        let columns: Vec<Option<u32>> = head.split('\t').map(upper).collect();
        if columns.iter().flatten().count() == 0 {
            return Err(HazardError::Line {
                line: 1,
                reason: "expected columns named <=BYTES, separated by tabs".into(),
            });
        }
        let mut names = Vec::new();
        for (at, line) in lines {
            let row = line.split('\t').next().unwrap_or_default();
            if row != name {
                names.push(row);
                continue;
            }
            let refused = |reason: String| HazardError::Line {
                line: at + 1,
                reason,
            };
            let mut points = Vec::new();
            for (field, bytes) in line.split('\t').zip(&columns) {
                if let Some(bytes) = bytes {
                    let share: f64 = field
                        .trim()
                        .parse()
                        .map_err(|_| refused(format!("{field:?} is no share of packets")))?;
                    points.push((f64::from(*bytes), share));
                }
            }
            return Self::new(points).map_err(|error| refused(error.to_string()));
        }
        Err(HazardError::Setting(format!(
            "no distribution is named {name:?}; the table has {}",
            names.join(", ")
        )))
    }

    /// A distribution of these points: sizes in bytes, above 0 and ascending, each with the share
    /// of packets that are at most so long. The last share is 1.
    ///
    /// # Errors
    ///
    /// [`HazardError::Setting`] if the points are none of a distribution.
    pub fn new(points: Vec<(f64, f64)>) -> Result<Self, HazardError> {
        let ascend = points.windows(2).all(|pair| {
            let [(size, share), (next, above)] = pair else {
                return true;
            };
            size < next && share <= above
        });
        let whole = points.last().is_some_and(|(_, share)| *share == 1.0);
        let valid = |(size, share): &(f64, f64)| {
            (1.0..=65_535.0).contains(size) && (0.0..=1.0).contains(share)
        };
        if !ascend || !whole || !points.iter().all(valid) {
            return Err(HazardError::Setting(
                "sizes from 1 to 65,535 and shares from 0 to 1 have to ascend, up to a share of 1"
                    .into(),
            ));
        }
        Ok(Self { points })
    }

    /// The distribution of recorded sizes in bytes.
    ///
    /// # Errors
    ///
    /// [`HazardError::Empty`] if there is none, [`HazardError::Setting`] for a size of 0 or above
    /// 65,535.
    pub fn recorded(mut sizes: Vec<u32>) -> Result<Self, HazardError> {
        if sizes.is_empty() {
            return Err(HazardError::Empty);
        }
        sizes.sort_unstable();
        let all = sizes.len() as f64;
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (at, size) in sizes.into_iter().enumerate() {
            let (size, share) = (f64::from(size), (at + 1) as f64 / all);
            match points.last_mut() {
                Some(last) if last.0 == size => last.1 = share,
                _ => points.push((size, share)),
            }
        }
        Self::new(points)
    }

    /// The size in bytes that a share (0 to 1) of packets do not exceed. Sizes between two points
    /// are spread evenly; those at most as long as the first point are as long as it.
    #[inline]
    pub fn quantile(&self, share: f64) -> f64 {
        let at = self.points.partition_point(|(_, upper)| *upper < share);
        let Some(&(size, upper)) = self.points.get(at) else {
            return self.points.last().map_or(LEAST_BYTES, |(size, _)| *size);
        };
        let Some(&(least, lower)) = at.checked_sub(1).and_then(|at| self.points.get(at)) else {
            return size;
        };
        least + (size - least) * (share - lower) / (upper - lower)
    }

    /// Share of packets that are at most so long.
    pub fn share(&self, bytes: f64) -> f64 {
        let at = self.points.partition_point(|(size, _)| *size <= bytes);
        let Some(&(least, lower)) = at.checked_sub(1).and_then(|at| self.points.get(at)) else {
            return 0.0;
        };
        match self.points.get(at) {
            Some(&(size, upper)) => lower + (upper - lower) * (bytes - least) / (size - least),
            None => 1.0,
        }
    }
}

/// Sizes on their way from the least (α = 0) to the trace's own (α = 1). Where there is a middle,
/// they pass it at α = 0.2; otherwise the way is straight. A packet keeps its rank: the size of the
/// packet at quantile `q` lies between the quantiles `q` of the two distributions around α.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Position between the two distributions, 0 to 1.
    position: f64,
    middle: Option<Sizes>,
    /// True from the least sizes to the middle; otherwise from there to the trace's.
    from_least: bool,
}

impl Scale {
    /// The way at `alpha`, 0 to 1.
    ///
    /// # Errors
    ///
    /// [`HazardError::Setting`] if `alpha` is out of range.
    pub fn new(alpha: f64, middle: Option<Sizes>) -> Result<Self, HazardError> {
        if !(0.0..=1.0).contains(&alpha) {
            return Err(HazardError::Setting(format!(
                "alpha is {alpha}; give a number from 0 (least sizes) to 1 (the trace's sizes)"
            )));
        }
        let from_least = middle.is_some() && alpha < FACEBOOK_ALPHA;
        let position = match (&middle, from_least) {
            (None, _) => alpha,
            (Some(_), true) => alpha / FACEBOOK_ALPHA,
            (Some(_), false) => (alpha - FACEBOOK_ALPHA) / (1.0 - FACEBOOK_ALPHA),
        };
        Ok(Self {
            position,
            middle,
            from_least,
        })
    }

    /// Length in bytes, of at least 1, of the packet at quantile `share` whose own length is
    /// `bytes`.
    #[inline]
    pub fn bytes(&self, share: f64, bytes: f64) -> u32 {
        let bytes = if self.position == 1.0 && !self.from_least {
            bytes
        } else {
            let middle = self.middle.as_ref().map(|sizes| sizes.quantile(share));
            let (from, to) = match (middle, self.from_least) {
                (Some(middle), true) => (LEAST_BYTES, middle),
                (Some(middle), false) => (middle, bytes),
                (None, _) => (LEAST_BYTES, bytes),
            };
            from + (to - from) * self.position
        };
        bytes.round().max(1.0) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "trace\tmean\t<=40\t<=100\t<=200\na\t1\t0.5\t0.5\t1\nb\t2\t0\t0\t1\n\
                         c\t3\t0.5\t0.2\t1\nd\t3\t0.5\tx\t1\n";

    #[test]
    fn quantiles_and_shares_are_inverse() {
        let sizes = Sizes::parse(TABLE, "a").unwrap();
        let at = [0.1, 0.5, 0.75, 1.0].map(|share| sizes.quantile(share));
        assert_eq!(at, [40.0, 40.0, 150.0, 200.0]);
        let shares = [39.0, 40.0, 100.0, 150.0, 200.0, 900.0].map(|bytes| sizes.share(bytes));
        assert_eq!(shares, [0.0, 0.5, 0.5, 0.75, 1.0, 1.0]);
    }

    #[test]
    fn alpha_leads_from_the_least_over_the_middle_to_the_trace() {
        let middle = Sizes::parse(TABLE, "b").unwrap();
        let bytes = |alpha| {
            let scale = Scale::new(alpha, Some(middle.clone())).unwrap();
            scale.bytes(0.5, 1000.0)
        };
        assert_eq!(
            [0.0, 0.1, 0.2, 0.6, 1.0].map(bytes),
            [40, 95, 150, 575, 1000]
        );
        let straight = Scale::new(0.5, None).unwrap();
        assert_eq!(straight.bytes(0.5, 1000.0), 520);
        assert_eq!(Scale::new(1.5, None).unwrap_err().code(), "HZ001");
        assert_eq!(Scale::new(f64::NAN, None).unwrap_err().code(), "HZ001");
    }

    #[test]
    fn recorded_sizes_are_their_own_quantiles() {
        let sizes = Sizes::recorded(vec![100, 40, 40, 1500]).unwrap();
        assert_eq!(sizes.share(40.0), 0.5);
        assert_eq!(sizes.quantile(1.0), 1500.0);
        assert_eq!(Sizes::recorded(vec![]), Err(HazardError::Empty));
        assert_eq!(Sizes::recorded(vec![0]).unwrap_err().code(), "HZ001");
    }

    #[test]
    fn tables_that_are_none_are_refused() {
        let refused = Sizes::parse(TABLE, "e").unwrap_err().to_string();
        assert!(refused.contains("a, b, c, d"), "{refused}");
        for row in ["c", "d"] {
            assert_eq!(Sizes::parse(TABLE, row).unwrap_err().code(), "HZ002");
        }
        assert_eq!(
            Sizes::parse("trace\tx\na\t1\n", "a").unwrap_err().code(),
            "HZ002"
        );
        assert_eq!(Sizes::parse("", "a"), Err(HazardError::Empty));
    }
}
