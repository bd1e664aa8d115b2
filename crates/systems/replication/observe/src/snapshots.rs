//! Snapshots that switches in bounded inconsistency keep in the store, put together from their elements
//! (RedPlane §4.4; rules 24 and 25 of `docs/replication-protocol.md`).

use std::collections::BTreeMap;
use std::sync::Arc;

use stateplane_store::{Life, Merge, newer, snapshot_content, snapshot_place};
use stateplane_wire::replication::Key;

/// Most starts of switches whose snapshots are put together.
pub const MOST_LIVES: usize = 256;

/// Most elements of an array.
pub const MOST_ELEMENTS: u32 = 1 << 20;

/// The newest complete snapshot of one start of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complete {
    /// The switch, and which start of it.
    pub life: Life,
    /// Number of the snapshot, counted by the switch from 1.
    pub number: u32,
    /// Values by element, then by array.
    pub values: Arc<[u32]>,
}

/// Odd or even snapshots of one start of a switch.
#[derive(Debug, Clone)]
struct Copies {
    /// Number of the snapshot that each element is of; 0: of none.
    numbers: Vec<u32>,
    /// Values by element, then by array.
    values: Vec<u32>,
    /// The newest number of an element, and how many elements bear it.
    newest: (u32, u32),
    /// Elements that are of a snapshot.
    present: u32,
}

impl Copies {
    fn new(elements: u32, arrays: usize) -> Copies {
        Copies {
            numbers: vec![0; elements as usize],
            values: vec![0; elements as usize * arrays],
            newest: (0, 0),
            present: 0,
        }
    }

    fn set(&mut self, element: usize, number: u32, values: &[u32]) {
        let before = core::mem::replace(&mut self.numbers[element], number);
        let (newest, bearers) = &mut self.newest;
        if before != 0 {
            self.present -= 1;
            *bearers -= u32::from(before == *newest);
        }
        if number == 0 {
            return;
        }
        self.present += 1;
        if *newest == 0 || newer(number, *newest) {
            (*newest, *bearers) = (number, 0);
        }
        *bearers += u32::from(number == *newest);
        let arrays = values.len();
        self.values[element * arrays..][..arrays].copy_from_slice(values);
    }

    /// Number of the snapshot that all elements are of.
    fn complete(&self) -> Option<u32> {
        let (newest, bearers) = self.newest;
        (newest != 0 && bearers as usize == self.numbers.len()).then_some(newest)
    }
}

/// The snapshots of the arrays of one program, by starts of switches.
#[derive(Debug, Clone)]
pub struct Snapshots {
    elements: u32,
    arrays: usize,
    /// By life, and true for odd ones.
    copies: BTreeMap<(Life, bool), Copies>,
    lives: usize,
    /// The newest complete one of each life, which stays while the switch overwrites its elements.
    newest: BTreeMap<Life, Complete>,
    foreign: u64,
}

impl Snapshots {
    /// Snapshots of `arrays` arrays of `elements` elements each, 1 to [`MOST_ELEMENTS`].
    pub fn new(elements: u32, arrays: usize) -> Snapshots {
        Snapshots {
            elements: elements.clamp(1, MOST_ELEMENTS),
            arrays: arrays.max(1),
            copies: BTreeMap::new(),
            lives: 0,
            newest: BTreeMap::new(),
            foreign: 0,
        }
    }

    /// Takes what the store has under `key`, a record of the arrays' class; `None` if it is gone. Gives the start
    /// of a switch of which the store has nothing any more.
    pub fn take(&mut self, key: &Key, state: Option<&[u8]>) -> Option<Life> {
        let (life, odd, element) = snapshot_place(key);
        let (number, values) = match state.map(snapshot_content) {
            None => (0, vec![0; self.arrays]),
            // A record that has not been written is of no snapshot.
            Some(None) => return None,
            Some(Some(content)) => content,
        };
        if element >= self.elements || values.len() != self.arrays {
            self.foreign += 1;
            return None;
        }
        let known = self.copies.contains_key(&(life, odd));
        if !known && (number == 0 || !self.has_room(life)) {
            self.foreign += u64::from(number != 0);
            return None;
        }
        let (elements, arrays) = (self.elements, self.arrays);
        let copies = self.copies.entry((life, odd));
        let copies = copies.or_insert_with(|| Copies::new(elements, arrays));
        copies.set(element as usize, number, &values);
        if let Some(number) = copies.complete()
            && self
                .newest
                .get(&life)
                .is_none_or(|it| newer(number, it.number))
        {
            let values = copies.values.as_slice().into();
            let complete = Complete {
                life,
                number,
                values,
            };
            self.newest.insert(life, complete);
        }
        (copies.present == 0 && self.forget(life, odd)).then_some(life)
    }

