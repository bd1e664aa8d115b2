//! The workers: one client of the service with an operation of each worker in flight.

use super::line::{Ask, Line, OperationLine, UNKNOWN, hex};
use crate::agent::stop_at_end_of_input;
use crate::error::LabError;
use clap::Args;
use stateplane_apps::{Random, coordination};
use stateplane_coordination::{
    Action, ConnectionEvent, Delete, Event, Fate, Operation, Owner, Place, Reading, Session,
    SessionSettings, SessionState, Ticket, When, Write,
};
use stateplane_history::coordination::{Outcome, Response};
use stateplane_host::coordination_client::{Client, ClientConfig};
use stateplane_wire::coordination::Key;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::Ordering;

/// Time in µs that an operation has.
const DEADLINE_US: u64 = 1_000_000;
/// Time in µs after the deadline by which its client must have given it up.
const GRACE_US: u64 = 1_000_000;
/// Time in µs for which what is open in the end is waited for.
const DRAIN_US: u64 = 5_000_000;
/// Values of a group.
const VALUES: u8 = 2;
/// Locks of a group.
const LOCKS: u8 = 1;

/// Arguments of the workers.
#[derive(Clone, Debug, Args)]
pub struct WorkersArguments {
    /// Address of the controller.
    #[arg(long)]
    pub controller: Ipv4Addr,
    /// Workers, each with one operation at a time.
    #[arg(long)]
    pub workers: u16,
    /// Groups whose keys they use: the first ones.
    #[arg(long)]
    pub groups: u16,
    /// Microseconds between two operations of a worker.
    #[arg(long)]
    pub interval_us: u64,
    /// Seed of their choices.
    #[arg(long)]
    pub seed: u64,
}

/// Name of a group in histories.
pub fn group_name(group: u16) -> String {
    format!("g{group}")
}

/// A record's group and key.
type Record = (String, String);

struct Worker {
    random: Random,
    /// The operation that it waits for.
    busy: Option<Ticket>,
    due: u64,
}

struct Workers<'a> {
    arguments: &'a WorkersArguments,
    client: Client,
    session: Option<Session>,
    workers: Vec<Worker>,
    open: BTreeMap<Ticket, (usize, OperationLine)>,
    /// Newest number seen of each record.
    numbers: BTreeMap<Record, u64>,
    asked: u64,
    out: io::BufWriter<io::StdoutLock<'static>>,
}

/// Runs the workers until standard input ends, and then until no operation is open or 5 s have
/// passed. Writes [`Line`]s on standard output.
///
/// # Errors
/// `LAB003` if the system gives no socket, or the lines cannot be written.
pub fn workers(arguments: &WorkersArguments) -> Result<(), LabError> {
    let written = |reason| LabError::file("standard output", reason);
    run(arguments).map_err(written)
}

fn run(arguments: &WorkersArguments) -> io::Result<()> {
    let stop = stop_at_end_of_input()?;
    let controller = SocketAddrV4::new(arguments.controller, stateplane_wire::control::PORT);
    let client = Client::open(&ClientConfig {
        controllers: vec![controller],
        address: None,
        lanes: arguments.workers,
        deadline_us: DEADLINE_US,
    })?;
    let mut random = Random::new(arguments.seed);
    let workers = (0..arguments.workers).map(|_| Worker {
        random: random.split(),
        busy: None,
        due: 0,
    });
    let mut workers = Workers {
        arguments,
        client,
        session: None,
        workers: workers.collect(),
        open: BTreeMap::new(),
        numbers: BTreeMap::new(),
        asked: 0,
        out: io::BufWriter::new(io::stdout().lock()),
    };
    let mut end = None;
    loop {
        workers.listen()?;
        let now = workers.client.now();
        if stop.load(Ordering::Relaxed) {
            let end = *end.get_or_insert(now + DRAIN_US);
            if workers.open.is_empty() || now >= end {
                break;
            }
        } else {
            workers.ask(now);
        }
        workers
            .client
            .step(now + arguments.interval_us.min(5_000))?;
    }
    for (_, line) in core::mem::take(&mut workers.open).into_values() {
        workers.write(line)?;
    }
    workers.out.flush()
}

