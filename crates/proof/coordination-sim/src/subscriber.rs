//! A client that watches all groups (rule 23), and what it tells in a history.

use crate::client::{group_name, object_of};
use crate::options::Rule;
use crate::scenario::Scenario;
use stateplane_coordination::{Agent, Entry, Event, Watch, WatchEvent, WatchSettings};
use stateplane_history::coordination::{CoordinationEvent, EventKind, Told};
use stateplane_wire::coordination::{Key, Kind};

/// Time in µs for which a switch keeps a subscription that is not renewed.
pub(crate) const SUBSCRIPTION: u64 = 300_000;

/// Longer than any run, in µs.
const NEVER: u64 = 1 << 40;

/// The watch of one group.
struct Subscription {
    group: u16,
    /// `None` while the client does not watch.
    watch: Option<Watch>,
    /// The first entry that was not told, when it began to pause.
    next: Option<u64>,
    begun: bool,
}

/// Watches of one client, one of each group.
pub(crate) struct Subscriber {
    node: u32,
    settings: WatchSettings,
    without: Option<Rule>,
    subscriptions: Vec<Subscription>,
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
        let mut subscriber = Self {
            node,
            settings,
            without,
            subscriptions: Vec::new(),
        };
        for group in 0..u16::from(scenario.groups) {
            let watch = Some(subscriber.watch(group, None));
            subscriber.subscriptions.push(Subscription {
                group,
                watch,
                next: None,
                begun: false,
            });
        }
        subscriber
    }

    fn watch(&self, group: u16, from: Option<u64>) -> Watch {
        Watch::group(group, from).with_settings(self.settings.clone())
    }

    /// Ends all subscriptions at the switches, and remembers how far it is.
    pub(crate) fn pause(&mut self, now: u64, agent: &mut Agent) {
        for subscription in &mut self.subscriptions {
            if let Some(mut watch) = subscription.watch.take() {
                watch.end(now, agent);
                subscription.next = watch.next();
            }
        }
    }

    /// Watches again, from where it paused.
    pub(crate) fn resume(&mut self) {
        for at in 0..self.subscriptions.len() {
            let Subscription {
                group, watch, next, ..
            } = &self.subscriptions[at];
            if watch.is_none() {
                let watch = self.watch(*group, *next);
                self.subscriptions[at].watch = Some(watch);
            }
        }
    }

    /// Takes an event of the agent.
    pub(crate) fn handle_event(&mut self, now: u64, event: &Event, notes: &mut Vec<EventKind>) {
        for subscription in &mut self.subscriptions {
            let Some(watch) = &mut subscription.watch else {
                continue;
            };
            if self.without == Some(Rule::InTurn)
                && let Event::Entry { group, entry } = event
                && *group == subscription.group
                && subscription.begun
            {
                notes.extend(as_it_came(self.node, *group, entry));
            }
            watch.handle_event(now, event);
            let tells = self.without != Some(Rule::InTurn);
            subscription.tell(self.node, tells, notes);
        }
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        for subscription in &mut self.subscriptions {
            let Some(watch) = &mut subscription.watch else {
                continue;
            };
            if watch.poll_timeout().is_some_and(|due| due <= now) {
                watch.handle_timeout(now, agent);
            }
        }
    }

    /// When [`Subscriber::handle_timeout`] is due next.
    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        let watches = self.subscriptions.iter();
        let watches = watches.filter_map(|subscription| subscription.watch.as_ref());
        watches.filter_map(Watch::poll_timeout).min()
    }

    /// Ends the watch of a group in the history. `newest` is the newest entry of the group, all of
    /// which have to be told; `None` of a group that need not serve. False if the watch never
    /// began.
    pub(crate) fn end(&self, group: u16, newest: Option<u64>, notes: &mut Vec<EventKind>) -> bool {
        let subscription = &self.subscriptions[usize::from(group)];
        let next = subscription.watch.as_ref().and_then(Watch::next);
        let Some(next) = next.filter(|_| subscription.begun) else {
            return false;
        };
        let number = newest.map_or(next, |newest| next.max(newest + 1));
        notes.push(told(self.node, group, Told::End, number));
        true
    }
}

impl Subscription {
    /// Notes what the watch tells.
    fn tell(&mut self, node: u32, tells: bool, notes: &mut Vec<EventKind>) {
        let Some(watch) = &mut self.watch else {
            return;
        };
        if let Some(from) = watch.next().filter(|_| !self.begun) {
            self.begun = true;
            notes.push(told(node, self.group, Told::Begin, from));
        }
        while let Some(event) = watch.poll_event() {
            let note = match event {
                WatchEvent::Put { record } => {
                    let value = (record.kind == Kind::Value).then_some(record.value);
                    change(
                        node,
                        self.group,
                        Told::Put,
                        record.number,
                        record.key,
                        value,
                    )
                }
                WatchEvent::Deleted { key, number } => {
                    change(node, self.group, Told::Deleted, number, key, None)
                }
                WatchEvent::Compacted { oldest } => {
                    notes.push(told(node, self.group, Told::Compacted, oldest));
                    continue;
                }
                // Of a watch of one record alone.
                WatchEvent::Clash => continue,
            };
            if tells {
                notes.push(note);
            }
        }
    }
}

/// An entry that is told when it comes, whatever came before it.
fn as_it_came(node: u32, group: u16, entry: &Entry) -> Option<EventKind> {
    let record = &entry.record;
    let number = record.number;
    entry.changes.then(|| match record.kind {
        Kind::Value => {
            let value = Some(record.value.clone());
            change(node, group, Told::Put, number, record.key, value)
        }
        Kind::Lock => change(node, group, Told::Put, number, record.key, None),
        Kind::None | Kind::Empty => change(node, group, Told::Deleted, number, record.key, None),
    })
}

fn told(node: u32, group: u16, told: Told, number: u64) -> EventKind {
    EventKind::Of(CoordinationEvent::Told {
        node,
        group: group_name(group),
        told,
        number,
        key: None,
        value: None,
    })
}

fn change(
    node: u32,
    group: u16,
    told: Told,
    number: u64,
    key: Key,
    value: Option<Vec<u8>>,
) -> EventKind {
    EventKind::Of(CoordinationEvent::Told {
        node,
        group: group_name(group),
        told,
        number,
        key: Some(object_of(key)),
        value: value.map(Into::into),
    })
}