    /// True if the snapshots of `life` are put together, or may be.
    fn has_room(&mut self, life: Life) -> bool {
        if self.copies.contains_key(&(life, true)) || self.copies.contains_key(&(life, false)) {
            return true;
        }
        let has_room = self.lives < MOST_LIVES;
        self.lives += usize::from(has_room);
        has_room
    }

    /// Forgets odd or even snapshots of a life; true if these were all.
    fn forget(&mut self, life: Life, odd: bool) -> bool {
        self.copies.remove(&(life, odd));
        let has_more = self.copies.contains_key(&(life, !odd));
        if !has_more {
            self.lives -= 1;
            self.newest.remove(&life);
        }
        !has_more
    }

    /// The newest complete snapshot of each life, in their order.
    pub fn newest(&self) -> impl Iterator<Item = &Complete> {
        self.newest.values()
    }

    /// The first one, in the order of lives, that is newer than the number that `after` has of its life. One
    /// that was overwritten before it was seen whole is left out.
    pub fn newer_than(&self, after: &BTreeMap<Life, u32>) -> Option<&Complete> {
        let is_newer = |it: &&Complete| {
            let known = after.get(&it.life);
            known.is_none_or(|known| newer(it.number, *known))
        };
        self.newest.values().find(is_newer)
    }

    /// True if a complete snapshot of `life` is known.
    pub fn has(&self, life: &Life) -> bool {
        self.newest.contains_key(life)
    }

    /// The counts of all lives in one, by element and then by array; zeros if nothing is known. Of a life that
    /// `views` have, too, whichever is newer counts of each value (rule 29 of `docs/sync-protocol.md`): values
    /// only grow, or gain bits.
    pub fn merged(&self, merge: Merge, views: &BTreeMap<Life, Vec<u32>>) -> Vec<u32> {
        let mut merged = vec![0; self.elements as usize * self.arrays];
        for complete in self.newest.values() {
            let view = views.get(&complete.life).map_or(&[][..], Vec::as_slice);
            let view = view.iter().copied().chain(std::iter::repeat(0));
            for ((whole, value), seen) in merged.iter_mut().zip(complete.values.iter()).zip(view) {
                *whole = merge.of(*whole, merge.newer(*value, seen));
            }
        }
        for (_, view) in views.iter().filter(|(life, _)| !self.has(life)) {
            for (whole, value) in merged.iter_mut().zip(view) {
                *whole = merge.of(*whole, *value);
            }
        }
        merged
    }

    /// Records that were of no element of the arrays, or of one life too many.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELEMENTS: u32 = 3;

    fn life(switch: u32) -> Life {
        Life {
            switch,
            incarnation: 7,
        }
    }

    fn key(switch: u32, number: u32, element: u32) -> Key {
        let mut key = [0; 16];
        key[0] = 9;
        key[1] = (number & 1) as u8;
        key[2..6].copy_from_slice(&switch.to_be_bytes());
        key[6..10].copy_from_slice(&7u32.to_be_bytes());
        key[10..14].copy_from_slice(&element.to_be_bytes());
        Key(key)
    }

    fn write(snapshots: &mut Snapshots, switch: u32, number: u32, element: u32, value: u32) {
        let words = [number, value, 2 * value];
        let state: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        snapshots.take(&key(switch, number, element), Some(&state));
    }

    fn write_one(snapshots: &mut Snapshots, switch: u32, element: u32, value: u32) {
        let state: Vec<u8> = [1, value]
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect();
        snapshots.take(&key(switch, 1, element), Some(&state));
    }

    fn newest(snapshots: &Snapshots) -> Vec<(u32, u32)> {
        let newest = snapshots.newest();
        newest.map(|it| (it.life.switch, it.number)).collect()
    }

    #[test]
    fn a_snapshot_is_complete_when_all_elements_bear_its_number() {
        let mut snapshots = Snapshots::new(ELEMENTS, 2);
        for element in 0..ELEMENTS {
            assert_eq!(newest(&snapshots), []);
            write(&mut snapshots, 1, 5, element, 10 + element);
        }
        assert_eq!(newest(&snapshots), [(1, 5)]);
        let values = |snapshots: &Snapshots| snapshots.newest().next().unwrap().values.to_vec();
        assert_eq!(values(&snapshots), [10, 20, 11, 22, 12, 24]);
        // The next one of the same copy takes its elements, and the one between has not come.
        write(&mut snapshots, 1, 7, 0, 30);
        assert_eq!(values(&snapshots), [10, 20, 11, 22, 12, 24]);
        for element in 0..ELEMENTS {
            write(&mut snapshots, 1, 6, element, 1);
        }
        assert_eq!(newest(&snapshots), [(1, 6)]);
        for element in 1..ELEMENTS {
            assert_eq!(newest(&snapshots), [(1, 6)]);
            write(&mut snapshots, 1, 7, element, 30);
        }
        assert_eq!(newest(&snapshots), [(1, 7)]);
    }

