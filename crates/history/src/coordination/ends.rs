//! Operations end in time, and groups serve again once faults are over.

use crate::checker::{Checker, Objections, Violation};
use crate::coordination::event::{
    Coordination, CoordinationEvent, Event, EventKind, Outcome, Subject,
};
use crate::event::Object;
use std::collections::{BTreeMap, BTreeSet};

/// An operation that has not ended.
struct Open {
    event: usize,
    until: u64,
    subject: Subject,
}

/// Objects to operations of living clients that have not ended by their time.
#[derive(Default)]
pub(super) struct Ends {
    open: BTreeMap<(u32, u64), Open>,
    late: Vec<(u64, Open)>,
    last: u64,
}

impl Ends {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "ends";
}

impl Checker<Coordination> for Ends {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Coordination, index: usize, event: &Event) {
        self.last = event.at;
        match &event.kind {
            EventKind::Call {
                node,
                object,
                operation,
                request,
            } => {
                if let Some(until) = request.until {
                    let subject = Subject {
                        group: object.clone(),
                        key: Some(request.key.clone()),
                    };
                    let open = Open {
                        event: index,
                        until,
                        subject,
                    };
                    self.open.insert((*node, *operation), open);
                }
            }
            EventKind::Return {
                node, operation, ..
            }
            | EventKind::Of(CoordinationEvent::Unknown {
                node, operation, ..
            }) => {
                if let Some(open) = self.open.remove(&(*node, *operation))
                    && open.until < event.at
                {
                    self.late.push((
                        *operation,
                        Open {
                            event: index,
                            ..open
                        },
                    ));
                }
            }
            EventKind::Died { node } => self
                .open
                .retain(|(client, _), open| client != node || open.until < event.at),
            EventKind::Of(_) => {}
            EventKind::Send { content, .. } | EventKind::Deliver { content, .. } => {
                match *content {}
            }
        }
    }

    fn finish(mut self: Box<Self>, _: &Coordination) -> Vec<Violation<Coordination>> {
        let last = self.last;
        let open = core::mem::take(&mut self.open).into_iter();
        let never = open.filter(|(_, open)| open.until < last);
        let never = never.map(|((_, operation), open)| (operation, open));
        let mut objections = Objections::new(Self::NAME);
        for (operation, open) in core::mem::take(&mut self.late).into_iter().chain(never) {
            let because = format!("operation {operation} has not ended by {} µs", open.until);
            objections.add(open.subject, open.event, because);
        }
        objections.into_violations()
    }
}

/// Kind of an operation: true if it takes a number. A group whose answerer has its lease answers
/// reads though its chain may be broken, so that its answers to one kind say nothing of the other.
type Numbered = bool;

/// Objects to groups that are asked and do not serve within the system's time once faults are over.
pub(super) struct Serves {
    /// When faults were over, and the event that says so.
    whole: Option<(usize, u64)>,
    /// Calls since then.
    asked: BTreeMap<(Object, u64), (u64, Numbered)>,
    /// Groups that were asked in the first half of the time.
    wanted: BTreeSet<(Object, Numbered)>,
    /// Groups that answered one of the calls in time.
    served: BTreeSet<(Object, Numbered)>,
    last: u64,
    found: Objections<Coordination>,
}

impl Serves {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "serves";
}

impl Default for Serves {
    fn default() -> Self {
        Self {
            whole: None,
            asked: BTreeMap::new(),
            wanted: BTreeSet::new(),
            served: BTreeSet::new(),
            last: 0,
            found: Objections::new(Self::NAME),
        }
    }
}

impl Checker<Coordination> for Serves {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, system: &Coordination, index: usize, event: &Event) {
        self.last = event.at;
        if event.kind == EventKind::Of(CoordinationEvent::Whole) {
            self.whole.get_or_insert((index, event.at));
        }
        let Some((_, since)) = self.whole else {
            return;
        };
        match &event.kind {
            EventKind::Call {
                object,
                operation,
                request,
                ..
            } => {
                let numbered = !request.reads();
                let name = (object.clone(), *operation);
                self.asked.insert(name, (event.at, numbered));
                if event.at - since <= system.serves_within / 2 {
                    self.wanted.insert((object.clone(), numbered));
                }
            }
            EventKind::Return {
                object,
                operation,
                response,
                ..
            } => {
                let asked = self.asked.get(&(object.clone(), *operation));
                let answered = response.outcome != Outcome::Never;
                let in_time = event.at - since <= system.serves_within;
                if let Some((_, numbered)) = asked.filter(|_| answered && in_time) {
                    self.served.insert((object.clone(), *numbered));
                }
            }
            EventKind::Of(CoordinationEvent::Unknown {
                group, operation, ..
            }) => {
                let asked = self.asked.get(&(group.clone(), *operation));
                let within = system.serves_within;
                if asked.is_some_and(|(at, _)| at - since > within) && system.groups.contains(group)
                {
                    let because = format!(
                        "operation {operation}, asked more than {within} µs after faults were over, is unknown"
                    );
                    self.found.add(group.clone(), index, because);
                }
            }
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>, system: &Coordination) -> Vec<Violation<Coordination>> {
        if let Some((index, since)) = self.whole
            && self.last - since > system.serves_within
        {
            let promised = |(group, _): &&(Object, Numbered)| system.groups.contains(group);
            for name in self.wanted.difference(&self.served).filter(promised) {
                let (group, numbered) = name;
                let what = if *numbered { "no write" } else { "no read" };
                let within = system.serves_within;
                let because = format!("{what} was answered within {within} µs");
                self.found.add(group.clone(), index, because);
            }
        }
        self.found.into_violations()
    }
}
