//! `stateplane kv`: records and locks of the coordination service.

mod answers;
mod list;
mod lock;
mod reap;
mod session;
mod watch;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use stateplane_coordination::{
    Action, Agent, Answer, ConnectionEvent, Delete, Event, Fate, Lane, Name, Operation, Place,
    Reading, Refused, Ticket, When, Write,
};
use stateplane_host::coordination_client::{Client, ClientConfig, Opened, SessionClient};
use stateplane_host::sealing::Guard;

use crate::exit::{self, CommandError, Failure};
use crate::store::read_keys;
use answers::Printer;

/// Read and write records of the coordination service, and hold its locks.
///
/// Exit codes: 0 done; 1 there is no such record; 2 wrong name or option; 4 the service did not
/// answer in time and nothing was changed, or the system refuses; 5 the condition does not hold; 6
/// another holds the lock; 7 it is not known whether the change was made, or whether the lock was
/// held to the end.
#[derive(Args)]
#[command(after_help = "Examples:
  stateplane kv --controller 10.0.0.50 put lamp on
  stateplane kv cas lamp on off
  stateplane kv list buildings/7/
  stateplane kv lock backup -- sh -c 'make-backup --fence $STATEPLANE_TOKEN'")]
pub struct KvArguments {
    #[command(flatten)]
    service: ServiceArguments,
    #[command(subcommand)]
    command: KvCommand,
}

#[derive(Args)]
struct ServiceArguments {
    /// The controllers: addresses, with a port unless it is 4795
    #[arg(
        long,
        value_name = "ADDRESS",
        value_delimiter = ',',
        default_value = "127.0.0.1",
        value_parser = controller,
        global = true
    )]
    controller: Vec<SocketAddrV4>,
    /// This machine's address, to which switches answer; else that towards the controller
    #[arg(long, value_name = "ADDRESS", global = true)]
    address: Option<Ipv4Addr>,
    /// Seconds until an operation is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, global = true)]
    timeout: f64,
    /// Accept and send sealed messages only, with the keys of this file (TOML)
    #[arg(long, value_name = "FILE", global = true)]
    keys: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum KvCommand {
    /// Print the value of a record
    Get {
        /// Name of the record
        name: String,
        /// Pass all switches of the chain instead of trusting the last one's lease
        #[arg(long)]
        chain: bool,
        /// Take any member's copy, which may lack the newest changes
        #[arg(long, conflicts_with = "chain")]
        stale: bool,
    },
    /// Write a record
    Put {
        /// Name of the record
        name: String,
        /// Its value
        value: String,
        #[command(flatten)]
        condition: ConditionArguments,
    },
    /// Write a record if its value is the expected one
    Cas {
        /// Name of the record
        name: String,
        /// The value expected
        old: String,
        /// The new value
        new: String,
        /// Fencing token that the write carries
        #[arg(long, default_value_t = 0)]
        token: u64,
    },
    /// Delete a record
    Del {
        /// Name of the record
        name: String,
        #[command(flatten)]
        condition: ConditionArguments,
    },
    /// List the records whose names begin with a prefix
    ///
    /// Groups are searched one after the other while others write: the list is not the state of
    /// one moment.
    List {
        /// The prefix; without it, all are listed
        #[arg(default_value = "")]
        prefix: String,
    },
    Watch(watch::WatchArguments),
    Lock(lock::LockArguments),
    Session(session::SessionArguments),
    /// End sessions whose clients died, until stopped
    Reap {
        /// Stop when all sessions that there are now and are dead were ended
        #[arg(long)]
        once: bool,
    },
}

#[derive(Args)]
struct ConditionArguments {
    /// Only if there is no record
    #[arg(long, conflicts_with_all = ["present", "number"])]
    absent: bool,
    /// Only if there is a record
    #[arg(long, conflicts_with = "number")]
    present: bool,
    /// Only if the record's number is this one
    #[arg(long)]
    number: Option<u64>,
    /// Fencing token that the write carries
    #[arg(long, default_value_t = 0)]
    token: u64,
}

impl ConditionArguments {
    fn when(&self) -> When {
        match self.number {
            Some(number) => When::Number(number),
            None if self.absent => When::Absent,
            None if self.present => When::Present,
            None => When::Always,
        }
    }
}

