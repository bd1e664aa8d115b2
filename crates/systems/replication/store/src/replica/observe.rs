//! The tail's part for observers, which follow its records and which nothing waits for (rule 30).

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use indexmap::IndexMap;
use stateplane_wire::observe::{
    Answer, Holding, OBSERVED_LENGTH, Observe, PART_LENGTH, Record, answer_flag,
};
use stateplane_wire::replication::Key;

use super::Replica;
use crate::parking::Flow;
use crate::record::{self, Lease};
use crate::shard::Shard;

/// Most changes that a chain keeps.
const MOST_CHANGES: usize = 1 << 16;

/// Flows that changed, in the order of the entries that changed them, each once: at its last change.
#[derive(Debug, Clone)]
pub(super) struct Changes {
    /// Which of the lists that servers kept.
    stream: u64,
    /// Changes that are kept.
    most: usize,
    /// The entry up to which changes are not kept.
    before: u64,
    /// Entries and the flows that they changed; of each flow only the last one counts.
    order: VecDeque<(u64, Flow)>,
    /// The last entry that changed a flow.
    last: IndexMap<Flow, u64, FixedState>,
    /// Entries that were noted since an observer asked.
    unasked: usize,
}

impl Changes {
    fn new(stream: u64, applied: u64, most: usize) -> Changes {
        Changes {
            stream,
            most,
            before: applied,
            order: VecDeque::new(),
            last: IndexMap::with_hasher(FixedState::with_seed(stream)),
            unasked: 0,
        }
    }

    /// Notes that entry `number` changed `flow`; `false` if nobody has asked for so many changes that
    /// an observer would have to read all records anyway.
    fn note(&mut self, number: u64, flow: Flow) -> bool {
        if self.last.insert(flow, number) == Some(number) {
            return true;
        }
        self.order.push_back((number, flow));
        if self.order.len() > self.most
            && let Some((number, flow)) = self.order.pop_front()
        {
            self.before = number;
            if self.last.get(&flow) == Some(&number) {
                self.last.swap_remove(&flow);
            }
        }
        self.unasked += 1;
        self.unasked <= self.most
    }

    /// The flows that entries behind `after` changed, with the last entry of each, in their order.
    fn behind(&self, after: u64) -> impl Iterator<Item = (u64, Flow)> {
        let from = self.order.partition_point(|(number, _)| *number <= after);
        let behind = self.order.range(from..);
        behind
            .filter(|(number, flow)| self.last.get(flow) == Some(number))
            .copied()
    }

    /// True if the changes behind `after` are all here.
    fn has_all_behind(&self, after: u64) -> bool {
        after >= self.before
    }
}

/// Bodies of the datagrams of an answer, as they are filled.
struct Bodies {
    most: usize,
    bodies: Vec<Vec<u8>>,
}

impl Bodies {
    /// Appends a record; `false` if there is no room.
    fn append(&mut self, record: &Record<'_>) -> bool {
        let needed = record.buffer_len();
        let has_room = |body: &Vec<u8>| OBSERVED_LENGTH + body.len() + needed <= PART_LENGTH;
        if !self.bodies.last().is_some_and(has_room) {
            if self.bodies.len() == self.most {
                return false;
            }
            self.bodies.push(Vec::new());
        }
        let Some(body) = self.bodies.last_mut() else {
            return false;
        };
        // A state of the configuration's length fits.
        record.append(body).is_ok()
    }
}

/// The record of `key` as observers are told it.
fn told<'a>(number: u16, key: Key, shard: &'a Shard) -> Record<'a> {
    match shard.records.get(&key) {
        Some(record) => present(number, key, record),
        None => Record {
            shard: number,
            key,
            epoch: shard.epoch,
            sequence: 0,
            lease: None,
            state: &[],
        },
    }
}

fn present(number: u16, key: Key, record: &record::Record) -> Record<'_> {
    Record {
        shard: number,
        key,
        epoch: record.epoch,
        sequence: record.sequence,
        lease: Some(match record.lease {
            Lease::None => Holding::Nobody,
            Lease::Exclusive(_) => Holding::Owner,
            Lease::Shared(_) => Holding::Readers,
        }),
        state: &record.state,
    }
}

/// The records that a scan has to visit: those of the shards below one, and the first ones of that.
#[derive(Clone, Copy)]
struct Scan {
    shard: u16,
    left: usize,
}

impl Replica {
    /// Notes that the entry that is carried out changes what is told of a flow.
    pub(super) fn note_change(&mut self, shard: u16, key: &Key) {
        if let Some(changes) = &mut self.changes
            && !changes.note(self.applied + 1, (shard, *key))
        {
            self.changes = None;
        }
    }

    /// Changes that this chain keeps.
    fn most_changes(&self) -> usize {
        let config = &self.config;
        let own = config
            .limits
            .observed_changes
            .saturating_mul(config.served.len());
        (own / usize::from(config.shards.max(1))).clamp(1, MOST_CHANGES)
    }

    /// True if the records are those that every replica has, and no other may be the tail.
    fn is_settled_tail(&self) -> bool {
        self.is_tail()
            && !self.is_silenced()
            && self.comparing.is_none()
            && self.lacks.is_none()
            && (self.feed.as_ref().is_none_or(|feed| !feed.gates())
                || self.config.faults.observe_early)
    }

