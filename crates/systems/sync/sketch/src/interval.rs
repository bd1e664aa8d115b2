//! Answers.

/// Interval in which a count was.
///
/// `high` holds at the oldest mark of the readings, `low` at the newest (rule 27 of
/// `docs/sync-protocol.md`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The count is not smaller, but for a chance of `low_miss`.
    pub low: u64,
    /// The count is not greater, but for a chance of `high_miss`; [`u64::MAX`]: no bound.
    pub high: u64,
    /// The sketch's estimate, between the ends.
    pub estimate: u64,
    /// Probability, over the seed, that the count is below `low`; 0: it never is.
    pub low_miss: f64,
    /// Probability, over the seed, that the count is above `high`; 0: it never is.
    pub high_miss: f64,
}

/// Place of a flow about a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The whole interval is at the threshold or below.
    Not,
    /// The threshold is within the interval.
    Possibly,
    /// The whole interval is above the threshold.
    Certainly,
}

impl Verdict {
    /// Its name, as answers have it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Not => "not",
            Verdict::Possibly => "possibly",
            Verdict::Certainly => "certainly",
        }
    }
}

impl Interval {
    /// One whose ends never miss.
    pub fn sure(low: u64, high: u64, estimate: u64) -> Interval {
        Interval {
            low,
            high,
            estimate: estimate.clamp(low, high),
            low_miss: 0.0,
            high_miss: 0.0,
        }
    }

    /// A count that is known.
    pub fn exact(count: u64) -> Interval {
        Interval::sure(count, count, count)
    }

    /// True if `count` is in it.
    pub fn contains(&self, count: u64) -> bool {
        self.low <= count && count <= self.high
    }

    /// Place of the flow about a threshold: it is heavy with more. A verdict is as sure as the
    /// end of the interval that it stands on.
    pub fn verdict(&self, threshold: u64) -> Verdict {
        if self.low > threshold {
            Verdict::Certainly
        } else if self.high > threshold {
            Verdict::Possibly
        } else {
            Verdict::Not
        }
    }

    /// Sum of the counts of two places that count different packets.
    #[must_use]
    pub fn plus(&self, other: &Interval) -> Interval {
        Interval {
            low: self.low.saturating_add(other.low),
            high: self.high.saturating_add(other.high),
            estimate: self.estimate.saturating_add(other.estimate),
            low_miss: (self.low_miss + other.low_miss).min(1.0),
            high_miss: (self.high_miss + other.high_miss).min(1.0),
        }
    }
}