pub(crate) fn controller(text: &str) -> Result<SocketAddrV4, String> {
    let alone = text
        .parse()
        .map(|address| SocketAddrV4::new(address, stateplane_wire::control::PORT));
    alone
        .or_else(|_| text.parse())
        .map_err(|_| format!("{text} is no IPv4 address"))
}

/// A client that knows the service.
pub(crate) struct Service {
    pub(crate) client: Client,
    timeout_us: u64,
    pub(crate) groups: u16,
    opened: Opened,
}

impl ServiceArguments {
    fn open(&self, lanes: u16) -> Result<Service, CommandError> {
        if !(0.001..=86_400.0).contains(&self.timeout) {
            let message = "--timeout is between 0.001 and 86400 seconds";
            return Err(CommandError::new(Failure::Input, message));
        }
        let timeout_us = (self.timeout * 1e6) as u64;
        let guard = self.keys.as_deref().map(read_keys).transpose()?;
        let config = ClientConfig {
            controllers: self.controller.clone(),
            address: self.address,
            lanes,
            deadline_us: timeout_us,
        };
        Service::connect(&config, guard)
    }
}

impl Service {
    /// A client that knows the number of groups, and has a session if it wants lanes.
    /// With a guard only sealed messages are sent and taken.
    pub(crate) fn connect(
        config: &ClientConfig,
        guard: Option<Guard>,
    ) -> Result<Service, CommandError> {
        let (client, opened) = Client::connect(config, guard).map_err(system)?;
        Ok(Service {
            client,
            timeout_us: config.deadline_us,
            groups: opened.groups,
            opened,
        })
    }

    /// The client with a session, once it is connected.
    fn into_session(self) -> Result<SessionClient, CommandError> {
        let end = self.client.now() + 2 * self.timeout_us;
        let mut session = SessionClient::open(self.client, &self.opened).map_err(system)?;
        if session.wait_connected(end).map_err(system)? {
            Ok(session)
        } else {
            Err(expired(None))
        }
    }
}

pub(crate) fn system(error: impl std::fmt::Display) -> CommandError {
    CommandError::new(Failure::System, error)
}

fn unusable(error: impl std::fmt::Display) -> CommandError {
    CommandError::new(Failure::Input, error)
}

fn name(text: &str) -> Result<Name, CommandError> {
    Name::new(text.as_bytes()).map_err(unusable)
}

impl Service {
    pub(crate) fn agent(&mut self) -> &mut Agent {
        let agent = self.client.connection().agent();
        agent.expect("the groups are known, and with them the agent")
    }

    fn submit(&mut self, operation: Operation) -> Result<Ticket, CommandError> {
        let now = self.client.now();
        self.agent()
            .submit(now, operation)
            .map_err(|refused| match refused {
                Refused::TooLong(_) => unusable(refused),
                _ => CommandError::new(Failure::System, refused),
            })
    }

    /// Gives the lanes back after the answer of all that was asked on them, which a reaper would do
    /// after the session's TTL. What is late of the requests are repetitions, which the lane knows
    /// (rules 5 and 19). The message may be lost.
    fn close(&mut self) -> Result<(), CommandError> {
        let now = self.client.now();
        if let Some(lanes) = self.agent().lanes() {
            self.client.connection().close(now, lanes);
            self.client.step(now).map_err(system)?;
        }
        Ok(())
    }

    /// The next event of the agent; none at `end`.
    pub(crate) fn event(&mut self, end: u64) -> Result<Option<Event>, CommandError> {
        loop {
            while let Some(event) = self.client.poll_event() {
                if let ConnectionEvent::Agent(event) = event {
                    return Ok(Some(event));
                }
            }
            if self.client.now() >= end {
                return Ok(None);
            }
            self.client.step(end).map_err(system)?;
        }
    }

