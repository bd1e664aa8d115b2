//! A watch of all records of a group, and the events that histories have of it.

use stateplane_coordination::{Agent, Event, Watch, WatchEvent, WatchSettings};
use stateplane_history::coordination::Told;
use stateplane_wire::coordination::{Key, Kind};

/// An event of a watch, as histories have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tale {
    /// Kind of the event.
    pub told: Told,
    /// Number of the entry; of [`Told::Begin`] and [`Told::Compacted`] the first that is told, of
    /// [`Told::End`] the first that was not.
    pub number: u64,
    /// The record that the entry changed, if the event is of one.
    pub key: Option<Key>,
    /// Its value, if it has one.
    pub value: Option<Vec<u8>>,
}

impl Tale {
    fn new(told: Told, number: u64) -> Tale {
        Tale {
            told,
            number,
            key: None,
            value: None,
        }
    }

    /// The change of the record with `key`, which has `value` since.
    pub fn of_change(told: Told, number: u64, key: Key, value: Option<Vec<u8>>) -> Tale {
        Tale {
            key: Some(key),
            value,
            ..Tale::new(told, number)
        }
    }

    fn of_event(event: WatchEvent) -> Option<Tale> {
        Some(match event {
            WatchEvent::Put { record } => {
                let value = (record.kind == Kind::Value).then_some(record.value);
                Tale::of_change(Told::Put, record.number, record.key, value)
            }
            WatchEvent::Deleted { key, number } => {
                Tale::of_change(Told::Deleted, number, key, None)
            }
            WatchEvent::Compacted { oldest } => Tale::new(Told::Compacted, oldest),
            // Of a watch of one record alone.
            WatchEvent::Clash => return None,
        })
    }
}

/// A watch of a group (rule 23 of `docs/coordination-protocol.md`), which can pause.
#[derive(Debug)]
pub struct Watching {
    /// The group.
    pub group: u16,
    settings: WatchSettings,
    /// `None` while it pauses.
    watch: Option<Watch>,
    /// The first entry that was not told when it began to pause.
    next: Option<u64>,
    begun: bool,
}

impl Watching {
    /// A watch of `group`, which begins once [`Watching::handle_timeout`] is called.
    pub fn new(group: u16, settings: WatchSettings) -> Watching {
        let mut watching = Watching {
            group,
            settings,
            watch: None,
            next: None,
            begun: false,
        };
        watching.resume();
        watching
    }

    /// True once it is known from which entry on it tells.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Number of the first entry that was not told; `None` while it pauses, and before the switch
    /// answered.
    pub fn next(&self) -> Option<u64> {
        self.watch.as_ref().and_then(Watch::next)
    }

    /// Ends the subscription at the switch, and remembers how far the watch is.
    pub fn pause(&mut self, now: u64, agent: &mut Agent) {
        if let Some(mut watch) = self.watch.take() {
            watch.end(now, agent);
            self.next = watch.next();
        }
    }

    /// Watches again, from where it paused.
    pub fn resume(&mut self) {
        if self.watch.is_none() {
            let watch = Watch::group(self.group, self.next);
            self.watch = Some(watch.with_settings(self.settings.clone()));
        }
    }

    /// Takes an event of the agent; gives those of the watch.
    pub fn handle_event(&mut self, now: u64, event: &Event) -> Vec<Tale> {
        let Some(watch) = &mut self.watch else {
            return Vec::new();
        };
        watch.handle_event(now, event);
        let mut tales = Vec::new();
        if let Some(from) = watch.next().filter(|_| !self.begun) {
            self.begun = true;
            tales.push(Tale::new(Told::Begin, from));
        }
        while let Some(event) = watch.poll_event() {
            tales.extend(Tale::of_event(event));
        }
        tales
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        if let Some(watch) = &mut self.watch
            && watch.poll_timeout().is_some_and(|due| due <= now)
        {
            watch.handle_timeout(now, agent);
        }
    }

    /// When [`Watching::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.watch.as_ref().and_then(Watch::poll_timeout)
    }

    /// The end of the watch, which has to have told all entries up to `newest`; `None` of a watch
    /// that pauses or never began.
    pub fn end(&self, newest: Option<u64>) -> Option<Tale> {
        let next = self.next().filter(|_| self.begun)?;
        let number = newest.map_or(next, |newest| next.max(newest + 1));
        Some(Tale::new(Told::End, number))
    }
}
