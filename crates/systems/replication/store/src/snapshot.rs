//! Reading snapshots that switches keep in bounded-inconsistency mode (RedPlane §4.4;
//! `p4/lib/snapshot.p4`): each start of each switch writes the elements of its register
//! arrays under keys of its own, odd and even snapshots apart (rules 24 and 25).
//!
//! A snapshot is used if it is complete, that is, if all elements of a part of the
//! arrays bear its number. What is read of several switches is merged by a function
//! that fits what the arrays hold.

use crate::serial::newer;
use stateplane_wire::replication::Key;
use std::collections::BTreeMap;

/// Bytes of the snapshot's number in front of the values.
const NUMBER_LENGTH: usize = 4;
/// Bytes of a value.
const VALUE_LENGTH: usize = 4;

/// One start of one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Life {
    /// Number of the switch.
    pub switch: u32,
    /// Incarnation that it drew.
    pub incarnation: u32,
}

/// The newest complete snapshot of a life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its number, counted by the switch from 1.
    pub number: u32,
    /// The values of each element, one for each array.
    pub elements: Vec<Vec<u32>>,
}

/// Operation that merges the values of several lives into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// By adding without overflow: counters, count-min sketches.
    Add,
    /// Bit by bit: Bloom filters, bitmaps.
    Or,
    /// By the greater: maxima, HyperLogLog.
    Greatest,
}

impl Merge {
    /// `one` and `other` in one.
    pub fn of(self, one: u32, other: u32) -> u32 {
        match self {
            Merge::Add => one.saturating_add(other),
            Merge::Or => one | other,
            Merge::Greatest => one.max(other),
        }
    }

    /// The newer of two values that one array had, if its values only grow, or gain bits.
    pub fn newer(self, one: u32, other: u32) -> u32 {
        match self {
            Merge::Add | Merge::Greatest => one.max(other),
            Merge::Or => one | other,
        }
    }
}

/// Number and values of the elements of one snapshot, or of parts of several.
type Elements = BTreeMap<u32, (u32, Vec<u32>)>;

/// Life, copy (true: that of odd snapshots) and index of the element that a record's key names.
pub fn snapshot_place(key: &Key) -> (Life, bool, u32) {
    let word = |at: usize| {
        let bytes = [key.0[at], key.0[at + 1], key.0[at + 2], key.0[at + 3]];
        u32::from_be_bytes(bytes)
    };
    let life = Life {
        switch: word(2),
        incarnation: word(6),
    };
    (life, key.0[1] & 1 == 1, word(10))
}

/// Number of the snapshot and values of the element that a record's state has; `None` if it has not been
/// written or is no snapshot.
pub fn snapshot_content(state: &[u8]) -> Option<(u32, Vec<u32>)> {
    let (number, values) = state.split_at_checked(NUMBER_LENGTH)?;
    let word = |bytes: &[u8]| {
        let sum = bytes
            .iter()
            .fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
        sum as u32
    };
    let number = word(number);
    let values = values.chunks(VALUE_LENGTH).map(word).collect();
    (number != 0).then_some((number, values))
}

/// The newest complete snapshots of the elements `first` to `first + count - 1`, by
/// life. `records` are keys and states of the class that the arrays have.
///
/// A life without a complete snapshot is left out: it is as if it had counted nothing,
/// which it kept for at most ε.
pub fn newest_snapshots<'a>(
    records: impl Iterator<Item = (&'a Key, &'a [u8])>,
    first: u32,
    count: u32,
) -> BTreeMap<Life, Snapshot> {
    let mut parts: BTreeMap<(Life, bool), Elements> = BTreeMap::new();
    for (key, state) in records {
        let (life, odd, element) = snapshot_place(key);
        let within = element.checked_sub(first).is_some_and(|at| at < count);
        if let Some(content) = snapshot_content(state).filter(|_| within) {
            parts
                .entry((life, odd))
                .or_default()
                .insert(element, content);
        }
    }
    let mut newest: BTreeMap<Life, Snapshot> = BTreeMap::new();
    for ((life, _), elements) in parts {
        let Some(number) = complete(&elements, count) else {
            continue;
        };
        let better = newest
            .get(&life)
            .is_none_or(|present| newer(number, present.number));
        if better {
            let elements = elements.into_values().map(|(_, values)| values).collect();
            newest.insert(life, Snapshot { number, elements });
        }
    }
    newest
}

