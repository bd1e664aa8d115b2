//! Each entry has a number of its own, and numbers grow as operations follow each other
//! (`docs/coordination-protocol.md`, rule 1).

use crate::checker::{Checker, Objections, Violation};
use crate::coordination::event::{Coordination, Event, EventKind, Number, Outcome};
use crate::coordination::scans::{Scan, Scans};
use crate::event::Object;
use std::collections::BTreeMap;

/// A call that has no answer yet.
struct Asked {
    /// Greatest number that an answer of the group had shown.
    floor: u64,
    reads: bool,
}

/// Objects to numbers that two operations have, and to those that a later operation of the group
/// has below an earlier one's.
pub(super) struct Numbers {
    newest: BTreeMap<Object, u64>,
    asked: BTreeMap<(Object, u64), Asked>,
    /// Operations by the number of their entry.
    entries: BTreeMap<(Object, u64), u64>,
    scans: Scans,
    found: Objections<Coordination>,
}

impl Numbers {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "numbers";

    fn scanned(&mut self, scan: &Scan) {
        if scan.number < scan.floor {
            let because = format!(
                "list {} of client {} is at {}, though {} was shown before it asked",
                scan.list,
                scan.node,
                Number(scan.number),
                Number(scan.floor)
            );
            self.found.add(scan.group.clone(), scan.event, because);
        }
        let newest = self.newest.entry(scan.group.clone()).or_default();
        *newest = (*newest).max(scan.number);
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            newest: BTreeMap::new(),
            asked: BTreeMap::new(),
            entries: BTreeMap::new(),
            scans: Scans::default(),
            found: Objections::new(Self::NAME),
        }
    }
}

impl Checker<Coordination> for Numbers {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Coordination, index: usize, event: &Event) {
        let newest = |group: &Object| self.newest.get(group).copied().unwrap_or(0);
        if let Some(scan) = self.scans.handle(index, event, newest) {
            return self.scanned(&scan);
        }
        match &event.kind {
            EventKind::Call {
                object,
                operation,
                request,
                ..
            } => {
                let floor = self.newest.get(object).copied().unwrap_or(0);
                let reads = request.reads();
                self.asked
                    .insert((object.clone(), *operation), Asked { floor, reads });
            }
            EventKind::Return {
                object,
                operation,
                response,
                ..
            } => {
                let name = (object.clone(), *operation);
                let Some(asked) = self.asked.remove(&name) else {
                    return;
                };
                if response.outcome == Outcome::Never {
                    return;
                }
                let (number, floor) = (response.number, asked.floor);
                let late = if asked.reads {
                    number < floor
                } else {
                    number <= floor
                };
                if late {
                    let because = format!(
                        "operation {operation} is at {}, though {} was shown before its call",
                        Number(number),
                        Number(floor)
                    );
                    self.found.add(object.clone(), index, because);
                }
                if !asked.reads {
                    let entry = (object.clone(), number);
                    if let Some(other) = self.entries.insert(entry, *operation) {
                        let because = format!(
                            "operations {other} and {operation} are both entry {}",
                            Number(number)
                        );
                        self.found.add(object.clone(), index, because);
                    }
                }
                let newest = self.newest.entry(object.clone()).or_default();
                *newest = (*newest).max(number);
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>, _: &Coordination) -> Vec<Violation<Coordination>> {
        self.found.into_violations()
    }
}
