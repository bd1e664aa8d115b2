//! Snapshots of arrays of programs in bounded inconsistency, as the store has them, and what an engine has in
//! view of the same arrays (rule 29).

use std::collections::BTreeMap;

use stateplane_observe::{Complete, Life, MOST_LIVES, Merge, Snapshots, Told};
use stateplane_sync::Told as ViewTold;
use stateplane_wire::replication::Key;

use crate::sync::SnapshotsFile;
use crate::sync::group::Group;

/// The snapshots of all switches, and in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotsReading {
    /// Promise of the view of the flows that the elements are: a snapshot that was whole in the store
    /// before its age is here, or a later one.
    pub told: Told,
    /// Arrays, each with a value for an element.
    pub arrays: u32,
    /// The newest complete one of each start of each switch, in their order.
    pub lives: Vec<Complete>,
    /// Views of the arrays of each start of a switch, present or last ones, in the order of starts.
    pub views: Vec<ArraysView>,
    /// All of them merged as the file says; zeros if there is none.
    pub merged: Vec<u32>,
}

/// The view of the arrays of one start of a switch, the present or the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArraysView {
    /// The switch, and which start of it.
    pub life: Life,
    /// Promise by array, of both copies of its elements; `None` of one whose view was not complete.
    pub told: Vec<Option<ViewTold>>,
    /// Values by element, then by array.
    pub values: Vec<u32>,
}

/// Promises by array, each with the time for which it is.
type Promises = Vec<Option<(u64, ViewTold)>>;

/// One section `[[flows.snapshots]]`.
pub(in crate::sync) struct Arrays {
    pub(super) file: SnapshotsFile,
    snapshots: Snapshots,
    /// The greatest values that came into view of each start of a switch, by element, then by array.
    seen: BTreeMap<Life, Vec<u32>>,
    promises: BTreeMap<Life, Promises>,
}

impl Arrays {
    pub(super) fn new(file: &SnapshotsFile) -> Arrays {
        Arrays {
            file: file.clone(),
            snapshots: Snapshots::new(file.elements, file.arrays as usize),
            seen: BTreeMap::new(),
            promises: BTreeMap::new(),
        }
    }

    /// By which clients call them.
    pub(in crate::sync) fn name(&self) -> &str {
        &self.file.name
    }

    fn merge(&self) -> Merge {
        self.file.merge.into()
    }

    /// A flow changed; `None` if it is gone.
    pub(super) fn take(&mut self, key: &Key, state: Option<&[u8]>) {
        if key.class() == self.file.class
            && let Some(life) = self.snapshots.take(key, state)
        {
            self.forget(life);
        }
    }

    fn forget(&mut self, life: Life) {
        self.seen.remove(&life);
        self.promises.remove(&life);
    }

    /// Takes what the groups have in view.
    pub(in crate::sync) fn see_present(&mut self, now: u64, groups: &[Group]) {
        for group in groups {
            if let Some(told) = group.engine.told(now) {
                let (name, values) = (&group.file.name, group.engine.values());
                self.see(name, told.incarnation, (now, Some(told)), values);
            }
        }
    }

    /// Takes what a group has, or had at `at`, in view of a start of its switch: both copies of each element, of
    /// which the greater is the one that was written last.
    pub(in crate::sync) fn see(
        &mut self,
        group: &str,
        incarnation: u32,
        (at, told): (u64, Option<ViewTold>),
        values: &[u64],
    ) {
        let mut named = self.file.views.iter().flat_map(|view| {
            let groups = view.groups.iter().enumerate();
            groups.map(|(array, name)| (view.switch, array, name))
        });
        let Some((switch, array, _)) = named.find(|(.., name)| *name == group) else {
            return;
        };
        let life = Life {
            switch,
            incarnation,
        };
        if !self.seen.contains_key(&life) {
            self.make_room();
        }
        let (merge, arrays) = (self.merge(), self.file.arrays as usize);
        let zeros = || vec![0; self.file.elements as usize * arrays];
        let seen = self.seen.entry(life).or_insert_with(zeros);
        let elements = seen.iter_mut().skip(array).step_by(arrays);
        for (element, copies) in elements.zip(values.chunks_exact(2)) {
            for &copy in copies {
                *element = merge.newer(*element, u32::try_from(copy).unwrap_or(u32::MAX));
            }
        }
        let promises = self.promises.entry(life);
        let promises = promises.or_insert_with(|| vec![None; arrays]);
        if let (Some(told), Some(promise)) = (told, promises.get_mut(array)) {
            *promise = Some((at, told));
        }
    }

    /// Forgets starts of switches if there are as many as may be, first those that no snapshot tells of.
    fn make_room(&mut self) {
        while self.seen.len() >= MOST_LIVES {
            let mut lives = self.seen.keys();
            let first = self.seen.keys().next();
            let unknown = lives.find(|life| !self.snapshots.has(life));
            if let Some(life) = unknown.or(first).copied() {
                self.forget(life);
            }
        }
    }

