//! Flows in the view.

use std::collections::BTreeMap;

use stateplane_wire::observe::{Holding, Record};
use stateplane_wire::replication::Key;

/// A flow as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// The state.
    pub state: Vec<u8>,
    /// Epoch of the newest grant. States of a flow are in the order of epoch, then sequence.
    pub epoch: u32,
    /// Number of the state.
    pub sequence: u32,
    /// Holder of a lease.
    pub lease: Holding,
    /// The view's revision when it got the flow as it is.
    pub revision: u64,
}

impl Flow {
    /// The flow that an answer tells; `None` if it is gone.
    pub(crate) fn of(record: &Record<'_>, revision: u64) -> Option<Flow> {
        Some(Flow {
            state: record.state.to_vec(),
            epoch: record.epoch,
            sequence: record.sequence,
            lease: record.lease?,
            revision,
        })
    }

    /// True if `other` is the same flow, at whatever revision the view got it.
    fn is_as(&self, other: &Flow) -> bool {
        self.state == other.state
            && (self.epoch, self.sequence, self.lease) == (other.epoch, other.sequence, other.lease)
    }
}

/// Flows of one chain, by shard and key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flows(BTreeMap<(u16, Key), Flow>);

impl Flows {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, shard: u16, key: &Key) -> Option<&Flow> {
        self.0.get(&(shard, *key))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &Key, &Flow)> {
        self.0
            .iter()
            .map(|((shard, key), flow)| (*shard, key, flow))
    }

    /// The flow with `key` in each shard that has one.
    pub(crate) fn in_shards<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = (u16, &'a Flow)> {
        // Shards are few beside flows.
        let mut from = Some(0u16);
        core::iter::from_fn(move || {
            loop {
                let begin = from?;
                let mut behind = self.0.range((begin, *key)..);
                let (&(shard, found), flow) = behind.next()?;
                if found == *key {
                    from = shard.checked_add(1);
                    return Some((shard, flow));
                }
                // The first key of `shard` that is not less, or one of a later shard.
                from = if shard > begin {
                    Some(shard)
                        .filter(|_| found < *key)
                        .or(shard.checked_add(1))
                } else {
                    begin.checked_add(1)
                };
            }
        })
    }

    /// Puts a flow in its place, or takes it out; true if that changed anything.
    pub(crate) fn set(&mut self, place: (u16, Key), flow: Option<Flow>) -> bool {
        match (self.0.get_mut(&place), flow) {
            (_, None) => self.0.remove(&place).is_some(),
            (Some(present), Some(flow)) if present.is_as(&flow) => false,
            (_, Some(flow)) => {
                self.0.insert(place, flow);
                true
            }
        }
    }

    /// Puts `whole` in place of all flows. Gives the places of those that changed or are gone; the others
    /// keep their revision.
    pub(crate) fn replace(&mut self, whole: Flows) -> Vec<(u16, Key)> {
        let before = core::mem::replace(self, whole);
        let gone = before.0.keys().filter(|place| !self.0.contains_key(*place));
        let mut changed: Vec<(u16, Key)> = gone.copied().collect();
        for (place, flow) in &mut self.0 {
            match before.0.get(place) {
                Some(old) if old.is_as(flow) => flow.revision = old.revision,
                _ => changed.push(*place),
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: u8) -> Key {
        let mut key = [0; 16];
        key[0] = first;
        Key(key)
    }

    fn set(flows: &mut Flows, place: (u16, Key), state: &[u8], revision: u64) -> bool {
        let flow = Flow {
            state: state.to_vec(),
            epoch: 1,
            sequence: 1,
            lease: Holding::Nobody,
            revision,
        };
        flows.set(place, Some(flow))
    }

    #[test]
    fn a_key_is_found_in_all_shards_that_have_it() {
        let mut flows = Flows::default();
        let places = [
            (0, 5),
            (1, 4),
            (1, 6),
            (3, 5),
            (3, 7),
            (4, 1),
            (9, 5),
            (u16::MAX, 5),
        ];
        for (shard, first) in places {
            assert!(set(&mut flows, (shard, key(first)), b"a", 1));
        }
        for wanted in 0..9 {
            let key = key(wanted);
            let found: Vec<u16> = flows.in_shards(&key).map(|(shard, _)| shard).collect();
            let expected = places.iter().filter(|(_, first)| *first == wanted);
            let expected: Vec<u16> = expected.map(|(shard, _)| *shard).collect();
            assert_eq!(found, expected, "{wanted}");
        }
    }

    #[test]
    fn equal_records_change_nothing_and_keep_their_revision() {
        let mut flows = Flows::default();
        assert!(set(&mut flows, (0, key(1)), b"a", 1));
        assert!(!set(&mut flows, (0, key(1)), b"a", 2));
        assert!(set(&mut flows, (0, key(2)), b"b", 3));
        let mut whole = Flows::default();
        set(&mut whole, (0, key(1)), b"a", 4);
        set(&mut whole, (0, key(2)), b"c", 4);
        assert_eq!(flows.replace(whole.clone()), [(0, key(2))]);
        let revisions: Vec<u64> = flows.iter().map(|(_, _, flow)| flow.revision).collect();
        assert_eq!(revisions, [1, 4]);
        assert_eq!(flows.replace(whole), []);
        assert!(flows.set((0, key(1)), None) && !flows.set((0, key(1)), None));
        assert_eq!(flows.replace(Flows::default()), [(0, key(2))]);
    }
}
