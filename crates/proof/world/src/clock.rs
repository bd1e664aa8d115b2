//! Clocks that start anywhere and run a little too fast or too slow.

use stateplane_random::Random;

/// Maximum deviation of a clock's rate, in parts per million: the bound of the protocol's rule 1,
/// unless the store has another.
pub const MAX_DRIFT_PPM: u32 = 900;

const MILLION: i64 = 1_000_000;

/// Greatest reading of a clock at its start.
const LATEST_OFFSET: u64 = 1 << 44;

/// A node's clock as a function of true time, both in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// True time at which it began.
    pub began: u64,
    /// Value of the clock at its beginning.
    pub offset: u64,
    /// Drift: µs gained in a million µs.
    pub drift_ppm: i64,
}

impl Clock {
    /// True time.
    pub const TRUE: Self = Self {
        began: 0,
        offset: 0,
        drift_ppm: 0,
    };

    /// A clock that begins at `now` and is off by at most `drift` ppm; many are off
    /// by as much. Many begin near 0, like that of a machine that was just started.
    pub fn draw(random: &mut Random, now: u64, drift: u32) -> Self {
        let latest = if random.permille(500) {
            10_000_000
        } else {
            LATEST_OFFSET
        };
        let drift = i64::from(drift);
        let drift_ppm = match random.place(4) {
            0 => -drift,
            1 => drift,
            _ => random.between(0, 2 * drift as u64) as i64 - drift,
        };
        Self {
            began: now,
            offset: random.between(1, latest),
            drift_ppm,
        }
    }

    /// Value of the clock at `time`, which is not before its beginning.
    pub fn local(&self, time: u64) -> u64 {
        let passed = time.saturating_sub(self.began);
        let rate = (MILLION + self.drift_ppm) as u64;
        self.offset + passed * rate / MILLION as u64
    }

    /// The first true time at which it shows `local` or more.
    pub fn time_of(&self, local: u64) -> u64 {
        let Some(ahead) = local.checked_sub(self.offset) else {
            return self.began;
        };
        let rate = (MILLION + self.drift_ppm) as u128;
        // The least t with floor(t * rate / 10^6) >= ahead.
        let passed = (u128::from(ahead) * MILLION as u128).div_ceil(rate);
        self.began
            .saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_time_of_a_reading_is_the_first(
            began in 0u64..10_000_000,
            offset in 0u64..1 << 44,
            drift_ppm in -i64::from(MAX_DRIFT_PPM)..=i64::from(MAX_DRIFT_PPM),
            ahead in 0u64..10_000_000,
        ) {
            let clock = Clock { began, offset, drift_ppm };
            let local = offset + ahead;
            let time = clock.time_of(local);
            prop_assert!(clock.local(time) >= local);
            prop_assert!(time == began || clock.local(time - 1) < local);
        }
    }
}
