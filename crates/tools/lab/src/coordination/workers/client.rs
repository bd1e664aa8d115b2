//! A client of the service and its workers: what they ask, and what they are told.

use super::{DEADLINE_US, DRAIN_US, FENCED, LOCK, Shared, group_name, name_of, record_key};
use crate::coordination::line::{Ask, Line, OperationLine, RecordLine, ScanLine, UNKNOWN, hex};
use stateplane_apps::Random;
use stateplane_apps::coordination::{self, Listing, Progress};
use stateplane_coordination::{
    Action, ConnectionEvent, Delete, Event, Fate, Operation, Owner, Place, Reading, Session,
    SessionSettings, SessionState, Ticket, When, Write,
};
use stateplane_history::coordination::{Outcome, Response};
use stateplane_host::coordination_client::Client;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;

/// Time in µs after the deadline of an operation by which its client must have given it up.
const GRACE_US: u64 = 1_000_000;
/// Time in µs from the begin of a client's list of a group to that of its next.
const LIST_US: u64 = 300_000;
/// Chance that a value is too long for a slot, in thousandths.
const LONG: u32 = 50;
/// Bytes of such a value.
const LONG_BYTES: usize = 200;

/// A record's group and key.
type Record = (String, String);
struct Worker {
    /// Number of the logical client.
    name: u32,
    random: Random,
    /// The operation that it waits for.
    busy: Option<Ticket>,
    due: u64,
}

/// A client and its workers.
pub(super) struct Workers<'a> {
    shared: &'a Shared,
    client: Client,
    session: Option<Session>,
    workers: Vec<Worker>,
    open: BTreeMap<Ticket, (usize, OperationLine)>,
    /// Newest number seen of each record.
    numbers: BTreeMap<Record, u64>,
    /// Token of each group's lock, as it was seen last.
    tokens: BTreeMap<String, u64>,
    listing: Option<Listing>,
    list_due: u64,
    random: Random,
    /// Time from its session's begin to its death. It has no locks, which a reaper would release.
    lives_us: Option<u64>,
    dies_at: u64,
}

