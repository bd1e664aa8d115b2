//! Control planes that learn the counts of a table of records late or in part.

use super::flows::Flows;
use super::records::{Record, Records};
use crate::error::EvalError;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;

/// µs that the packets take, in which they come evenly spaced; between two collections; and between two
/// looks at what a collection has read.
const LENGTH_US: u64 = 10_000_000;
pub(super) const SECOND_US: u64 = 1_000_000;
const LOOK_US: u64 = 1_000;

/// A count of a flow, with its time in µs: of a record that was read, or evicted.
#[derive(Clone, Copy, Debug)]
struct Count {
    flow: u32,
    packets: u32,
    at: u32,
}

impl Count {
    fn of(record: Record, at: u64) -> Self {
        Self {
            flow: record.flow,
            packets: record.packets as u32,
            at: at as u32,
        }
    }
}

/// A control plane.
pub(super) struct Collector {
    /// µs that a collection takes, and an evicted record.
    latency_us: u64,
    /// Share of the records that are lost.
    loss: f64,
    random: SmallRng,
    /// Of each flow packets of evicted records, and those of the record that was read last with its
    /// time.
    evicted: Vec<u32>,
    read: Vec<(u32, u32)>,
    /// Evicted records under way, with the times at which they come.
    under_way: VecDeque<(u64, Count)>,
    /// Begin of the collection that is under way, and what it has read.
    begun: Option<u64>,
    collected: Vec<Count>,
    next: u32,
}

impl Collector {
    /// One that knows nothing of so many flows.
    pub(super) fn new(flows: usize, latency_us: u64, loss: f64, seed: u64) -> Self {
        Self {
            latency_us,
            loss,
            random: SmallRng::seed_from_u64(seed),
            evicted: vec![0; flows],
            read: vec![(0, 0); flows],
            under_way: VecDeque::new(),
            begun: None,
            collected: Vec::new(),
            next: 0,
        }
    }

    /// Packets of a flow that it knows of.
    pub(super) fn packets(&self, flow: usize) -> u64 {
        u64::from(self.evicted[flow]) + u64::from(self.read[flow].1)
    }

    fn is_lost(&mut self) -> bool {
        self.random.random::<f64>() < self.loss
    }

    /// A record is evicted.
    fn evict(&mut self, now: u64, record: Record) {
        if !self.is_lost() {
            let count = Count::of(record, now);
            self.under_way.push_back((now + self.latency_us, count));
        }
    }

    /// Takes what has come, and reads what is due: a collection begins with each second, unless the last
    /// one is under way, and reads one entry after the other. True if one ends.
    fn advance(&mut self, now: u64, records: &Records) -> bool {
        self.begin(now);
        let mut ends = false;
        if let Some(begun) = self.begun {
            let entries = u64::from(records.entries());
            let due = match self.latency_us {
                0 => entries,
                latency => ((now - begun) * entries / latency).min(entries),
            };
            while u64::from(self.next) < due {
                if let Some(record) = records.record(self.next)
                    && !self.is_lost()
                {
                    self.collected.push(Count::of(record, now));
                }
                self.next += 1;
            }
            ends = due == entries;
        }
        self.hear(now);
        if ends {
            self.begun = None;
            for count in std::mem::take(&mut self.collected) {
                self.read[count.flow as usize] = (count.at, count.packets);
            }
            if self.latency_us > 0 {
                self.begin(now);
            }
        }
        ends
    }

    fn begin(&mut self, now: u64) {
        if self.begun.is_none() && now.is_multiple_of(SECOND_US) {
            self.begun = Some(now);
            self.next = 0;
        }
    }

    /// Evicted records that have come: what was read of them before is in them.
    fn hear(&mut self, now: u64) {
        while let Some((_, count)) = self.under_way.front().filter(|(due, _)| *due <= now) {
            let flow = count.flow as usize;
            self.evicted[flow] += count.packets;
            if self.read[flow].0 < count.at {
                self.read[flow].1 = 0;
            }
            self.under_way.pop_front();
        }
    }
}

/// The end of a collection: what a control plane knows beside what packets did.
pub(super) struct Moment<'a> {
    /// Which control plane.
    pub(super) of: usize,
    pub(super) at: u64,
    pub(super) view: &'a Collector,
    /// Packets by flow.
    pub(super) truth: &'a [u64],
}

/// Lets packets pass a switch with a table of records, of which control planes learn; `look` is called at
/// the end of each of their collections.
///
/// # Errors
/// `EV003` if the program of the table does not compile.
pub(super) fn watch(
    flows: &Flows,
    collectors: &mut [Collector],
    look: &mut dyn FnMut(&Moment<'_>),
) -> Result<(), EvalError> {
    let mut records = Records::new(flows.entries())?;
    let mut truth = vec![0; flows.flows.len()];
    let count = flows.packets.len() as u64;
    let mut at = 0;
    for now in (LOOK_US..=LENGTH_US).step_by(LOOK_US as usize) {
        let until = count * now / LENGTH_US;
        for flow in &flows.packets[at as usize..until as usize] {
            truth[*flow as usize] += 1;
            if let Some(record) = records.count(now, *flow) {
                for collector in &mut *collectors {
                    collector.evict(now, record);
                }
            }
        }
        at = until;
        for (of, collector) in collectors.iter_mut().enumerate() {
            if collector.advance(now, &records) {
                look(&Moment {
                    of,
                    at: now,
                    view: collector,
                    truth: &truth,
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_latency_and_loss_all_is_known_and_with_either_less() {
        let flows = Flows::drawn(1 << 10, 1 << 15, 5);
        let collector = |latency_us, loss| Collector::new(flows.flows.len(), latency_us, loss, 1);
        let mut collectors = [
            collector(0, 0.0),
            collector(2_000_000, 0.0),
            collector(0, 0.5),
        ];
        let mut known = [const { Vec::new() }; 3];
        let mut ends = [const { Vec::new() }; 3];
        watch(&flows, &mut collectors, &mut |moment| {
            let all = 0..flows.flows.len();
            let sum: u64 = all.clone().map(|flow| moment.view.packets(flow)).sum();
            let truth: u64 = moment.truth.iter().sum();
            assert!(
                all.clone()
                    .all(|flow| moment.view.packets(flow) <= moment.truth[flow])
            );
            known[moment.of].push(sum as f64 / truth as f64);
            ends[moment.of].push(moment.at / SECOND_US);
        })
        .unwrap();
        assert_eq!(known[0], [1.0; 10]);
        assert_eq!(ends[0], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(ends[1], [3, 5, 7, 9]);
        assert!(
            known[1].iter().all(|share| (0.2..0.9).contains(share)),
            "{known:?}"
        );
        assert!(
            known[2].iter().all(|share| (0.3..0.8).contains(share)),
            "{known:?}"
        );
    }
}
