//! A client that watches the groups whose keys the workers use, and tells what it hears.

use super::line::{Line, ToldLine};
use super::workers::{DRAIN_US, Shared, name_of};
use stateplane_apps::coordination::{Tale, Watching};
use stateplane_coordination::{ConnectionEvent, Event, WatchSettings};
use std::io;
use std::sync::atomic::Ordering;

/// Longest time in µs between two looks at whether the workers have ended.
const LOOK_US: u64 = 5_000;

/// Watches until all workers have ended and every change that they were answered for was told, or
/// the workers' time for what is open has passed once more.
pub(super) fn watch(shared: &Shared) -> io::Result<()> {
    let mut client = shared.client(0)?;
    let name = shared.name();
    let groups = 0..shared.arguments.groups;
    let watches = groups.map(|group| Watching::new(group, WatchSettings::default()));
    let mut watcher = Watcher {
        shared,
        name,
        watches: watches.collect(),
    };
    let mut end = None;
    loop {
        let mut due = client.now() + LOOK_US;
        while let Some(event) = client.poll_event() {
            if let ConnectionEvent::Agent(event) = event {
                watcher.take(client.now(), &event)?;
            }
        }
        let now = client.now();
        if let Some(agent) = client.connection().agent() {
            for watch in &mut watcher.watches {
                watch.handle_timeout(now, agent);
                due = due.min(watch.poll_timeout().unwrap_or(due));
            }
        }
        if shared.working.load(Ordering::Acquire) == 0 {
            let end = *end.get_or_insert(now + DRAIN_US);
            if now >= end || watcher.is_complete() {
                return watcher.end(now);
            }
        }
        client.step(due)?;
    }
}

struct Watcher<'a> {
    shared: &'a Shared,
    /// Number of the logical client.
    name: u32,
    watches: Vec<Watching>,
}

impl Watcher<'_> {
    fn take(&mut self, now: u64, event: &Event) -> io::Result<()> {
        for at in 0..self.watches.len() {
            let watch = &mut self.watches[at];
            let group = watch.group;
            for tale in watch.handle_event(now, event) {
                self.tell(now, group, tale)?;
            }
        }
        Ok(())
    }

    fn tell(&self, now: u64, group: u16, tale: Tale) -> io::Result<()> {
        let line = ToldLine::of((now * 1000, self.name), group, tale, name_of);
        self.shared.write(&Line::Told(Box::new(line)))
    }

    /// True if each watch told all changes that workers were answered for.
    fn is_complete(&self) -> bool {
        let mut watches = self.watches.iter();
        watches.all(|watch| {
            let newest = self.shared.newest(watch.group);
            watch.next().is_some_and(|next| next > newest)
        })
    }

    /// Ends each watch that began: with the newest change that workers were answered for, all of
    /// which have to have been told.
    fn end(&self, now: u64) -> io::Result<()> {
        for watch in &self.watches {
            let newest = self.shared.newest(watch.group);
            if let Some(tale) = watch.end(Some(newest)) {
                self.tell(now, watch.group, tale)?;
            }
        }
        Ok(())
    }
}