    /// All that is known as of `now`, at which the promise of the snapshots is `told`.
    pub(in crate::sync) fn reading(&self, now: u64, told: Told) -> SnapshotsReading {
        let view = |(life, values): (&Life, &Vec<u32>)| {
            let promises = self.promises.get(life).map_or(&[][..], Vec::as_slice);
            let aged = |promise: &Option<(u64, ViewTold)>| {
                promise.map(|(at, told)| ViewTold {
                    age_us: told.age_us.saturating_add(now.saturating_sub(at)),
                    ..told
                })
            };
            ArraysView {
                life: *life,
                told: promises.iter().map(aged).collect(),
                values: values.clone(),
            }
        };
        SnapshotsReading {
            told,
            arrays: self.file.arrays,
            lives: self.snapshots.newest().cloned().collect(),
            views: self.seen.iter().map(view).collect(),
            merged: self.snapshots.merged(self.merge(), &self.seen),
        }
    }

    /// The first snapshot, in the order of lives, that is newer than that of its life in `after`.
    pub(in crate::sync) fn newer_than(&self, after: &BTreeMap<Life, u32>) -> Option<Complete> {
        self.snapshots.newer_than(after).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::ArraysInView;

    /// Two arrays of two elements, of which a switch has both in view.
    fn arrays() -> Arrays {
        Arrays::new(&SnapshotsFile {
            name: "sketch".to_owned(),
            class: 3,
            elements: 2,
            arrays: 2,
            merge: Default::default(),
            views: vec![ArraysInView {
                switch: 1,
                groups: vec!["a".to_owned(), "b".to_owned()],
            }],
        })
    }

    fn promise(age_us: u64, bound: u64) -> ViewTold {
        ViewTold {
            bound: Some(bound),
            all_but: 0,
            within: 0,
            age_us,
            stamp: 1,
            poll: 1,
            generation: 1,
            incarnation: 7,
            epoch: 0,
            sweep_us: 0,
        }
    }

    fn flows() -> Told {
        Told {
            age_us: 0,
            chains: 1,
            flows: 0,
        }
    }

    /// Writes number and both values of an element of a start of switch 1, or removes it.
    fn store(arrays: &mut Arrays, incarnation: u32, element: u8, words: Option<[u32; 3]>) {
        let mut key = [0; 16];
        (key[0], key[5], key[13]) = (3, 1, element);
        key[1] = words.map_or(1, |words| (words[0] & 1) as u8);
        key[6..10].copy_from_slice(&incarnation.to_be_bytes());
        let state = words.map(|words| words.map(u32::to_be_bytes).concat());
        arrays.take(&Key(key), state.as_deref());
    }

    #[test]
    fn the_newer_of_view_and_snapshot_counts_of_each_start_of_a_switch() {
        let mut arrays = arrays();
        for element in [0, 1] {
            store(&mut arrays, 7, element, Some([1, 5, 6]));
        }
        // Of the first array either copy is the newer one; of the second the first element is in view alone.
        arrays.see("a", 7, (100, Some(promise(3, 2))), &[5, 8, 4, 3]);
        arrays.see("b", 7, (100, None), &[7, 0]);
        arrays.see("c", 7, (100, None), &[99; 4]);
        let reading = arrays.reading(110, flows());
        assert_eq!(reading.merged, [8, 7, 5, 6]);
        let [view] = &reading.views[..] else {
            panic!("{:?}", reading.views);
        };
        assert_eq!((view.life.switch, view.life.incarnation), (1, 7));
        assert_eq!(view.values, [8, 7, 4, 0]);
        assert_eq!(view.told, [Some(promise(13, 2)), None]);

        // The next start counts anew, and what the first had stays.
        arrays.see("a", 8, (120, None), &[1, 0, 0, 1]);
        assert_eq!(arrays.reading(120, flows()).merged, [9, 7, 6, 6]);
        // A new view of a start does not take anything back, nor does one that promises nothing.
        arrays.see("a", 7, (130, None), &[2, 0, 9, 0]);
        let reading = arrays.reading(130, flows());
        assert_eq!(reading.merged, [9, 7, 10, 6]);
        assert_eq!(reading.views[0].told[0], Some(promise(33, 2)));
    }

    #[test]
    fn a_view_is_forgotten_with_the_snapshots_of_its_start() {
        let mut arrays = arrays();
        for element in [0, 1] {
            store(&mut arrays, 7, element, Some([1, 5, 6]));
        }
        arrays.see("a", 7, (0, None), &[9, 0, 0, 0]);
        store(&mut arrays, 7, 0, None);
        assert_eq!(arrays.reading(0, flows()).merged, [9, 6, 5, 6]);
        store(&mut arrays, 7, 1, None);
        let reading = arrays.reading(0, flows());
        assert_eq!((reading.merged, reading.views.len()), (vec![0; 4], 0));
    }

    #[test]
    fn starts_that_no_snapshot_tells_of_are_forgotten_first() {
        let mut arrays = arrays();
        for element in [0, 1] {
            store(&mut arrays, 1, element, Some([1, 5, 6]));
        }
        for incarnation in 1..=MOST_LIVES as u32 + 1 {
            arrays.see("a", incarnation, (0, None), &[1, 0, 0, 0]);
        }
        let views = arrays.reading(0, flows()).views;
        let known: Vec<u32> = views.iter().map(|view| view.life.incarnation).collect();
        assert_eq!((known.len(), &known[..2]), (MOST_LIVES, &[1, 3][..]));
    }
}