    #[test]
    fn an_older_one_that_is_completed_late_is_left_out() {
        let mut snapshots = Snapshots::new(1, 2);
        write(&mut snapshots, 1, 6, 0, 1);
        write(&mut snapshots, 1, 5, 0, 1);
        assert_eq!(newest(&snapshots), [(1, 6)]);
    }

    #[test]
    fn a_reader_gets_those_that_are_newer_than_its_own() {
        let mut snapshots = Snapshots::new(1, 2);
        write(&mut snapshots, 1, 6, 0, 1);
        write(&mut snapshots, 2, u32::MAX, 0, 1);
        let newer = |known: &[(u32, u32)]| {
            let after = known
                .iter()
                .map(|(switch, number)| (life(*switch), *number));
            let next = snapshots.newer_than(&after.collect());
            next.map(|it| (it.life.switch, it.number))
        };
        assert_eq!(newer(&[]), Some((1, 6)));
        assert_eq!(newer(&[(1, 5)]), Some((1, 6)));
        assert_eq!(newer(&[(1, 6)]), Some((2, u32::MAX)));
        // Numbers may wrap.
        assert_eq!(newer(&[(1, 6), (2, 1)]), None);
    }

    #[test]
    fn starts_of_switches_are_merged_as_declared() {
        let mut snapshots = Snapshots::new(1, 2);
        let none = BTreeMap::new();
        assert_eq!(snapshots.merged(Merge::Add, &none), [0, 0]);
        write(&mut snapshots, 1, 1, 0, 4);
        write(&mut snapshots, 2, 1, 0, 3);
        assert_eq!(snapshots.merged(Merge::Add, &none), [7, 14]);
        assert_eq!(snapshots.merged(Merge::Or, &none), [7, 14]);
        assert_eq!(snapshots.merged(Merge::Greatest, &none), [4, 8]);
        write(&mut snapshots, 1, 2, 0, 5);
        assert_eq!(snapshots.take(&key(1, 1, 0), None), None);
        assert_eq!(snapshots.take(&key(1, 2, 0), None), Some(life(1)));
        assert_eq!(snapshots.merged(Merge::Add, &none), [3, 6]);
        assert_eq!(snapshots.newest().count(), 1);
    }

    #[test]
    fn of_a_start_that_is_in_view_too_the_newer_value_counts() {
        let mut snapshots = Snapshots::new(2, 1);
        for (element, value) in [(0, 4), (1, 9)] {
            write_one(&mut snapshots, 1, element, value);
            write_one(&mut snapshots, 2, element, 1);
        }
        // The second value came into view before the snapshot; the third switch has no snapshot.
        let views = BTreeMap::from([(life(1), vec![6, 8]), (life(3), vec![32, 0])]);
        assert_eq!(snapshots.merged(Merge::Add, &views), [39, 10]);
        assert_eq!(snapshots.merged(Merge::Greatest, &views), [32, 9]);
        assert_eq!(snapshots.merged(Merge::Or, &views), [39, 9]);
        // A view that lacks elements has them as zeros.
        let views = BTreeMap::from([(life(1), vec![6])]);
        assert_eq!(snapshots.merged(Merge::Add, &views), [7, 10]);
    }

    #[test]
    fn strangers_and_too_many_lives_are_counted_and_left_out() {
        let mut snapshots = Snapshots::new(1, 2);
        write(&mut snapshots, 1, 1, 1, 4);
        snapshots.take(&key(1, 1, 0), Some(&[0, 0, 0, 1, 0, 0, 0, 1]));
        assert_eq!(snapshots.foreign(), 2);
        snapshots.take(&key(1, 1, 0), Some(&[0; 12]));
        snapshots.take(&key(1, 1, 0), None);
        assert_eq!(snapshots.foreign(), 2);
        for switch in 0..MOST_LIVES as u32 + 1 {
            write(&mut snapshots, switch, 1, 0, 4);
        }
        assert_eq!(snapshots.foreign(), 3);
        assert_eq!(snapshots.newest().count(), MOST_LIVES);
        snapshots.take(&key(0, 1, 0), None);
        write(&mut snapshots, MOST_LIVES as u32, 1, 0, 4);
        assert_eq!(snapshots.foreign(), 3);
    }
}
