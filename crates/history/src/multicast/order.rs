//! One order: in one group, over all receivers, and by final timestamps.

use super::event::{Event, EventKind, Final, Multicast, MulticastEvent, Subject, Violation};
use crate::checker::{Checker, Objections};
use std::collections::BTreeMap;

/// Deliveries of each receiver in their order, those of the peer with whose state it began first.
#[derive(Default)]
pub(super) struct Deliveries {
    pub(super) by_receiver: BTreeMap<(u32, u8), Vec<u64>>,
}

impl Deliveries {
    /// Takes an event.
    pub(super) fn handle(&mut self, event: &Event) {
        match event.kind {
            EventKind::Of(MulticastEvent::Joined {
                node, group, peer, ..
            }) => {
                let of_peer = peer.and_then(|peer| self.by_receiver.get(&(peer, group)));
                let of_peer = of_peer.cloned().unwrap_or_default();
                self.by_receiver.insert((node, group), of_peer);
            }
            EventKind::Of(MulticastEvent::Delivered {
                node,
                group,
                message,
                ..
            }) => {
                let receiver = self.by_receiver.entry((node, group)).or_default();
                receiver.push(message);
            }
            _ => {}
        }
    }
}

/// Objects to two receivers of a group of which neither's deliveries are the beginning of the
/// other's, and to one that begins at a place in the order and leaves a message out behind it.
pub(super) struct Prefix {
    deliveries: Deliveries,
    /// The longest deliveries of each group.
    longest: BTreeMap<u8, (u32, Vec<u64>)>,
    /// Messages of each group, by their place.
    places: BTreeMap<u8, BTreeMap<Final, u64>>,
    /// Receivers that began at a place in the order, and the event of the last delivery.
    late: BTreeMap<(u32, u8), (u64, usize)>,
    found: Objections<Multicast>,
}

impl Prefix {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "prefix";
}

impl Default for Prefix {
    fn default() -> Self {
        Self {
            deliveries: Deliveries::default(),
            longest: BTreeMap::new(),
            places: BTreeMap::new(),
            late: BTreeMap::new(),
            found: Objections::new(Self::NAME),
        }
    }
}

impl Prefix {
    /// Compares what receivers delivered that began at a place in the order with what is behind it.
    fn compare_late(&mut self) {
        for (&(node, group), &(after, event)) in &self.late {
            let Some(own) = self.deliveries.by_receiver.get(&(node, group)) else {
                continue;
            };
            let places = self.places.get(&group).into_iter().flatten();
            let behind = places.filter(|(at, _)| at.time > after);
            let differs = own.iter().zip(behind).find(|(own, (_, all))| own != all);
            if let Some((own, (at, all))) = differs {
                let because =
                    format!("delivers message {own} where message {all} of {at} is the next");
                self.found.add(Subject::Node(node, group), event, because);
            }
        }
    }
}

impl Checker<Multicast> for Prefix {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Multicast, index: usize, event: &Event) {
        self.deliveries.handle(event);
        if let EventKind::Of(MulticastEvent::Joined {
            node, group, after, ..
        }) = event.kind
        {
            self.late.remove(&(node, group));
            if let Some(after) = after {
                self.late.insert((node, group), (after, index));
            }
        }
        let EventKind::Of(MulticastEvent::Delivered {
            node,
            group,
            message,
            at,
            ..
        }) = event.kind
        else {
            return;
        };
        self.places.entry(group).or_default().insert(at, message);
        if let Some((_, last)) = self.late.get_mut(&(node, group)) {
            *last = index;
            return;
        }
        let Some(own) = self.deliveries.by_receiver.get(&(node, group)) else {
            return;
        };
        let empty = || (node, Vec::new());
        let (other, longest) = self.longest.entry(group).or_insert_with(empty);
        let last = own.len() - 1;
        match longest.get(last) {
            None => {
                longest.push(own[last]);
                *other = node;
            }
            Some(theirs) if *theirs != own[last] => {
                let because = format!(
                    "delivers message {} where node {other} delivered {theirs}",
                    own[last]
                );
                self.found.add(Subject::Node(node, group), index, because);
            }
            Some(_) => {}
        }
    }

    fn finish(mut self: Box<Self>, _: &Multicast) -> Vec<Violation> {
        self.compare_late();
        self.found.into_violations()
    }
}