impl Workers<'_> {
    fn write(&mut self, line: OperationLine) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, &Line::Operation(Box::new(line)))?;
        self.out.write_all(b"\n")
    }

    fn ask(&mut self, now: u64) {
        let state = self.session.as_ref().map(Session::state);
        if state.is_none_or(|state| state == SessionState::Opening) {
            return;
        }
        for at in 0..self.workers.len() {
            let worker = &mut self.workers[at];
            if worker.busy.is_some() || worker.due > now {
                continue;
            }
            worker.due = now + self.arguments.interval_us;
            let (operation, line) = self.draw(at);
            // The clock is read before the operation can leave.
            let invoked = self.client.now();
            let Some(agent) = self.client.connection().agent() else {
                return;
            };
            let Ok(ticket) = agent.submit(invoked, operation) else {
                continue;
            };
            let line = OperationLine {
                invoked_ns: invoked * 1000,
                until_ns: (invoked + DEADLINE_US + GRACE_US) * 1000,
                ..line
            };
            self.workers[at].busy = Some(ticket);
            self.open.insert(ticket, (at, line));
        }
    }

    /// The next operation of a worker, and its line.
    fn draw(&mut self, at: usize) -> (Operation, OperationLine) {
        self.asked += 1;
        let number = self.asked;
        let random = &mut self.workers[at].random;
        let group = random.place(self.arguments.groups.into()) as u16;
        let record = random.place(usize::from(VALUES + LOCKS)) as u8;
        let owner = Owner {
            session: self.session.as_ref().map_or(0, Session::id),
            handle: at as u32,
        };
        let lock = record >= VALUES;
        let name = (
            group_name(group),
            format!("{}{record}", if lock { 'l' } else { 'k' }),
        );
        let known = self.numbers.get(&name).copied().unwrap_or(0);
        let ask = match (lock, random.place(10)) {
            (_, 0..=3) => Ask::Read,
            (true, 4..=6) => Ask::Acquire,
            (true, _) => Ask::Release,
            (false, 4..=5) => Ask::Write,
            (false, 6..=8) => Ask::Cas,
            (false, _) => Ask::Delete,
        };
        let value = number.to_be_bytes();
        let mut line = OperationLine {
            client: at as u32 + 1,
            operation: number,
            group: name.0,
            key: name.1,
            ask,
            write: None,
            expected: None,
            session: owner.session,
            handle: owner.handle,
            invoked_ns: 0,
            until_ns: 0,
            unknown_ns: None,
            responded_ns: None,
            outcome: UNKNOWN.to_owned(),
            number: 0,
            token: None,
            record: None,
            record_number: None,
            value: None,
        };
        let action = match ask {
            Ask::Read if random.permille(500) => Action::Read(Reading::Chain),
            Ask::Read => Action::Read(Reading::Leased),
            Ask::Write | Ask::Cas => {
                line.write = Some(hex(&value));
                let mut when = When::Always;
                if ask == Ask::Cas {
                    line.expected = Some(known);
                    when = When::Number(known);
                }
                Action::Write(Write {
                    value: value.to_vec(),
                    when,
                    guard: None,
                    token: 0,
                    session: 0,
                })
            }
            Ask::Delete => Action::Delete(Delete {
                when: When::Always,
                guard: None,
                token: 0,
            }),
            Ask::Acquire => Action::Acquire { owner, wait: false },
            Ask::Release => Action::Release { owner },
        };
        let mut key = [0; 16];
        key[0] = 1 + u8::from(lock);
        key[15] = record;
        let operation = Operation::new(Place::within(group, Key(key)), action);
        (operation, line)
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
        let locks = matches!(line.ask, Ask::Acquire | Ask::Release);
        let response = match event {
            Event::Answered { answer, .. } => {
                let response = coordination::response(&answer, numbered, locks);
                if let Some((record, number)) = shown(line, &response) {
                    self.numbers.insert(record, number);
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
