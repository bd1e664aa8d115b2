//! Orders of an experiment to senders and receivers in their nodes, and answers.

use rustc_hash::{FxHashMap, FxHasher};
use serde::{Deserialize, Serialize};
use std::hash::Hasher as _;

/// Groups at most.
pub const GROUPS: usize = 2;
/// Bytes of Ethernet, IPv4 and UDP headers in front of a message.
pub const HEADERS: usize = 42;
/// Bytes of the shortest payload: a message's time, its number, and its groups.
pub const SHORTEST: usize = 17;

/// A load of messages. Times are µs of the system's clock since it started, which all processes of a
/// machine share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Number of the load, unlike that of all others of the same processes.
    pub number: u16,
    /// Senders begin.
    pub start_us: u64,
    /// Deliveries count from here on: those before are warm-up.
    pub from_us: u64,
    /// Senders end, and deliveries count no more.
    pub to_us: u64,
    /// All that was sent has come.
    pub end_us: u64,
    /// Bytes of a frame without its check sequence.
    pub frame: usize,
    /// Messages that each sender has in flight at most.
    pub in_flight: usize,
    /// Mean ns between two messages of a sender, or 0 if it sends as soon as it may.
    pub period_ns: u64,
    /// Groups, 1 or 2.
    pub groups: u8,
    /// Messages in a thousand that address all groups; others address one, drawn by chance.
    pub several_permille: u32,
}

/// Answer of a sender or a receiver. Parts that are another's are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Why the load was not carried out.
    pub error: Option<String>,
    /// Messages to one group, and to several, that were delivered while they were counted.
    pub delivered: [u64; 2],
    /// Messages by µs from the time at which they were to be sent to their delivery: those that were
    /// to be sent while messages were counted.
    pub latencies: Vec<(u64, u64)>,
    /// Messages delivered from the first to the last, and a digest of their order.
    pub count: u64,
    /// See `count`.
    pub digest: u64,
    /// Messages sent.
    pub sent: u64,
    /// Processor time of the process, in s.
    pub processor_s: f64,
}

/// Fills a payload.
pub fn fill(payload: &mut [u8], scheduled_us: u64, number: u64, groups: u32) {
    payload[..8].copy_from_slice(&scheduled_us.to_be_bytes());
    payload[8..16].copy_from_slice(&number.to_be_bytes());
    payload[16] = groups as u8;
}

/// Number of a message: of its load, its sender, and among those of that sender.
pub fn number(load: u16, sender: u8, message: u64) -> u64 {
    u64::from(load) << 48 | u64::from(sender) << 40 | message
}

/// Deliveries of one load.
pub struct Tally {
    load: Load,
    told: Told,
    latencies: FxHashMap<u64, u64>,
    digest: FxHasher,
}

impl Tally {
    /// Nothing delivered yet.
    pub fn new(load: Load) -> Self {
        Self {
            load,
            told: Told::default(),
            latencies: FxHashMap::default(),
            digest: FxHasher::default(),
        }
    }

    /// Takes a message that was delivered at `at`; those of other loads do not count.
    pub fn take(&mut self, at: u64, payload: &[u8]) {
        let word = |from: usize| {
            let bytes = payload.get(from..).and_then(|rest| rest.first_chunk::<8>());
            u64::from_be_bytes(*bytes.unwrap_or(&[0; 8]))
        };
        let (scheduled, number) = (word(0), word(8));
        if number >> 48 != u64::from(self.load.number) {
            return;
        }
        let told = &mut self.told;
        told.count += 1;
        self.digest.write_u64(number);
        let counted = self.load.from_us..self.load.to_us;
        if counted.contains(&at) {
            let groups = payload.get(16).copied().unwrap_or(0);
            told.delivered[usize::from(groups.count_ones() > 1)] += 1;
        }
        if counted.contains(&scheduled) {
            let latency = at.saturating_sub(scheduled);
            *self.latencies.entry(latency).or_default() += 1;
        }
    }

    /// The answer.
    pub fn told(self) -> Told {
        let mut latencies: Vec<(u64, u64)> = self.latencies.into_iter().collect();
        latencies.sort_unstable();
        Told {
            latencies,
            digest: self.digest.finish(),
            ..self.told
        }
    }
}

/// µs within which `share` of the messages came, 0 to 1; `None` without any. Latencies are those of
/// several receivers.
pub fn within<'a>(told: impl Iterator<Item = &'a Told>, share: f64) -> Option<f64> {
    let mut all: Vec<(u64, u64)> = told
        .flat_map(|told| told.latencies.iter().copied())
        .collect();
    all.sort_unstable();
    let count: u64 = all.iter().map(|(_, count)| count).sum();
    let wanted = (count as f64 * share) as u64;
    let mut passed = 0;
    for (latency, count) in all {
        passed += count;
        if passed > wanted {
            return Some(latency as f64);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load {
        number: 7,
        start_us: 0,
        from_us: 100,
        to_us: 200,
        end_us: 300,
        frame: 150,
        in_flight: 1,
        period_ns: 0,
        groups: 2,
        several_permille: 0,
    };

    fn payload(scheduled: u64, load: u16, message: u64, groups: u32) -> [u8; SHORTEST] {
        let mut payload = [0; SHORTEST];
        fill(&mut payload, scheduled, number(load, 1, message), groups);
        payload
    }

    #[test]
    fn deliveries_count_by_when_they_come_and_latencies_by_when_they_were_due() {
        let mut tally = Tally::new(LOAD);
        for (at, scheduled, groups) in [
            (99, 90, 1),
            (100, 99, 3),
            (150, 120, 3),
            (199, 130, 2),
            (250, 199, 1),
        ] {
            tally.take(at, &payload(scheduled, 7, at, groups));
        }
        tally.take(150, &payload(140, 6, 1, 1));
        let told = tally.told();
        assert_eq!(told.delivered, [1, 2]);
        assert_eq!(told.latencies, [(30, 1), (51, 1), (69, 1)]);
        assert_eq!(told.count, 5);
    }

    #[test]
    fn another_order_has_another_digest() {
        let digest = |messages: [u64; 2]| {
            let mut tally = Tally::new(LOAD);
            for message in messages {
                tally.take(150, &payload(140, 7, message, 1));
            }
            tally.told().digest
        };
        assert_eq!(digest([1, 2]), digest([1, 2]));
        assert_ne!(digest([1, 2]), digest([2, 1]));
    }

    #[test]
    fn shares_are_of_the_messages_of_all_receivers() {
        let told = |latencies: &[(u64, u64)]| Told {
            latencies: latencies.to_vec(),
            ..Told::default()
        };
        let all = [told(&[(10, 3), (30, 1)]), told(&[(20, 4)])];
        assert_eq!(within(all.iter(), 0.0), Some(10.0));
        assert_eq!(within(all.iter(), 0.5), Some(20.0));
        assert_eq!(within(all.iter(), 0.99), Some(30.0));
        assert_eq!(within([].iter(), 0.5), None);
    }
}
