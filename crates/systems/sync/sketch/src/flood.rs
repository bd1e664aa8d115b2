//! Verdicts about UDP floods, from the windows of `apps/udp-flood`.

use std::collections::BTreeMap;

/// Which pairs of hosts are blocked, by bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flood {
    threshold: u64,
    blocked: BTreeMap<u32, u64>,
}

impl Flood {
    /// A pair with more packets than `threshold` in a window floods.
    pub fn new(threshold: u64) -> Flood {
        Flood {
            threshold,
            blocked: BTreeMap::new(),
        }
    }

    /// The pairs that are blocked, by bucket: source in the upper 32 bits, destination in the lower.
    pub fn blocked(&self) -> &BTreeMap<u32, u64> {
        &self.blocked
    }

    /// Takes a window of `pairs`, pair and packets of each bucket by turns. Returns what has to be
    /// written to `blocked`, by location: a pair that floods, or 0 where one does no more. A verdict stays
    /// while its pair floods, and while another pair has the bucket and the blocked one is not
    /// counted.
    pub fn window(&mut self, values: &[u64]) -> Vec<(u32, u64)> {
        let (buckets, _) = values.as_chunks::<2>();
        let mut writes = Vec::new();
        for (bucket, [pair, packets]) in (0..).zip(buckets) {
            let held = self.blocked.get(&bucket).copied();
            let floods = *packets > self.threshold;
            let verdict = match held {
                _ if floods => Some(*pair),
                Some(held) if *packets > 0 && held != *pair => Some(held),
                _ => None,
            };
            if verdict == held {
                continue;
            }
            match verdict {
                Some(pair) => self.blocked.insert(bucket, pair),
                None => self.blocked.remove(&bucket),
            };
            writes.push((bucket, verdict.unwrap_or(0)));
        }
        writes
    }
}
