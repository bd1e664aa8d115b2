//! How long a protocol waits for an answer before it asks again (RFC 6298).

/// Mean and variation of round trips, of answers to what was sent once (Karn's rule, RFC 6298,
/// section 3).
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundTrip {
    known: Option<(u64, u64)>,
}

impl RoundTrip {
    /// An answer took `trip`, in any unit of time (RFC 6298, section 2).
    pub fn measured(&mut self, trip: u64) {
        self.known = Some(match self.known {
            None => (trip, trip / 2),
            Some((mean, variation)) => (
                (7 * mean + trip) / 8,
                (3 * variation + mean.abs_diff(trip)) / 4,
            ),
        });
    }

    /// Time after which an answer is late, in the same unit; `None` before the first answer.
    pub fn timeout(&self) -> Option<u64> {
        self.known.map(|(mean, variation)| mean + 4 * variation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_is_what_takes_longer_than_the_mean_and_four_variations() {
        let mut trips = RoundTrip::default();
        assert_eq!(trips.timeout(), None);
        trips.measured(800);
        assert_eq!(trips.timeout(), Some(800 + 4 * 400));
        trips.measured(1600);
        // Mean 900, variation (3 * 400 + 800) / 4.
        assert_eq!(trips.timeout(), Some(900 + 4 * 500));
    }

    #[test]
    fn steady_trips_leave_no_variation() {
        let mut trips = RoundTrip::default();
        for _ in 0..100 {
            trips.measured(1000);
        }
        assert_eq!(trips.timeout(), Some(1000));
    }
}
