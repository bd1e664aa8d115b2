//! A list of a group's records is not one moment, but has each record that was there all the time,
//! once.

use crate::checker::{Checker, Objections, Violation};
use crate::coordination::event::{
    Asked, Coordination, Event, EventKind, Kind, Number, Outcome, Request, Response, Subject,
};
use crate::coordination::scans::Scans;
use crate::event::Object;
use crate::operation::Operations;
use std::collections::BTreeMap;

/// A list that a client has made.
struct List {
    /// Numbers of the newest entries that the first and the last answerer had.
    first: u64,
    last: u64,
    /// How often it has each key.
    keys: BTreeMap<Object, usize>,
    /// The event that ended it, if it has ended.
    ended: Option<usize>,
}

/// Facts about one record that answers tell.
#[derive(Default)]
struct Known {
    /// Numbers at which there was a record.
    present: Vec<u64>,
    /// Numbers of operations that may have removed it.
    removed: Vec<u64>,
    /// An operation without an answer may have removed it at any time.
    doubtful: bool,
}

/// Objects to lists that lack a record which was there from the first scan to the last, or have it
/// twice.
#[derive(Default)]
pub(super) struct Lists {
    operations: Operations<Coordination>,
    scans: Scans,
    lists: BTreeMap<(Object, u32, u64), List>,
}

impl Lists {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "lists";
}

/// True if the answer shows that there was a record when its number was the newest.
fn shows_record(request: &Request, response: &Response) -> bool {
    if let Some(seen) = &response.seen {
        return matches!(seen.kind, Kind::Value | Kind::Lock);
    }
    match (&request.asked, response.outcome) {
        (Asked::Read | Asked::Write(..), Outcome::Done) => true,
        (Asked::Acquire(_), outcome) => {
            matches!(outcome, Outcome::Done | Outcome::Taken | Outcome::Queued)
        }
        _ => false,
    }
}

impl Known {
    fn add(&mut self, request: &Request, answer: Option<&Response>) {
        let removes = matches!(request.asked, Asked::Delete(_) | Asked::Release);
        let Some(response) = answer else {
            self.doubtful |= removes;
            return;
        };
        if response.outcome == Outcome::Never {
            return;
        }
        if shows_record(request, response) {
            self.present.push(response.number);
        } else if removes && response.outcome == Outcome::Done {
            self.removed.push(response.number);
        }
    }

    /// The number since which there was a record, if there was one from `first` to `last`.
    fn since(&self, first: u64, last: u64) -> Option<u64> {
        let present = self.present.iter().filter(|number| **number <= first);
        let since = *present.max()?;
        let removed = self.removed.iter().any(|at| (since..=last).contains(at));
        let anew = Number(since).generation() != Number(last).generation();
        (!self.doubtful && !removed && !anew).then_some(since)
    }
}

impl Checker<Coordination> for Lists {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Coordination, index: usize, event: &Event) {
        if matches!(
            event.kind,
            EventKind::Call { .. } | EventKind::Return { .. }
        ) {
            return self.operations.handle(index, event);
        }
        let Some(scan) = self.scans.handle(index, event, |_| 0) else {
            return;
        };
        let name = (scan.group.clone(), scan.node, scan.list);
        let list = self.lists.entry(name).or_insert_with(|| List {
            first: scan.number,
            last: 0,
            keys: BTreeMap::new(),
            ended: None,
        });
        list.last = list.last.max(scan.number);
        if let Some(key) = scan.key() {
            *list.keys.entry(key.clone()).or_default() += 1;
        }
        list.ended = scan.ends.then_some(index);
    }

    fn finish(mut self: Box<Self>, _: &Coordination) -> Vec<Violation<Coordination>> {
        let mut found = Objections::new(Self::NAME);
        let mut groups: BTreeMap<Object, BTreeMap<Object, Known>> = BTreeMap::new();
        if self.lists.is_empty() {
            return found.into_violations();
        }
        for (group, operations) in core::mem::take(&mut self.operations).by_object() {
            let records = groups.entry(group).or_default();
            for operation in operations {
                let (_, request) = &operation.input;
                let answer = operation.ended.as_ref().map(|(_, response)| response);
                let known = records.entry(request.key.clone()).or_default();
                known.add(request, answer);
            }
        }
        for ((group, node, number), list) in &self.lists {
            let (Some(event), Some(records)) = (list.ended, groups.get(group)) else {
                continue;
            };
            for (key, known) in records {
                let Some(since) = known.since(list.first, list.last) else {
                    continue;
                };
                let count = list.keys.get(key).copied().unwrap_or(0);
                if count != 1 {
                    let subject = Subject {
                        group: group.clone(),
                        key: Some(key.clone()),
                    };
                    let because = format!(
                        "list {number} of client {node} has a record {count} times that was there \
                         from {} to {}",
                        Number(since),
                        Number(list.last)
                    );
                    found.add(subject, event, because);
                }
            }
        }
        found.into_violations()
    }
}
