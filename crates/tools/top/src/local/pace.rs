//! A virtual clock that keeps to real time.

use std::time::{Duration, Instant};

/// µs that the virtual clock may be ahead.
const AHEAD_US: u64 = 500;

/// µs behind real time at which what was missed is let go.
const BEHIND_US: u64 = 200_000;

/// A virtual clock's relation to real time.
pub(super) struct Pace {
    started: Instant,
    from: u64,
    /// Real and virtual time of the last [`Pace::speed`].
    last: (Instant, u64),
    checked: u64,
}

impl Pace {
    pub(super) fn new(now: u64) -> Pace {
        let started = Instant::now();
        Pace {
            started,
            from: now,
            last: (started, now),
            checked: now,
        }
    }

    /// Waits while the virtual clock, which shows `now`, is ahead.
    pub(super) fn keep(&mut self, now: u64) {
        if now < self.checked + AHEAD_US {
            return;
        }
        self.checked = now;
        let real = self.started.elapsed().as_micros() as u64;
        let passed = now - self.from;
        if passed > real + AHEAD_US {
            std::thread::sleep(Duration::from_micros(passed - real));
        } else if real > passed + BEHIND_US {
            (self.started, self.from) = (Instant::now(), now);
        }
    }

    /// Share of real time at which the virtual clock ran since the last call, at most 1.
    pub(super) fn speed(&mut self, now: u64) -> f64 {
        let (at, from) = std::mem::replace(&mut self.last, (Instant::now(), now));
        let real = at.elapsed().as_micros().max(1) as f64;
        ((now - from) as f64 / real).min(1.0)
    }
}
