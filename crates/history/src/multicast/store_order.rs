//! The store is strictly serializable.
//!
//! Replicas execute operations at places, so an order is given, and nothing has to be searched.
//! [`Serial`] looks whether answers are those of that order. [`Strict`] looks whether some order
//! with the same answers keeps to real time: an operation that was answered before another was
//! called is before it. Operations can change places unless they name a key in common that one of
//! them writes.

use super::event::{Event, EventKind, Final, Multicast, MulticastEvent, Subject, Violation};
use super::store::{Machine, Request, Response};
use crate::checker::{Checker, Objections};
use crate::event::Object;
use std::collections::{BTreeMap, BTreeSet};

struct Operation {
    request: Request,
    called: usize,
    /// The first answer, and the event that gave it.
    answer: Option<(usize, Response)>,
    /// Place at which it was executed first, and the event that told of it.
    executed: Option<(usize, Final)>,
}

/// Operations of a history, and objections that show while it is read.
struct Operations {
    all: BTreeMap<u64, Operation>,
    /// Place of the last operation that each replica executed.
    last: BTreeMap<(u32, u8), Final>,
    found: Objections<Multicast>,
}

impl Operations {
    fn new(checker: &'static str) -> Self {
        Self {
            all: BTreeMap::new(),
            last: BTreeMap::new(),
            found: Objections::new(checker),
        }
    }

    fn handle(&mut self, index: usize, event: &Event) {
        match &event.kind {
            EventKind::Call {
                operation, request, ..
            } => {
                let new = Operation {
                    request: request.clone(),
                    called: index,
                    answer: None,
                    executed: None,
                };
                if self.all.insert(*operation, new).is_some() {
                    self.object(*operation, index, "it is the number of two calls");
                }
            }
            EventKind::Return {
                operation,
                response,
                ..
            } => match self.all.get_mut(operation) {
                Some(of) if of.answer.is_none() => of.answer = Some((index, response.clone())),
                Some(_) => self.object(*operation, index, "it is answered twice"),
                None => self.object(*operation, index, "it is answered and was never called"),
            },
            EventKind::Of(MulticastEvent::Executed {
                node,
                group,
                operation,
                at,
            }) => self.executed(index, (*node, *group), *operation, *at),
            // A node that died, or begins with a peer's state, executes again from there on.
            EventKind::Died { node } => self.last.retain(|(of, _), _| of != node),
            EventKind::Of(
                MulticastEvent::Joined { node, group, .. } | MulticastEvent::Left { node, group },
            ) => _ = self.last.remove(&(*node, *group)),
            _ => {}
        }
    }

    fn executed(&mut self, index: usize, replica: (u32, u8), operation: u64, at: Final) {
        let last = self.last.insert(replica, at);
        if last.is_some_and(|last| last >= at) {
            let (node, group) = replica;
            let because = format!("node {node} in group {group} executes it out of order");
            self.object(operation, index, &because);
        }
        let Some(of) = self.all.get_mut(&operation) else {
            return self.object(operation, index, "it is executed and was never called");
        };
        let (_, first) = *of.executed.get_or_insert((index, at));
        if first != at {
            let because = format!("it is executed at {first} and at {at}");
            self.object(operation, index, &because);
        }
    }

    fn object(&mut self, operation: u64, index: usize, because: &str) {
        let subject = Subject::Operation(operation);
        self.found.add(subject, index, because.to_owned());
    }

    /// Operations that were executed, by their places.
    fn in_order(&self) -> Vec<(Final, u64, &Operation)> {
        let all = self.all.iter();
        let executed = all.filter_map(|(number, of)| Some((of.executed?.1, *number, of)));
        let mut executed: Vec<_> = executed.collect();
        executed.sort_by_key(|(at, number, _)| (*at, *number));
        executed
    }
}

/// Objects to answers that are not those of the places' order, and to operations that are
/// executed twice, out of order, or answered and never executed.
pub(super) struct Serial(Operations);

impl Serial {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "serial";
}

impl Default for Serial {
    fn default() -> Self {
        Self(Operations::new(Self::NAME))
    }
}

impl Checker<Multicast> for Serial {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Multicast, index: usize, event: &Event) {
        self.0.handle(index, event);
    }

    fn finish(self: Box<Self>, _: &Multicast) -> Vec<Violation> {
        let mut machine = Machine::default();
        let mut wrong = Vec::new();
        for (at, number, of) in self.0.in_order() {
            if let Some((event, Response::Refused)) = of.answer {
                wrong.push((
                    number,
                    event,
                    format!("it is refused, and executed at {at}"),
                ));
                continue;
            }
            let (expected, _) = machine.execute(&of.request);
            if let Some((event, answer)) = &of.answer
                && *answer != expected
            {
                let because =
                    format!("the answer is `{answer}`, and in the order of places `{expected}`");
                wrong.push((number, *event, because));
            }
        }
        for (number, of) in &self.0.all {
            if let (Some((event, answer)), None) = (&of.answer, of.executed)
                && *answer != Response::Refused
            {
                let because = "it is answered, and no replica executed it".to_owned();
                wrong.push((*number, *event, because));
            }
        }
        let mut found = self.0.found;
        for (number, event, because) in wrong {
            found.add(Subject::Operation(number), event, because);
        }
        found.into_violations()
    }
}