/// The number that all of `count` elements bear.
fn complete(elements: &Elements, count: u32) -> Option<u32> {
    let (number, _) = elements.values().next()?;
    let all = elements.len() == count as usize && elements.values().all(|(of, _)| of == number);
    all.then_some(*number)
}

/// The snapshots of all lives in one; the values of each element, one for each array.
pub fn merge_snapshots<'a>(
    snapshots: impl Iterator<Item = &'a Snapshot>,
    merge: Merge,
) -> Vec<Vec<u32>> {
    let mut merged: Vec<Vec<u32>> = Vec::new();
    for snapshot in snapshots {
        if merged.is_empty() {
            merged.clone_from(&snapshot.elements);
            continue;
        }
        for (whole, values) in merged.iter_mut().zip(&snapshot.elements) {
            for (whole, value) in whole.iter_mut().zip(values) {
                *whole = merge.of(*whole, *value);
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_wire::replication::KEY_LENGTH;

    fn record(switch: u8, number: u32, element: u8, values: [u8; 2]) -> (Key, Vec<u8>) {
        let mut key = [0; KEY_LENGTH];
        key[1] = (number & 1) as u8;
        key[5] = switch;
        key[9] = 7;
        key[13] = element;
        let mut state = number.to_be_bytes().to_vec();
        for value in values {
            state.extend([0, 0, 0, value]);
        }
        (Key(key), state)
    }

    fn newest(records: &[(Key, Vec<u8>)], first: u32, count: u32) -> BTreeMap<u32, Snapshot> {
        let records = records.iter().map(|(key, state)| (key, &state[..]));
        let newest = newest_snapshots(records, first, count);
        newest
            .into_iter()
            .map(|(life, snapshot)| (life.switch, snapshot))
            .collect()
    }

    #[test]
    fn what_is_incomplete_is_not_used() {
        let mut records = vec![
            record(1, 4, 0, [1, 2]),
            record(1, 4, 1, [3, 4]),
            // Snapshot 5 is on its way; snapshot 3 has an element left of it.
            record(1, 5, 0, [9, 9]),
            record(1, 3, 1, [8, 8]),
        ];
        let read = newest(&records, 0, 2);
        let four = Snapshot {
            number: 4,
            elements: vec![vec![1, 2], vec![3, 4]],
        };
        assert_eq!(read, BTreeMap::from([(1, four)]));
        records[3] = record(1, 5, 1, [9, 9]);
        assert_eq!(newest(&records, 0, 2)[&1].number, 5);
        // Of another part of the arrays nothing is known.
        assert_eq!(newest(&records, 2, 2), BTreeMap::new());
        // Whichever element is ahead.
        let mixed = [record(1, 3, 0, [1, 2]), record(1, 5, 1, [3, 4])];
        assert_eq!(newest(&mixed, 0, 2), BTreeMap::new());
        // A record that was granted and never written is no element.
        records[0].1 = vec![0; 12];
        records[2].1 = vec![0; 12];
        assert_eq!(newest(&records, 0, 2), BTreeMap::new());
    }

    #[test]
    fn lives_are_merged_by_the_declared_function() {
        let records = [
            record(1, 1, 0, [1, 6]),
            record(2, 8, 0, [3, 3]),
            record(3, 1, 1, [9, 9]),
        ];
        let read = newest(&records, 0, 1);
        assert_eq!(read.len(), 2);
        let merged = |merge| merge_snapshots(read.values(), merge);
        assert_eq!(merged(Merge::Add), [[4, 9]]);
        assert_eq!(merged(Merge::Or), [[3, 7]]);
        assert_eq!(merged(Merge::Greatest), [[3, 6]]);
        assert_eq!(Merge::Add.of(u32::MAX, 2), u32::MAX);
    }

    #[test]
    fn any_state_is_survived() {
        for length in 0..14 {
            let records = [(Key([0xff; KEY_LENGTH]), vec![1; length])];
            newest(&records, 0, 4);
            newest(&records, u32::MAX, 4);
        }
    }
}
