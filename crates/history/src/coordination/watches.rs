//! Watches tell each entry that changed a record once, in the order of the numbers, or that some are
//! missing (`docs/coordination-protocol.md`, rule 23).

use crate::checker::{Checker, Objections, Violation};
use crate::coordination::event::{
    Asked, Coordination, CoordinationEvent, Event, EventKind, Number, Outcome, Subject, Told,
};
use crate::event::Object;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A change: the record's key, and its value if it has one. `None`: it was deleted.
type Change = (Object, Option<Arc<[u8]>>);

/// Events that one client's watch of a group told.
#[derive(Default)]
struct Watch {
    /// The first number that is told, and the last event that concerns it.
    from: Option<u64>,
    event: usize,
    /// Ranges that are missing: from a number, to before another.
    missing: Vec<(u64, u64)>,
    told: BTreeSet<u64>,
    last: u64,
    end: Option<u64>,
}

/// Objects to watches that tell a change twice, out of order, otherwise than others know it, or not
/// at all.
pub(super) struct Watches {
    watches: BTreeMap<(Object, u32), Watch>,
    /// Calls of writes and deletions.
    asked: BTreeMap<(u32, Object, u64), Change>,
    /// Changes by their number, as clients were answered that made them.
    made: BTreeMap<(Object, u64), Change>,
    /// Changes by their number, as a watch told them first.
    told: BTreeMap<(Object, u64), Change>,
    found: Objections<Coordination>,
}

impl Watches {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "watches";

    /// Objects if the change that a watch told differs from what others know of the entry.
    fn compare(&mut self, index: usize, group: &Object, number: u64, change: &Change) {
        let name = (group.clone(), number);
        let known = [self.made.get(&name), self.told.get(&name)];
        if known.into_iter().flatten().any(|known| known != change) {
            let because = format!("entry {} is told otherwise", Number(number));
            let subject = Subject {
                group: group.clone(),
                key: Some(change.0.clone()),
            };
            self.found.add(subject, index, because);
        }
    }

    fn tell(&mut self, index: usize, node: u32, group: &Object, told: Told, number: u64) {
        let watch = self.watches.entry((group.clone(), node)).or_default();
        watch.event = index;
        let because = match told {
            Told::Begin => {
                watch.from = Some(number);
                None
            }
            Told::Compacted => {
                let next = watch.from.unwrap_or(0).max(watch.last + 1);
                watch.missing.push((next, number));
                (number <= watch.last)
                    .then(|| format!("{} is missing and was told", Number(number)))
            }
            Told::End => {
                watch.end = Some(number);
                (number <= watch.last).then(|| format!("{} was told", Number(watch.last)))
            }
            Told::Put | Told::Deleted => {
                let early = watch.from.is_none_or(|from| number < from);
                let hidden = watch
                    .missing
                    .iter()
                    .any(|(from, to)| (*from..*to).contains(&number));
                let wrong = number <= watch.last || early || hidden;
                let last = watch.last;
                watch.last = watch.last.max(number);
                watch.told.insert(number);
                wrong.then(|| format!("{} is told after {}", Number(number), Number(last)))
            }
        };
        if let Some(because) = because {
            let because = format!("client {node}: {because}");
            self.found.add(group.clone(), index, because);
        }
    }
}

impl Default for Watches {
    fn default() -> Self {
        Self {
            watches: BTreeMap::new(),
            asked: BTreeMap::new(),
            made: BTreeMap::new(),
            told: BTreeMap::new(),
            found: Objections::new(Self::NAME),
        }
    }
}

impl Checker<Coordination> for Watches {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Coordination, index: usize, event: &Event) {
        match &event.kind {
            EventKind::Call {
                node,
                object,
                operation,
                request,
            } => {
                let value = match &request.asked {
                    Asked::Write(value, _) => Some(value.clone()),
                    Asked::Delete(_) => None,
                    _ => return,
                };
                let change = (request.key.clone(), value);
                self.asked
                    .insert((*node, object.clone(), *operation), change);
            }
            EventKind::Return {
                node,
                object,
                operation,
                response,
            } => {
                let change = self.asked.remove(&(*node, object.clone(), *operation));
                let Some(change) = change.filter(|_| response.outcome == Outcome::Done) else {
                    return;
                };
                let name = (object.clone(), response.number);
                self.made.entry(name.clone()).or_insert(change);
                if let Some(told) = self.told.get(&name).cloned() {
                    self.compare(index, object, response.number, &told);
                }
            }
            EventKind::Of(CoordinationEvent::Told {
                node,
                group,
                told,
                number,
                key,
                value,
            }) => {
                self.tell(index, *node, group, *told, *number);
                if let Some(key) = key {
                    let change = (key.clone(), value.clone());
                    self.compare(index, group, *number, &change);
                    self.told.entry((group.clone(), *number)).or_insert(change);
                }
            }
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>, _: &Coordination) -> Vec<Violation<Coordination>> {
        for ((group, node), watch) in &self.watches {
            let Some((from, end)) = watch.from.zip(watch.end) else {
                continue;
            };
            let is_missing = |number: u64| {
                let mut missing = watch.missing.iter();
                missing.any(|(first, to)| (*first..*to).contains(&number))
            };
            let untold = self.made.keys().find(|(of, number)| {
                of == group
                    && (from..end).contains(number)
                    && !watch.told.contains(number)
                    && !is_missing(*number)
            });
            if let Some((_, number)) = untold {
                let because = format!("client {node} was never told of entry {}", Number(*number));
                self.found.add(group.clone(), watch.event, because);
            }
        }
        self.found.into_violations()
    }
}
