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

/// An operation asked since faults were over.
struct Call {
    node: u32,
    at: u64,
    numbered: Numbered,
    /// The event that told that its outcome is unknown.
    unknown: Option<usize>,
}

/// Objects to groups that are asked and do not serve within the system's time once faults are over.
/// Calls of clients that died, or whose session ended, ask for nothing: such a client may get no
/// answer.
#[derive(Default)]
pub(super) struct Serves {
    /// When faults were over, and the event that says so.
    whole: Option<(usize, u64)>,
    /// Calls since then.
    calls: BTreeMap<(Object, u64), Call>,
    /// Groups that answered one of the calls in time.
    served: BTreeSet<(Object, Numbered)>,
    last: u64,
}

impl Serves {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "serves";
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
                node,
                object,
                operation,
                request,
            } => {
                let call = Call {
                    node: *node,
                    at: event.at,
                    numbered: !request.reads(),
                    unknown: None,
                };
                self.calls.insert((object.clone(), *operation), call);
            }
            EventKind::Return {
                object,
                operation,
                response,
                ..
            } => {
                let call = self.calls.get(&(object.clone(), *operation));
                let answered = response.outcome != Outcome::Never;
                let in_time = event.at - since <= system.serves_within;
                if let Some(call) = call.filter(|_| answered && in_time) {
                    self.served.insert((object.clone(), call.numbered));
                }
            }
            EventKind::Of(CoordinationEvent::Unknown {
                group, operation, ..
            }) => {
                if let Some(call) = self.calls.get_mut(&(group.clone(), *operation)) {
                    call.unknown.get_or_insert(index);
                }
            }
            EventKind::Died { node } => self.calls.retain(|_, call| call.node != *node),
            _ => {}
        }
    }

    fn finish(self: Box<Self>, system: &Coordination) -> Vec<Violation<Coordination>> {
        let mut found = Objections::new(Self::NAME);
        let Some((index, since)) = self.whole else {
            return found.into_violations();
        };
        let within = system.serves_within;
        let mut wanted = BTreeSet::new();
        for ((group, operation), call) in &self.calls {
            if !system.groups.contains(group) {
                continue;
            }
            if call.at - since <= within / 2 {
                wanted.insert((group.clone(), call.numbered));
            }
            if let Some(event) = call.unknown.filter(|_| call.at - since > within) {
                let because = format!(
                    "operation {operation}, asked more than {within} µs after faults were over, is unknown"
                );
                found.add(group.clone(), event, because);
            }
        }
        if self.last - since > within {
            for (group, numbered) in wanted.difference(&self.served) {
                let kind = if *numbered { "no write" } else { "no read" };
                let because = format!("{kind} was answered within {within} µs");
                found.add(group.clone(), index, because);
            }
        }
        found.into_violations()
    }
}
