//! Integrity: a delivered message was sent to the receiver, and comes once; only addressed groups take part.

use super::event::{Event, EventKind, Multicast, MulticastEvent, Subject, Violation};
use crate::checker::{Checker, Objections};
use std::collections::{BTreeMap, BTreeSet};

/// A message as its sender knows it.
#[derive(Clone, Copy)]
struct Sent {
    to: u32,
    digest: u64,
    refused: bool,
}

/// Objects to a delivery of what was not sent, of another payload, to another group, of a message
/// that was refused, or a second time.
pub(super) struct Integrity {
    sent: BTreeMap<u64, Sent>,
    /// Messages of each receiver, those of the peer with whose state it began among them.
    delivered: BTreeMap<(u32, u8), BTreeSet<u64>>,
    found: Objections<Multicast>,
}

impl Integrity {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "integrity";

    fn deliver(&mut self, (node, group): (u32, u8), message: u64, digest: u64) -> Option<String> {
        let receiver = format!("node {node} in group {group}");
        let twice = !self
            .delivered
            .entry((node, group))
            .or_default()
            .insert(message);
        match self.sent.get(&message) {
            None => Some(format!("{receiver} delivers it, and nobody sent it")),
            _ if twice => Some(format!("{receiver} delivers it twice")),
            Some(sent) if sent.refused => Some(format!("{receiver} delivers it, refused")),
            Some(sent) if (sent.to >> group) & 1 == 0 => {
                Some(format!("{receiver} delivers it, to whom it was not sent"))
            }
            Some(sent) if sent.digest != digest => {
                Some(format!("{receiver} delivers another payload"))
            }
            _ => None,
        }
    }
}

impl Default for Integrity {
    fn default() -> Self {
        Self {
            sent: BTreeMap::new(),
            delivered: BTreeMap::new(),
            found: Objections::new(Self::NAME),
        }
    }
}

impl Checker<Multicast> for Integrity {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Multicast, index: usize, event: &Event) {
        let EventKind::Of(event) = &event.kind else {
            return;
        };
        match *event {
            MulticastEvent::Sent {
                message,
                to,
                digest,
                ..
            } => {
                let refused = false;
                self.sent.insert(
                    message,
                    Sent {
                        to,
                        digest,
                        refused,
                    },
                );
            }
            MulticastEvent::Refused { message, .. } => {
                if let Some(sent) = self.sent.get_mut(&message) {
                    sent.refused = true;
                }
                let all = self.delivered.values();
                if all.into_iter().any(|of| of.contains(&message)) {
                    let because = "it is refused, and was delivered".to_owned();
                    self.found.add(Subject::Message(message), index, because);
                }
            }
            MulticastEvent::Joined {
                node, group, peer, ..
            } => {
                let of_peer = peer.and_then(|peer| self.delivered.get(&(peer, group)));
                let of_peer = of_peer.cloned().unwrap_or_default();
                self.delivered.insert((node, group), of_peer);
            }
            MulticastEvent::Delivered {
                node,
                group,
                message,
                digest,
                ..
            } => {
                if let Some(because) = self.deliver((node, group), message, digest) {
                    self.found.add(Subject::Message(message), index, because);
                }
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>, _: &Multicast) -> Vec<Violation> {
        self.found.into_violations()
    }
}

/// Objects to a switch that takes a message for a group which it does not address.
pub(super) struct Genuine {
    to: BTreeMap<u64, u32>,
    found: Objections<Multicast>,
}

impl Genuine {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "genuine";
}

impl Default for Genuine {
    fn default() -> Self {
        Self {
            to: BTreeMap::new(),
            found: Objections::new(Self::NAME),
        }
    }
}

impl Checker<Multicast> for Genuine {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Multicast, index: usize, event: &Event) {
        match event.kind {
            EventKind::Of(MulticastEvent::Sent { message, to, .. }) => {
                self.to.insert(message, to);
            }
            EventKind::Of(MulticastEvent::Took {
                node,
                group,
                message,
            }) => {
                let to = self.to.get(&message).copied().unwrap_or(0);
                if (to >> group) & 1 == 0 {
                    let because = format!("switch {node} takes it for group {group}");
                    self.found.add(Subject::Message(message), index, because);
                }
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>, _: &Multicast) -> Vec<Violation> {
        self.found.into_violations()
    }
}
