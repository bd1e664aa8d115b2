//! Requests to a service, and its answers.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Duration of one round of a benchmark, for each contestant.
pub const ROUND: Duration = Duration::from_millis(500);

/// Work done by one run of a benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Packets, requests or lines done.
    pub items: u64,
    /// The time that they took.
    pub spent: Duration,
}

/// Requests of a client in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A new value, acknowledged when it is replicated.
    Write,
    /// A value, as new as all writes answered before.
    Read,
}

/// Reads and writes of keys that are drawn at random.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Bytes of a value.
    pub value: usize,
    /// Number of keys, at least 1.
    pub keys: u64,
    /// Writes in a million requests.
    pub writes_ppm: u32,
    /// Requests in flight, at least 1; no more than the connections that there are.
    pub in_flight: usize,
    /// Duration in ms.
    pub duration_ms: u64,
}

impl Load {
    /// The duration.
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.duration_ms)
    }
}

/// Answers to a [`Load`].
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// Requests that were answered within the time.
    pub answered: u64,
    /// Requests that were refused, or not answered long after the time.
    pub failed: u64,
    /// Time for which answers were counted.
    pub spent: Duration,
    /// Times of the answers.
    pub latencies: Latencies,
}

impl Answers {
    /// Answers per second.
    pub fn per_second(&self) -> f64 {
        self.answered as f64 / self.spent.as_secs_f64().max(1e-9)
    }
}

/// Times of answers, and the shares of them that were faster.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<u32>);

impl Latencies {
    /// Adds the time of one answer.
    pub fn add(&mut self, spent: Duration) {
        self.0
            .push(u32::try_from(spent.as_nanos()).unwrap_or(u32::MAX));
    }

    /// Adds times of others.
    pub fn append(&mut self, mut others: Latencies) {
        self.0.append(&mut others.0);
    }

    /// µs within which `share` of the answers came, 0 to 1; 0 without any.
    pub fn within(&mut self, share: f64) -> f64 {
        self.0.sort_unstable();
        let at = (self.0.len() as f64 * share) as usize;
        let at = at.min(self.0.len().saturating_sub(1));
        self.0.get(at).map_or(0.0, |ns| f64::from(*ns) / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_latencies_are_values_of_the_list() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.within(0.5), 0.0);
        for us in [4, 1, 3, 2] {
            latencies.add(Duration::from_micros(us));
        }
        assert_eq!(latencies.within(0.0), 1.0);
        assert_eq!(latencies.within(0.5), 3.0);
        assert_eq!(latencies.within(1.0), 4.0);
    }

    #[test]
    fn rates_are_answers_by_time() {
        let answers = Answers {
            answered: 300,
            spent: Duration::from_millis(1500),
            ..Answers::default()
        };
        assert_eq!(answers.per_second(), 200.0);
    }
}
