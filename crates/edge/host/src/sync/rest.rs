//! Rest of an engine behind datagrams.

use crate::datagram::BURST;

/// Longest rest in µs, unless a poll is due before.
const LONGEST_US: u64 = 2_000;

/// Longest rest in µs while a view is incomplete, or a request waits for what switches send.
const AWAITED_US: u64 = 100;

/// Shortest rest in µs.
const SHORTEST_US: u64 = 20;

/// For how long an engine leaves its socket behind datagrams that it took, since to wake for each takes
/// several times as long as to take it. A rest is as long as a burst of datagrams needs to come, so that
/// they fit into the small buffer of a socket without privileges, however many switches send.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// When datagrams were last taken, in µs.
    taken_at: u64,
    /// 0 while more may be there.
    length_us: u64,
}

impl Rest {
    /// When it ends, in µs, if something that comes may be `awaited`.
    pub(super) fn until(&self, awaited: bool) -> u64 {
        let longest = if awaited { AWAITED_US } else { LONGEST_US };
        self.taken_at + self.length_us.min(longest)
    }

    /// So many datagrams were taken at `now`, and there may be `more`, for which there is no rest.
    pub(super) fn took(&mut self, now: u64, datagrams: u64, more: bool) {
        if datagrams == 0 {
            return;
        }
        let of_a_burst = now.saturating_sub(self.taken_at) * BURST as u64 / datagrams;
        self.taken_at = now;
        self.length_us = if more {
            0
        } else {
            of_a_burst.clamp(SHORTEST_US, LONGEST_US)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_rest_behind_datagrams_alone() {
        let mut rest = Rest::default();
        rest.took(10_000, 0, false);
        assert!(rest.until(false) <= 10_000);
        rest.took(10_000, 3, false);
        assert_eq!(rest.until(false), 12_000);
        assert_eq!(rest.until(true), 10_100, "somebody waits");
        rest.took(12_000, 0, false);
        assert!(rest.until(false) <= 12_000, "nothing came");
        rest.took(20_000, 256, true);
        assert!(rest.until(false) <= 20_000, "more is there");
    }

    /// However many come, a rest brings no more than a burst, once one rest has told their rate.
    #[test]
    fn a_rest_is_as_long_as_a_burst_takes() {
        for per_ms in [1, 30, 100, 500, 1_000] {
            let (mut rest, mut now) = (Rest::default(), 1_000_000);
            rest.took(now, 1, false);
            for turn in 0..50 {
                let until = rest.until(turn % 7 == 3);
                let came = ((until - now) * per_ms / 1_000).max(1);
                now = until;
                rest.took(now, came, false);
                assert!(turn == 0 || came <= BURST as u64, "{came} at {per_ms} a ms");
            }
            if per_ms <= 30 {
                assert_eq!(rest.until(false), now + LONGEST_US);
            }
        }
    }

    #[test]
    fn a_rest_has_a_least_length() {
        let mut rest = Rest::default();
        rest.took(1_000, 1, false);
        rest.took(1_001, 100_000, false);
        assert_eq!(rest.until(false), 1_001 + SHORTEST_US);
    }
}