/// Objects to a receiver whose final timestamps do not grow, and to a message with two.
pub(super) struct Finals {
    of: BTreeMap<u64, Final>,
    last: BTreeMap<(u32, u8), Final>,
    found: Objections<Multicast>,
}

impl Finals {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "finals";
}

impl Default for Finals {
    fn default() -> Self {
        Self {
            of: BTreeMap::new(),
            last: BTreeMap::new(),
            found: Objections::new(Self::NAME),
        }
    }
}

impl Checker<Multicast> for Finals {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Multicast, index: usize, event: &Event) {
        match event.kind {
            EventKind::Of(MulticastEvent::Joined {
                node, group, peer, ..
            }) => {
                let of_peer = peer.and_then(|peer| self.last.get(&(peer, group)).copied());
                match of_peer {
                    Some(last) => self.last.insert((node, group), last),
                    None => self.last.remove(&(node, group)),
                };
            }
            EventKind::Of(MulticastEvent::Delivered {
                node,
                group,
                message,
                at,
                ..
            }) => {
                let known = *self.of.entry(message).or_insert(at);
                if known != at {
                    let because = format!("it has the final timestamps {known} and {at}");
                    self.found.add(Subject::Message(message), index, because);
                }
                if let Some(last) = self.last.insert((node, group), at)
                    && last >= at
                {
                    let because = format!("delivers message {message} of {at} after {last}");
                    self.found.add(Subject::Node(node, group), index, because);
                }
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>, _: &Multicast) -> Vec<Violation> {
        self.found.into_violations()
    }
}

/// Objects to receivers whose orders, put together, have a circle. Timestamps are not looked at.
#[derive(Default)]
pub(super) struct Acyclic {
    deliveries: Deliveries,
    /// Event of the last delivery of each message.
    events: BTreeMap<u64, usize>,
}

impl Acyclic {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "acyclic";
}

impl Checker<Multicast> for Acyclic {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Multicast, index: usize, event: &Event) {
        self.deliveries.handle(event);
        if let EventKind::Of(MulticastEvent::Delivered { message, .. }) = event.kind {
            self.events.insert(message, index);
        }
    }

    fn finish(self: Box<Self>, _: &Multicast) -> Vec<Violation> {
        let mut next: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut before: BTreeMap<u64, usize> = BTreeMap::new();
        for order in self.deliveries.by_receiver.values() {
            for message in order {
                before.entry(*message).or_default();
            }
            for pair in order.windows(2) {
                next.entry(pair[0]).or_default().push(pair[1]);
                *before.entry(pair[1]).or_default() += 1;
            }
        }
        // Messages with nothing before them are taken off; what is left has a circle before it.
        let first = before.iter().filter(|(_, count)| **count == 0);
        let mut free: Vec<u64> = first.map(|(message, _)| *message).collect();
        while let Some(message) = free.pop() {
            before.remove(&message);
            for behind in next.remove(&message).unwrap_or_default() {
                if let Some(count) = before.get_mut(&behind) {
                    *count -= 1;
                    if *count == 0 {
                        free.push(behind);
                    }
                }
            }
        }
        let mut found = Objections::new(Self::NAME);
        if let Some(message) = before.keys().next() {
            let event = self.events.get(message).copied().unwrap_or(0);
            let because = format!(
                "{} messages are before each other, or behind such",
                before.len()
            );
            found.add(Subject::Message(*message), event, because);
        }
        found.into_violations()
    }
}
