//! A client that watches all groups (rule 23), and what it tells in a history.

use crate::client::{group_name, object_of};
use crate::options::Rule;
use crate::scenario::Scenario;
use stateplane_apps::coordination::{Tale, Watching};
use stateplane_coordination::{Agent, Entry, Event, WatchSettings};
use stateplane_history::coordination::{CoordinationEvent, EventKind, Told};
use stateplane_wire::coordination::Kind;

/// Time in µs for which a switch keeps a subscription that is not renewed.
pub(crate) const SUBSCRIPTION: u64 = 300_000;

/// Longer than any run, in µs.
const NEVER: u64 = 1 << 40;

/// Watches of one client, one of each group.
pub(crate) struct Subscriber {
    node: u32,
    without: Option<Rule>,
    watches: Vec<Watching>,
}

impl Subscriber {
    /// A subscriber that histories call `node`.
    pub(crate) fn new(node: u32, scenario: &Scenario, without: Option<Rule>) -> Self {
        let settings = WatchSettings {
            renew: match without {
                Some(Rule::Renewed) => NEVER,
                _ => SUBSCRIPTION / 6,
            },
            poll: 10_000,
            gap: 2_000,
        };
        let groups = 0..u16::from(scenario.groups);
        let watches = groups.map(|group| Watching::new(group, settings.clone()));
        Self {
            node,
            without,
            watches: watches.collect(),
        }
    }

    /// Ends all subscriptions at the switches, and remembers how far it is.
    pub(crate) fn pause(&mut self, now: u64, agent: &mut Agent) {
        for watch in &mut self.watches {
            watch.pause(now, agent);
        }
    }

    /// Watches again, from where it paused.
    pub(crate) fn resume(&mut self) {
        for watch in &mut self.watches {
            watch.resume();
        }
    }

    /// Takes an event of the agent.
    pub(crate) fn handle_event(&mut self, now: u64, event: &Event, notes: &mut Vec<EventKind>) {
        let as_they_come = self.without == Some(Rule::InTurn);
        for watch in &mut self.watches {
            if as_they_come
                && let Event::Entry { group, entry } = event
                && *group == watch.group
                && watch.has_begun()
            {
                let tale = as_it_came(entry);
                notes.extend(tale.map(|tale| note(self.node, watch.group, tale)));
            }
            for tale in watch.handle_event(now, event) {
                let is_change = matches!(tale.told, Told::Put | Told::Deleted);
                if !(as_they_come && is_change) {
                    notes.push(note(self.node, watch.group, tale));
                }
            }
        }
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        for watch in &mut self.watches {
            watch.handle_timeout(now, agent);
        }
    }

    /// When [`Subscriber::handle_timeout`] is due next.
    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        self.watches.iter().filter_map(Watching::poll_timeout).min()
    }

    /// Ends the watch of a group in the history. `newest` is the newest entry of the group, all of
    /// which have to be told; `None` of a group that need not serve. False if the watch never
    /// began.
    pub(crate) fn end(&self, group: u16, newest: Option<u64>, notes: &mut Vec<EventKind>) -> bool {
        let end = self.watches[usize::from(group)].end(newest);
        let is_there = end.is_some();
        notes.extend(end.map(|tale| note(self.node, group, tale)));
        is_there
    }
}

/// An entry that is told when it comes, whatever came before it.
fn as_it_came(entry: &Entry) -> Option<Tale> {
    let record = &entry.record;
    let (told, value) = match record.kind {
        Kind::Value => (Told::Put, Some(record.value.clone())),
        Kind::Lock => (Told::Put, None),
        Kind::None | Kind::Empty => (Told::Deleted, None),
    };
    entry
        .changes
        .then(|| Tale::of_change(told, record.number, record.key, value))
}

fn note(node: u32, group: u16, tale: Tale) -> EventKind {
    EventKind::Of(CoordinationEvent::Told {
        node,
        group: group_name(group),
        told: tale.told,
        number: tale.number,
        key: tale.key.map(object_of),
        value: tale.value.map(Into::into),
    })
}
