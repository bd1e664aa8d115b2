//! Agreement and validity: messages that have to arrive do, in time.

use super::event::{Event, EventKind, Multicast, MulticastEvent, Subject, Violation};
use super::order::Deliveries;
use crate::checker::{Checker, Objections};
use std::collections::{BTreeMap, BTreeSet};

struct Sent {
    node: u32,
    to: u32,
    event: usize,
}

/// Receivers that live and are listed, what they delivered, and what has to arrive.
#[derive(Default)]
struct Arrivals {
    sent: BTreeMap<u64, Sent>,
    refused: BTreeSet<u64>,
    completed: BTreeSet<u64>,
    /// Operations of the store without an answer: the host that called, and the event.
    called: BTreeMap<u64, (u32, usize)>,
    dead: BTreeSet<u32>,
    /// Receivers, with the timestamp behind which they get messages.
    listed: BTreeMap<(u32, u8), Option<u64>>,
    finals: BTreeMap<u64, u64>,
    deliveries: Deliveries,
    /// Messages that anyone delivered, with the event of the first delivery.
    anywhere: BTreeMap<u64, usize>,
    /// Deliveries, and completions, after this time are late.
    until: Option<u64>,
    late: Vec<(u64, usize)>,
    last: usize,
}

impl Arrivals {
    fn handle(&mut self, system: &Multicast, index: usize, event: &Event) {
        self.last = index;
        self.deliveries.handle(event);
        let late = self.until.is_some_and(|until| event.at > until);
        match &event.kind {
            EventKind::Died { node } => {
                self.dead.insert(*node);
                self.listed.retain(|(of, _), _| of != node);
            }
            EventKind::Call {
                node, operation, ..
            } => {
                self.called.insert(*operation, (*node, index));
            }
            EventKind::Return { operation, .. } => {
                self.called.remove(operation);
            }
            EventKind::Of(MulticastEvent::Sent {
                node, message, to, ..
            }) => {
                let (node, to, event) = (*node, *to, index);
                self.sent.insert(*message, Sent { node, to, event });
            }
            EventKind::Of(MulticastEvent::Refused { message, .. }) => {
                self.refused.insert(*message);
            }
            EventKind::Of(MulticastEvent::Completed { message, .. }) => {
                self.completed.insert(*message);
            }
            EventKind::Of(MulticastEvent::Joined {
                node, group, after, ..
            }) => {
                self.listed.insert((*node, *group), *after);
            }
            EventKind::Of(MulticastEvent::Left { node, group }) => {
                self.listed.remove(&(*node, *group));
            }
            EventKind::Of(MulticastEvent::Delivered { message, at, .. }) => {
                self.finals.insert(*message, at.time);
                self.anywhere.entry(*message).or_insert(index);
                if late {
                    self.late.push((*message, index));
                }
            }
            EventKind::Of(MulticastEvent::Whole) => self.until = Some(event.at + system.within),
            _ => {}
        }
    }

    /// Objects to each of `messages` that a receiver of its groups lacks.
    fn object(&self, messages: &BTreeMap<u64, usize>, found: &mut Objections<Multicast>) {
        for (message, index) in &self.late {
            if messages.contains_key(message) {
                let because = "it arrives too late after the last fault".to_owned();
                found.add(Subject::Message(*message), *index, because);
            }
        }
        for ((node, group), after) in &self.listed {
            let of = self.deliveries.by_receiver.get(&(*node, *group));
            let has: BTreeSet<u64> = of.into_iter().flatten().copied().collect();
            for (message, index) in messages {
                let to = self.sent.get(message).map_or(0, |sent| sent.to);
                let before = self.finals.get(message).zip(*after);
                let before = before.is_some_and(|(at, after)| *at <= after);
                if (to >> group) & 1 == 1 && !before && !has.contains(message) {
                    let because = format!("node {node} in group {group} never delivers it");
                    found.add(Subject::Message(*message), *index, because);
                }
            }
        }
    }
}

macro_rules! arrives {
    ($(#[$attribute:meta])* $name:ident = $text:literal, $messages:expr) => {
        $(#[$attribute])*
        #[derive(Default)]
        pub(super) struct $name(Arrivals);

        impl $name {
            /// Its name in texts.
            pub(super) const NAME: &'static str = $text;
        }

        impl Checker<Multicast> for $name {
            fn name(&self) -> &'static str {
                Self::NAME
            }

            fn handle(&mut self, system: &Multicast, index: usize, event: &Event) {
                self.0.handle(system, index, event);
            }

            fn finish(self: Box<Self>, _: &Multicast) -> Vec<Violation> {
                let mut found = Objections::new(Self::NAME);
                // A run that ends among faults promises nothing.
                if self.0.until.is_some() {
                    let messages = $messages(&self.0);
                    self.0.object(&messages, &mut found);
                }
                found.into_violations()
            }
        }
    };
}

arrives! {
    /// Objects to a message that one receiver delivered and another of its groups did not.
    Agreement = "agreement", |of: &Arrivals| of.anywhere.clone()
}

arrives! {
    /// Objects to a message of a living sender, or one that is complete, that nobody delivered.
    Validity = "validity", |of: &Arrivals| {
        let lives = |(message, sent): (&u64, &Sent)| {
            let due = !of.dead.contains(&sent.node) || of.completed.contains(message);
            let due = due && !of.refused.contains(message) && !of.anywhere.contains_key(message);
            due.then_some((*message, sent.event))
        };
        of.sent.iter().filter_map(lives).collect::<BTreeMap<_, _>>()
    }
}

/// Objects to a call of a living sender that never ends, and to an operation of the store that a
/// living client called and that is never answered.
#[derive(Default)]
pub(super) struct Ends(Arrivals);

impl Ends {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "ends";
}

impl Checker<Multicast> for Ends {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, system: &Multicast, index: usize, event: &Event) {
        self.0.handle(system, index, event);
    }

    fn finish(self: Box<Self>, _: &Multicast) -> Vec<Violation> {
        let mut found = Objections::new(Self::NAME);
        let of = self.0;
        for (message, sent) in of.sent.iter().filter(|_| of.until.is_some()) {
            let ended = of.completed.contains(message) || of.refused.contains(message);
            if !ended && !of.dead.contains(&sent.node) {
                let because = format!("node {} never learns what became of it", sent.node);
                found.add(Subject::Message(*message), sent.event, because);
            }
        }
        for (operation, (node, event)) in of.called.iter().filter(|_| of.until.is_some()) {
            if !of.dead.contains(node) {
                let because = format!("node {node} is never answered");
                found.add(Subject::Operation(*operation), *event, because);
            }
        }
        found.into_violations()
    }
}
