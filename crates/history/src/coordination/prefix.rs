//! The entries of a member are a beginning of those of each other member of the configuration
//! (`docs/coordination-protocol.md`, rules 2, 9, 12, 15).

use crate::checker::{Checker, Objections, Violation};
use crate::coordination::event::{Coordination, CoordinationEvent, Event, EventKind, Number, Part};
use crate::event::Object;
use std::collections::BTreeMap;

/// A switch in a group.
struct Follower {
    epoch: u32,
    part: Part,
    /// True if no entry came since it joined: the copy that a joiner gets jumps over entries.
    copied: bool,
    /// Digests of its entries by number.
    entries: BTreeMap<u64, u64>,
}

/// Objects to switches that apply entries out of order, and to two of one configuration that have
/// different entries of a number.
pub(super) struct Prefix {
    followers: BTreeMap<(Object, u32), Follower>,
    found: Objections<Coordination>,
}

impl Prefix {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "prefix";

    /// Compares what `switch` has from `first` on with what the others of its configuration have.
    fn compare(&mut self, index: usize, group: &Object, switch: u32, first: u64) {
        let Some(own) = self.followers.get(&(group.clone(), switch)) else {
            return;
        };
        let others = self.followers.iter();
        let others = others.filter(|((of, other), follower)| {
            of == group && *other != switch && follower.epoch == own.epoch
        });
        for ((_, other), follower) in others {
            let differs = own.entries.range(first..).find(|(number, digest)| {
                follower.entries.get(number).is_some_and(|of| of != *digest)
            });
            if let Some((number, _)) = differs {
                let because = format!(
                    "switches {switch} and {other} have different entries {} in configuration {}",
                    Number(*number),
                    own.epoch
                );
                self.found.add(group.clone(), index, because);
                return;
            }
        }
    }
}

impl Default for Prefix {
    fn default() -> Self {
        Self {
            followers: BTreeMap::new(),
            found: Objections::new(Self::NAME),
        }
    }
}

impl Checker<Coordination> for Prefix {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Coordination, index: usize, event: &Event) {
        match &event.kind {
            EventKind::Died { node } => self.followers.retain(|(_, switch), _| switch != node),
            EventKind::Of(CoordinationEvent::Adopted {
                switch,
                group,
                epoch,
                part,
            }) => {
                let name = (group.clone(), *switch);
                let follower = self.followers.entry(name).or_insert(Follower {
                    epoch: 0,
                    part: *part,
                    copied: false,
                    entries: BTreeMap::new(),
                });
                // One that joins on, in the next configuration, keeps what it has.
                let joins_on = follower.part == Part::Joiner && *part == Part::Joiner;
                if *part != Part::Member && !joins_on {
                    follower.entries.clear();
                }
                follower.copied |= *part == Part::Joiner;
                (follower.epoch, follower.part) = (*epoch, *part);
                self.compare(index, group, *switch, 0);
            }
            EventKind::Of(CoordinationEvent::Applied {
                switch,
                group,
                number,
                digest,
            }) => {
                let Some(follower) = self.followers.get_mut(&(group.clone(), *switch)) else {
                    let because = format!("switch {switch}, which follows nothing, has an entry");
                    self.found.add(group.clone(), index, because);
                    return;
                };
                let last = follower.entries.last_key_value().map(|(number, _)| *number);
                let wrong = last.is_some_and(|last| {
                    if follower.copied {
                        *number <= last
                    } else {
                        *number != last + 1
                    }
                });
                follower.copied &= follower.part == Part::Joiner;
                follower.entries.insert(*number, *digest);
                if wrong {
                    let because = format!(
                        "switch {switch} applies entry {} after {}",
                        Number(*number),
                        Number(last.unwrap_or(0))
                    );
                    self.found.add(group.clone(), index, because);
                }
                self.compare(index, group, *switch, *number);
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>, _: &Coordination) -> Vec<Violation<Coordination>> {
        self.found.into_violations()
    }
}
