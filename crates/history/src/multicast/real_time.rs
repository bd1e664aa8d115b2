//! Real-time order: a complete message is before one that is sent later (rule 17).

use super::event::{Event, EventKind, Final, Multicast, MulticastEvent, Subject, Violation};
use crate::checker::{Checker, Objections};
use std::collections::BTreeMap;

struct Sent {
    event: usize,
    /// Messages that were complete before, at the same host or in a group of its own.
    behind: Vec<u64>,
}

/// Objects to a message that has a lower final timestamp than one which was complete before it was
/// sent, at the same host or with a group in common.
pub(super) struct RealTime {
    to: BTreeMap<u64, u32>,
    sent: BTreeMap<u64, Sent>,
    /// Last messages that were complete, by host and by group: those with the greatest timestamps
    /// are known at the end.
    of_host: BTreeMap<u32, Vec<u64>>,
    of_group: BTreeMap<u8, Vec<u64>>,
    finals: BTreeMap<u64, Final>,
    found: Objections<Multicast>,
}

impl RealTime {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "real-time";
}

/// Messages that are kept of each host and group.
const KEPT: usize = 16;

fn keep(list: &mut Vec<u64>, message: u64) {
    if list.len() == KEPT {
        list.remove(0);
    }
    list.push(message);
}

fn groups(to: u32) -> impl Iterator<Item = u8> {
    (0..32).filter(move |group| (to >> group) & 1 == 1)
}

impl Default for RealTime {
    fn default() -> Self {
        Self {
            to: BTreeMap::new(),
            sent: BTreeMap::new(),
            of_host: BTreeMap::new(),
            of_group: BTreeMap::new(),
            finals: BTreeMap::new(),
            found: Objections::new(Self::NAME),
        }
    }
}

impl Checker<Multicast> for RealTime {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Multicast, index: usize, event: &Event) {
        let EventKind::Of(event) = &event.kind else {
            return;
        };
        match *event {
            MulticastEvent::Sent {
                node, message, to, ..
            } => {
                let mut behind = self.of_host.get(&node).cloned().unwrap_or_default();
                for group in groups(to) {
                    behind.extend(self.of_group.get(&group).into_iter().flatten());
                }
                self.to.insert(message, to);
                let event = index;
                self.sent.insert(message, Sent { event, behind });
            }
            MulticastEvent::Completed { node, message } => {
                keep(self.of_host.entry(node).or_default(), message);
                for group in groups(self.to.get(&message).copied().unwrap_or(0)) {
                    keep(self.of_group.entry(group).or_default(), message);
                }
            }
            MulticastEvent::Delivered { message, at, .. } => {
                self.finals.entry(message).or_insert(at);
            }
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>, _: &Multicast) -> Vec<Violation> {
        for (message, sent) in &self.sent {
            let Some(at) = self.finals.get(message) else {
                continue;
            };
            let later = sent.behind.iter().find_map(|earlier| {
                let of = self.finals.get(earlier)?;
                (of >= at).then_some((earlier, of))
            });
            if let Some((earlier, of)) = later {
                let because = format!(
                    "its final timestamp is {at}, and that of message {earlier}, which was \
                     complete before, {of}"
                );
                self.found
                    .add(Subject::Message(*message), sent.event, because);
            }
        }
        self.found.into_violations()
    }
}