    /// The datagrams of the answer to an observer's question. `stream` is that of a list of changes
    /// that this replica begins, and `chains` the number of chains.
    pub(crate) fn observed(
        &mut self,
        question: &Observe,
        stream: u64,
        chains: u16,
    ) -> Vec<Vec<u8>> {
        let front = Answer::elsewhere(question, chains, self.place.epoch);
        if !self.is_settled_tail() {
            self.counters.observed_elsewhere += 1;
            return vec![front.to_vec()];
        }
        self.counters.observed += 1;
        let most = self.most_changes();
        let changes = self.changes.take();
        let mut changes = changes.unwrap_or_else(|| Changes::new(stream, self.applied, most));
        changes.unasked = 0;
        let answer = self.told_since(question, &changes, front);
        self.changes = Some(changes);
        answer
    }

    /// The answer of a tail that keeps `changes`; `front` has what does not depend on them.
    fn told_since(
        &mut self,
        question: &Observe,
        changes: &Changes,
        front: Answer<'static>,
    ) -> Vec<Vec<u8>> {
        let applied = self.applied;
        let goes_on = question.stream == changes.stream
            && question.after <= applied
            && changes.has_all_behind(question.after);
        let mut scan = if goes_on {
            Some(Scan {
                shard: question.scan_shard,
                left: question.scan as usize,
            })
        } else {
            self.counters.observed_anew += 1;
            last_shard(self)
        };
        let mut bodies = Bodies {
            most: question.parts.into(),
            bodies: Vec::new(),
        };
        let mut upto = if goes_on { question.after } else { applied };
        let mut latest = true;
        for (number, (shard, key)) in changes.behind(upto) {
            let Some(of) = self.shards.get(&shard) else {
                continue;
            };
            if self.config.faults.observe_no_end && !of.records.contains_key(&key) {
                continue;
            }
            if !bodies.append(&told(shard, key, of)) {
                // Another flow that this entry changed may not have been told.
                (latest, upto) = (false, number - 1);
                break;
            }
        }
        if latest {
            upto = applied;
            while let Some(at) = scan {
                scan = self.scan_on(at, &mut bodies);
                if scan.is_some_and(|next| next.shard == at.shard && next.left > 0) {
                    break;
                }
            }
        }
        let mut flags = if goes_on { 0 } else { answer_flag::ANEW };
        if latest {
            flags |= answer_flag::LATEST;
        }
        if scan.is_none() {
            flags |= answer_flag::SCANNED;
        }
        let scan = scan.unwrap_or(Scan { shard: 0, left: 0 });
        let whole = Answer {
            flags,
            stream: changes.stream,
            upto,
            applied,
            scan_shard: scan.shard,
            scan: u32::try_from(scan.left).unwrap_or(u32::MAX),
            ..front
        };
        if bodies.bodies.is_empty() {
            return vec![whole.to_vec()];
        }
        let parts = bodies.bodies.len() as u8;
        let datagrams = (0u8..).zip(&bodies.bodies);
        datagrams
            .map(|(part, body)| {
                Answer {
                    part,
                    parts,
                    body,
                    ..whole
                }
                .to_vec()
            })
            .collect()
    }

    /// Tells the records of a shard that are left, from the last one down: one that is forgotten
    /// meanwhile gives its place to the last, which was told. Gives what is left then; `None` if
    /// nothing is.
    fn scan_on(&self, at: Scan, bodies: &mut Bodies) -> Option<Scan> {
        let mut left = 0;
        if let Some(shard) = self.shards.get(&at.shard) {
            left = at.left.min(shard.records.len());
            while left > 0
                && let Some((key, record)) = shard.records.get_index(left - 1)
                && bodies.append(&present(at.shard, *key, record))
            {
                left -= 1;
            }
        }
        if left > 0 {
            return Some(Scan {
                shard: at.shard,
                left,
            });
        }
        let (number, shard) = self.shards.range(..at.shard).next_back()?;
        Some(Scan {
            shard: *number,
            left: shard.records.len(),
        })
    }
}

/// A scan of all records.
fn last_shard(replica: &Replica) -> Option<Scan> {
    let (number, shard) = replica.shards.last_key_value()?;
    Some(Scan {
        shard: *number,
        left: shard.records.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(number: u8) -> Flow {
        let mut key = [0; 16];
        key[0] = number;
        (0, Key(key))
    }

    fn behind(changes: &Changes, after: u64) -> Vec<u64> {
        changes.behind(after).map(|(number, _)| number).collect()
    }

    #[test]
    fn of_each_flow_the_last_change_counts() {
        let mut changes = Changes::new(1, 10, 8);
        assert!(changes.note(11, flow(1)));
        assert!(changes.note(11, flow(2)));
        // An entry may note a flow more than once.
        assert!(changes.note(11, flow(2)));
        assert!(changes.note(12, flow(1)));
        assert_eq!(behind(&changes, 10), [11, 12]);
        assert_eq!(behind(&changes, 11), [12]);
        assert!(changes.has_all_behind(10) && !changes.has_all_behind(9));
    }

    #[test]
    fn older_changes_are_dropped_and_a_list_that_nobody_asks_for_ends() {
        let mut changes = Changes::new(1, 0, 4);
        for number in 1..=4 {
            assert!(changes.note(number, flow(number as u8)));
        }
        assert!(changes.has_all_behind(0));
        assert!(!changes.note(5, flow(5)), "five changes and no question");
        changes.unasked = 0;
        assert!(changes.note(6, flow(1)));
        assert!(!changes.has_all_behind(1) && changes.has_all_behind(2));
        assert_eq!(behind(&changes, 2), [3, 4, 5, 6]);
        assert_eq!(changes.last.len(), 4);
    }
}