    /// Carries an operation out. One whose answer is lost is asked for as long again.
    fn perform(&mut self, operation: Operation) -> Result<Answer, CommandError> {
        let ticket = self.submit(operation)?;
        let end = self.client.now() + 2 * self.timeout_us;
        let unknown = || {
            let message = "the service did not answer in time; it is not known whether the change \
                           was made";
            Err(CommandError::coded(Failure::Unknown, "unknown", message))
        };
        loop {
            let Some(event) = self.event(end)? else {
                return unknown();
            };
            if event.ticket() != Some(ticket) {
                continue;
            }
            match event {
                Event::Answered { answer, .. } => return Ok(answer),
                Event::Expired { refusal, .. } => return Err(expired(refusal)),
                Event::Resolved { fate, .. } => match fate {
                    Fate::Executed {
                        outcome,
                        number,
                        token,
                    } => {
                        return Ok(Answer {
                            outcome,
                            number,
                            newest: number,
                            token,
                            record: None,
                            slot: 0,
                            more: false,
                        });
                    }
                    Fate::Never => return Err(expired(None)),
                    Fate::Lost => return unknown(),
                },
                Event::Failed { reason, .. } => {
                    return Err(CommandError::new(Failure::Unknown, reason));
                }
                Event::Unknown { .. }
                | Event::Entry { .. }
                | Event::ChainWanted { .. }
                | Event::LanesEnded => {}
            }
        }
    }
}

fn expired(refusal: Option<stateplane_wire::coordination::Outcome>) -> CommandError {
    let why = refusal.map_or(String::new(), |refusal| {
        let refusal = format!("{refusal:?}").to_lowercase();
        format!(" (the last answer was a refusal: {refusal})")
    });
    let message = format!("the service did not answer in time; nothing was changed{why}");
    CommandError::coded(Failure::System, "timeout", message)
}

/// Runs the command.
pub fn run(arguments: &KvArguments) -> ExitCode {
    match carry_out(arguments) {
        Ok(code) => code,
        Err(error) => exit::report(Err(error)),
    }
}

fn carry_out(arguments: &KvArguments) -> Result<ExitCode, CommandError> {
    let service = &arguments.service;
    let printer = Printer { json: service.json };
    let place = |service: &Service, name: &Name| name.place(service.groups);
    match &arguments.command {
        KvCommand::Get {
            name: text,
            chain,
            stale,
        } => {
            let name = name(text)?;
            let mut service = service.open(0)?;
            let reading = match (chain, stale) {
                (true, _) => Reading::Chain,
                (_, true) => Reading::Stale,
                _ => Reading::Leased,
            };
            let read = Operation::new(place(&service, &name), Action::Read(reading));
            let answer = service.perform(read)?;
            printer.record(&name, &answer)?;
        }
        KvCommand::Put {
            name: text,
            value,
            condition,
        } => {
            let action = |when| {
                Action::Write(Write {
                    value: value.as_bytes().to_vec(),
                    when,
                    token: condition.token,
                    ..Write::default()
                })
            };
            change(service, printer, text, action(condition.when()))?;
        }
        KvCommand::Cas {
            name,
            old,
            new,
            token,
        } => {
            let write = Write {
                value: new.as_bytes().to_vec(),
                when: When::Value(old.as_bytes().to_vec()),
                token: *token,
                ..Write::default()
            };
            change(service, printer, name, Action::Write(write))?;
        }
        KvCommand::Del { name, condition } => {
            let delete = Delete {
                when: condition.when(),
                token: condition.token,
                guard: None,
            };
            change(service, printer, name, Action::Delete(delete))?;
        }
        KvCommand::List { prefix } => list::run(service.open(0)?, printer, prefix)?,
        KvCommand::Watch(arguments) => return watch::run(service, printer, arguments),
        KvCommand::Lock(arguments) => return lock::run(service, arguments),
        KvCommand::Session(arguments) => return session::run(service, printer, arguments),
        KvCommand::Reap { once } => reap::run(service.open(8)?, printer, *once)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn change(
    service: &ServiceArguments,
    printer: Printer,
    text: &str,
    action: Action,
) -> Result<(), CommandError> {
    let name = name(text)?;
    let mut service = service.open(1)?;
    let operation = Operation {
        place: Place {
            ..name.place(service.groups)
        },
        action,
        lane: Lane::Any,
    };
    let answer = service.perform(operation)?;
    service.close()?;
    printer.change(&name, &answer)
}
