//! Values of a group of registers, with what is promised of them.

/// Values of a group, and the promise of its engine (rules 5, 6, 24 of `docs/sync-protocol.md`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Values by location.
    pub values: Vec<u64>,
    /// E: no location is farther from what the data plane held at the mark; `None`: unbounded.
    pub bound: Option<u64>,
    /// k: all but so many locations are within `within`.
    pub all_but: u64,
    /// The greatest threshold of the last two sweeps.
    pub within: u64,
    /// The mark is not older, in µs.
    pub age_us: u64,
    /// Views that began since the engine started.
    pub generation: u64,
    /// Number of cuts.
    pub epoch: u32,
}

impl Reading {
    /// Values of locations at the cut `epoch`: a window is exact (rule 26).
    pub fn window(values: Vec<u64>, epoch: u32) -> Reading {
        Reading {
            values,
            bound: Some(0),
            all_but: 0,
            within: 0,
            age_us: 0,
            generation: 0,
            epoch,
        }
    }

    /// E, by either promise.
    pub fn error(&self) -> Option<u64> {
        let of_all = (self.all_but == 0).then_some(self.within);
        match (self.bound, of_all) {
            (Some(bound), Some(within)) => Some(bound.min(within)),
            (bound, within) => bound.or(within),
        }
    }

    /// True if every value is what the register held at the mark.
    pub fn is_exact(&self) -> bool {
        self.error() == Some(0)
    }

    pub(crate) fn at(&self, location: usize) -> u64 {
        self.values.get(location).copied().unwrap_or(0)
    }

    /// Adds values and bounds of another place: wrapping sums in 64 bits.
    pub(crate) fn add(&mut self, other: &Reading) {
        for (value, more) in self.values.iter_mut().zip(&other.values) {
            *value = value.wrapping_add(*more);
        }
        self.bound = match (self.error(), other.error()) {
            (Some(one), Some(two)) => one.checked_add(two),
            _ => None,
        };
        // Which locations are far is not known, so that those of both may be.
        self.all_but = self.all_but.saturating_add(other.all_but);
        self.within = self.within.saturating_add(other.within);
        self.age_us = self.age_us.max(other.age_us);
        self.generation = self.generation.max(other.generation);
        self.epoch = self.epoch.max(other.epoch);
    }
}