/// Objects to operations that no order explains which keeps to real time.
pub(super) struct Strict(Operations);

impl Strict {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "strict";
}

impl Default for Strict {
    fn default() -> Self {
        Self(Operations::new(Self::NAME))
    }
}

/// The order of operations: operations by their position in the order of places, and behind them the
/// answers, which are moments of real time.
struct Graph {
    next: Vec<Vec<usize>>,
    before: Vec<usize>,
}

impl Graph {
    fn arrow(&mut self, from: usize, to: usize) {
        self.next[from].push(to);
        self.before[to] += 1;
    }

    fn new(order: &[(Final, u64, &Operation)]) -> Graph {
        let answers = order.iter().enumerate().filter_map(|(at, (_, _, of))| {
            let (event, _) = of.answer.as_ref()?;
            Some((*event, at))
        });
        let moments: BTreeMap<usize, usize> = answers.collect();
        let nodes = order.len() + moments.len();
        let mut graph = Graph {
            next: vec![Vec::new(); nodes],
            before: vec![0; nodes],
        };
        // Real time: each answer is behind its operation and the answer before, and in front of
        // the operations that are called later.
        let moments: Vec<(usize, usize)> = moments.into_iter().collect();
        for (number, (_, operation)) in moments.iter().enumerate() {
            let moment = order.len() + number;
            graph.arrow(*operation, moment);
            if number > 0 {
                graph.arrow(moment - 1, moment);
            }
        }
        for (at, (_, _, of)) in order.iter().enumerate() {
            let earlier = moments.partition_point(|(event, _)| *event < of.called);
            if earlier > 0 {
                graph.arrow(order.len() + earlier - 1, at);
            }
        }
        graph.conflicts(order);
        graph
    }

    /// Operations that name a key which one of them writes stay in the order of their places.
    fn conflicts(&mut self, order: &[(Final, u64, &Operation)]) {
        let mut machine = Machine::default();
        let mut written: BTreeMap<&Object, usize> = BTreeMap::new();
        let mut read: BTreeMap<&Object, Vec<usize>> = BTreeMap::new();
        for (at, (_, _, of)) in order.iter().enumerate() {
            if let Some((_, Response::Refused)) = of.answer {
                continue;
            }
            let (_, writes) = machine.execute(&of.request);
            for key in of.request.keys() {
                if let Some(writer) = written.get(key).filter(|writer| **writer != at) {
                    self.arrow(*writer, at);
                }
                let readers = read.entry(key).or_default();
                if writes {
                    for reader in readers.drain(..).filter(|reader| *reader != at) {
                        self.next[reader].push(at);
                        self.before[at] += 1;
                    }
                    written.insert(key, at);
                } else {
                    readers.push(at);
                }
            }
        }
    }

    /// Nodes of a circle in their order, if there is one.
    fn circle(mut self) -> Option<Vec<usize>> {
        let mut free: Vec<usize> = (0..self.next.len())
            .filter(|node| self.before[*node] == 0)
            .collect();
        while let Some(node) = free.pop() {
            for next in core::mem::take(&mut self.next[node]) {
                self.before[next] -= 1;
                if self.before[next] == 0 {
                    free.push(next);
                }
            }
        }
        // Whatever is left has one before it that is left, so the way back never ends.
        let left: BTreeSet<usize> = (0..self.next.len())
            .filter(|node| self.before[*node] > 0)
            .collect();
        let mut back = BTreeMap::new();
        for node in &left {
            for next in &self.next[*node] {
                back.insert(*next, *node);
            }
        }
        let mut seen = Vec::new();
        let mut node = *left.first()?;
        while !seen.contains(&node) {
            seen.push(node);
            node = *back.get(&node)?;
        }
        let begin = seen.iter().position(|of| *of == node)?;
        let mut circle = seen.split_off(begin);
        circle.reverse();
        Some(circle)
    }
}

impl Checker<Multicast> for Strict {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Multicast, index: usize, event: &Event) {
        self.0.handle(index, event);
    }

    fn finish(self: Box<Self>, _: &Multicast) -> Vec<Violation> {
        let mut found = Objections::new(Self::NAME);
        let order = self.0.in_order();
        if let Some(circle) = Graph::new(&order).circle() {
            let operations = circle.iter().filter_map(|node| order.get(*node));
            let operations: Vec<_> = operations.collect();
            let latest = operations.iter().max_by_key(|(_, _, of)| of.called);
            if let Some((_, number, of)) = latest {
                let names: Vec<String> = operations
                    .iter()
                    .map(|(at, number, _)| format!("{number} at {at}"))
                    .collect();
                let because = format!(
                    "no order keeps to real time: each of the operations {} is before the next, \
                     and the last before the first",
                    names.join(", ")
                );
                found.add(Subject::Operation(*number), of.called, because);
            }
        }
        found.into_violations()
    }
}