impl Workers<'_> {
    pub(super) fn open(
        shared: &Shared,
        workers: u16,
        lives_us: Option<u64>,
        mut random: Random,
    ) -> io::Result<Workers<'_>> {
        let client = shared.client(workers)?;
        let workers = (0..workers).map(|_| Worker {
            name: shared.name(),
            random: random.split(),
            busy: None,
            due: 0,
        });
        Ok(Workers {
            shared,
            client,
            session: None,
            workers: workers.collect(),
            open: BTreeMap::new(),
            numbers: BTreeMap::new(),
            tokens: BTreeMap::new(),
            listing: None,
            list_due: 0,
            random,
            lives_us,
            dies_at: u64::MAX,
        })
    }

    /// Runs until it is to stop; true if it died before.
    pub(super) fn run(&mut self) -> io::Result<bool> {
        let interval = self.shared.arguments.interval_us;
        let mut end = None;
        loop {
            self.listen()?;
            let now = self.client.now();
            if self.shared.stop.load(Ordering::Relaxed) {
                let end = *end.get_or_insert(now + DRAIN_US);
                if self.open.is_empty() || now >= end {
                    break;
                }
            } else if now >= self.dies_at {
                self.die(now)?;
                return Ok(true);
            } else {
                self.ask(now)?;
            }
            self.client.step(now + interval.min(5_000))?;
        }
        for (_, line) in core::mem::take(&mut self.open).into_values() {
            self.write(line)?;
        }
        Ok(false)
    }

    /// Sends an operation of each worker, and ends without its answer.
    fn die(&mut self, now: u64) -> io::Result<()> {
        for at in 0..self.workers.len() {
            if self.workers[at].busy.is_none() {
                self.submit(at)?;
            }
        }
        self.client.step(now)?;
        let at_ns = self.client.now() * 1000;
        for (_, line) in core::mem::take(&mut self.open).into_values() {
            self.write(line)?;
        }
        for worker in &self.workers {
            let client = worker.name;
            self.shared.write(&Line::Died { at_ns, client })?;
        }
        Ok(())
    }

    fn write(&self, line: OperationLine) -> io::Result<()> {
        self.shared.write(&Line::Operation(Box::new(line)))
    }

    fn ask(&mut self, now: u64) -> io::Result<()> {
        let state = self.session.as_ref().map(Session::state);
        if state.is_none_or(|state| state == SessionState::Opening) {
            return Ok(());
        }
        if let Some(lives) = self.lives_us.filter(|_| self.dies_at == u64::MAX) {
            self.dies_at = now + lives;
        }
        if self.listing.is_none() && now >= self.list_due {
            self.list_due = now + LIST_US;
            self.list(now)?;
        }
        for at in 0..self.workers.len() {
            let worker = &mut self.workers[at];
            if worker.busy.is_some() || worker.due > now {
                continue;
            }
            worker.due = now + self.shared.arguments.interval_us;
            self.submit(at)?;
        }
        Ok(())
    }

    /// Begins the next operation of a worker.
    fn submit(&mut self, at: usize) -> io::Result<()> {
        let (operation, line) = self.draw(at);
        // The clock is read before the operation can leave.
        let invoked = self.client.now();
        let Some(agent) = self.client.connection().agent() else {
            return Ok(());
        };
        let Ok(ticket) = agent.submit(invoked, operation) else {
            return Ok(());
        };
        let line = OperationLine {
            invoked_ns: invoked * 1000,
            until_ns: (invoked + DEADLINE_US + GRACE_US) * 1000,
            ..line
        };
        self.workers[at].busy = Some(ticket);
        self.open.insert(ticket, (at, line));
        Ok(())
    }

    fn next_number(&self) -> u64 {
        self.shared.asked.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Begins a list of the records of a group.
    fn list(&mut self, now: u64) -> io::Result<()> {
        let group = self.random.place(self.shared.arguments.groups.into()) as u16;
        let reading = if self.random.permille(500) {
            Reading::Chain
        } else {
            Reading::Leased
        };
        let number = self.next_number();
        let Some(agent) = self.client.connection().agent() else {
            return Ok(());
        };
        if let Some((listing, begin)) = Listing::begin(now, agent, (group, number), reading) {
            self.scanned(now, &listing, begin)?;
            self.listing = Some(listing);
        }
        Ok(())
    }

    /// Writes the progress of a list.
    fn scanned(&self, now: u64, listing: &Listing, progress: Progress) -> io::Result<()> {
        let client = self.workers[0].name;
        let line = ScanLine::of((now * 1000, client), listing, progress, name_of);
        self.shared.write(&Line::Scan(Box::new(line)))
    }

    /// The next operation of a worker, and its line.
    fn draw(&mut self, at: usize) -> (Operation, OperationLine) {
        let number = self.next_number();
        let Worker { name, random, .. } = &mut self.workers[at];
        let group = random.place(self.shared.arguments.groups.into()) as u16;
        let records = if self.lives_us.is_some() {
            LOCK
        } else {
            FENCED + 1
        };
        let record = random.place(records.into()) as u8;
        let (key, key_name) = record_key(record);
        let ask = match (record, random.place(10)) {
            (_, 0..=3) => Ask::Read,
            (LOCK, 4..=5) => Ask::Acquire,
            (LOCK, 6) => Ask::Wait,
            (LOCK, _) => Ask::Release,
            (_, 4..=5) => Ask::Write,
            (_, 6..=8) => Ask::Cas,
            _ => Ask::Delete,
        };
        let length = if random.permille(LONG) { LONG_BYTES } else { 8 };
        let chain = random.permille(500);
        let value = number.to_be_bytes().repeat(length / 8);
        let owner = Owner {
            session: self.session.as_ref().map_or(0, Session::id),
            handle: at as u32,
        };
        let name_of_group = group_name(group);
        let known = (name_of_group.clone(), key_name.clone());
        let known = self.numbers.get(&known).copied().unwrap_or(0);
        let token = self.tokens.get(&name_of_group).copied().unwrap_or(0);
        let token = if record == FENCED { token } else { 0 };
        let mut line = OperationLine {
            client: *name,
            operation: number,
            group: name_of_group,
            key: key_name,
            ask,
            write: None,
            expected: None,
            fence: (token != 0 && ask != Ask::Read).then_some(token),
            session: owner.session,
            handle: owner.handle,
            invoked_ns: 0,
            until_ns: 0,
            unknown_ns: None,
            responded_ns: None,
            outcome: UNKNOWN.to_owned(),
            number: 0,
            token: None,
            record: RecordLine::default(),
        };
        let action = match ask {
            Ask::Read if chain => Action::Read(Reading::Chain),
            Ask::Read => Action::Read(Reading::Leased),
            Ask::Write | Ask::Cas => {
                line.write = Some(hex(&value));
                let mut when = When::Always;
                if ask == Ask::Cas {
                    line.expected = Some(known);
                    when = When::Number(known);
                }
                Action::Write(Write {
                    value,
                    when,
                    guard: None,
                    token,
                    session: 0,
                })
            }
            Ask::Delete => Action::Delete(Delete {
                when: When::Always,
                guard: None,
                token,
            }),
            Ask::Acquire | Ask::Wait => Action::Acquire {
                owner,
                wait: ask == Ask::Wait,
            },
            Ask::Release => Action::Release { owner },
        };
        (Operation::new(Place::within(group, key), action), line)
    }

    fn listen(&mut self) -> io::Result<()> {
        while let Some(event) = self.client.poll_event() {
            match event {
                ConnectionEvent::Opened { ttl_us, .. } => {
                    let now = self.client.now();
                    if let Some(agent) = self.client.connection().agent() {
                        let opened = Session::open(now, agent, SessionSettings::new(ttl_us));
                        self.session = Some(opened.map_err(io::Error::other)?);
                    }
                }
                // A reaper would release the locks, which the history would not tell.
                ConnectionEvent::Agent(Event::LanesEnded) => {
                    return Err(io::Error::other("the workers' session was ended"));
                }
                ConnectionEvent::Agent(event) => self.take(event)?,
                _ => {}
            }
        }
        let now = self.client.now();
        if let (Some(session), Some(agent)) = (&mut self.session, self.client.connection().agent())
        {
            session.handle_timeout(now, agent);
        }
        Ok(())
    }

    fn take(&mut self, event: Event) -> io::Result<()> {
        let now = self.client.now();
        let now_ns = now * 1000;
        if let (Some(session), Some(agent)) = (&mut self.session, self.client.connection().agent())
            && session.handle_event(now, agent, &event)
        {
            return Ok(());
        }
        if let (Some(mut listing), Some(agent)) =
            (self.listing.take(), self.client.connection().agent())
        {
            for progress in listing.handle_event(now, agent, &event) {
                self.scanned(now, &listing, progress)?;
            }
            self.listing = (!listing.is_over()).then_some(listing);
        }
        let Some(ticket) = event.ticket() else {
            return Ok(());
        };
        let Some((worker, line)) = self.open.get_mut(&ticket) else {
            return Ok(());
        };
        let worker = &mut self.workers[*worker];
        if worker.busy == Some(ticket) {
            worker.busy = None;
        }
        let numbered = line.ask != Ask::Read;
        let locks = matches!(line.ask, Ask::Acquire | Ask::Wait | Ask::Release);
        let response = match event {
            Event::Answered { answer, .. } => {
                let response = coordination::response(&answer, numbered, locks);
                if let Some((record, number)) = shown(line, &response) {
                    self.numbers.insert(record, number);
                }
                if let Some(token) = response.token {
                    self.tokens.insert(line.group.clone(), token);
                }
                response
            }
            Event::Resolved { fate, .. } => match fate {
                Fate::Executed {
                    outcome, number, ..
                } => Response {
                    outcome: coordination::outcome(outcome),
                    number,
                    token: None,
                    seen: None,
                },
                Fate::Never => coordination::never(),
                Fate::Lost => return self.end(ticket),
            },
            Event::Expired { .. } if numbered => coordination::never(),
            Event::Expired { .. } | Event::Unknown { .. } | Event::Failed { .. } => {
                line.unknown_ns = Some(now_ns);
                // A read has no effect that could come to be known.
                return if numbered { Ok(()) } else { self.end(ticket) };
            }
            Event::Entry { .. } | Event::ChainWanted { .. } | Event::LanesEnded => return Ok(()),
        };
        line.respond(now_ns, &response);
        if numbered && response.outcome == Outcome::Done {
            self.shared.changed(&line.group, response.number);
        }
        self.end(ticket)
    }

    /// Writes the line of an operation of which no more will be known.
    fn end(&mut self, ticket: Ticket) -> io::Result<()> {
        match self.open.remove(&ticket) {
            Some((_, line)) => self.write(line),
            None => Ok(()),
        }
    }
}

/// A record, by group and key, with the number that a response shows.
fn shown(line: &OperationLine, response: &Response) -> Option<(Record, u64)> {
    let number = match (&response.seen, response.outcome) {
        (Some(seen), _) => seen.number,
        (None, Outcome::Done) if line.ask != Ask::Read => response.number,
        _ => return None,
    };
    Some(((line.group.clone(), line.key.clone()), number))
}
