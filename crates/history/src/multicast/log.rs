//! Each group has one log.

use super::event::{Entry, Event, EventKind, Multicast, MulticastEvent, Subject, Violation};
use crate::checker::{Checker, Objections};
use std::collections::BTreeMap;

/// Objects to two entries that are committed at one index of a group, and to timestamps that do not
/// grow with the index.
pub(super) struct Log {
    entries: BTreeMap<(u8, u32), Entry>,
    found: Objections<Multicast>,
}

impl Log {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "log";
}

impl Default for Log {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            found: Objections::new(Self::NAME),
        }
    }
}

impl Checker<Multicast> for Log {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Multicast, index: usize, event: &Event) {
        let EventKind::Of(MulticastEvent::Committed { node, group, entry }) = event.kind else {
            return;
        };
        let place = |index: u32| (group, index);
        let known = *self.entries.entry(place(entry.index)).or_insert(entry);
        if known != entry {
            let because = format!(
                "node {node} has {entry:?} committed, and another node {known:?} in its place"
            );
            self.found.add(Subject::Group(group), index, because);
        }
        // Indices begin again behind the greatest.
        let before = self.entries.get(&place(entry.index.wrapping_sub(1)));
        let behind = self.entries.get(&place(entry.index.wrapping_add(1)));
        let falls = before.is_some_and(|before| before.time >= entry.time)
            || behind.is_some_and(|behind| behind.time <= entry.time);
        if falls {
            let because = format!("the timestamp of {entry:?} is not between its neighbours'");
            self.found.add(Subject::Group(group), index, because);
        }
    }

    fn finish(self: Box<Self>, _: &Multicast) -> Vec<Violation> {
        self.found.into_violations()
    }
}
