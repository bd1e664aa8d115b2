//! `stateplane kv session`: a session that is kept alive, and the list of sessions.

use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use serde_json::json;
use stateplane_coordination::{ConnectionEvent, Lanes, SessionState};
use stateplane_host::coordination_client::SessionClient;

use super::answers::Printer;
use super::{Service, ServiceArguments, expired, system};
use crate::exit::{self, CommandError, Failure};
use crate::signal;

/// Time between two looks at the command and at signals, in µs.
const LOOK_US: u64 = 20_000;

/// Open a session, keep it alive until stopped or while a command runs, or list the sessions
///
/// Prints the session's number, and each change of its state: connected, suspended while the service
/// does not answer, lost once it may have been ended. The command has the number in
/// STATEPLANE_SESSION; the exit code is the command's, unless the session was lost (7).
#[derive(Args)]
pub struct SessionArguments {
    /// List all sessions that are not closed
    #[arg(long, conflicts_with_all = ["lanes", "command"])]
    list: bool,
    /// Requests that the session may have under way at once in each group
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    lanes: u16,
    /// The command and its arguments
    #[arg(last = true)]
    command: Vec<String>,
}

/// Keeps a session, or lists them.
pub fn run(
    service: &ServiceArguments,
    printer: Printer,
    arguments: &SessionArguments,
) -> Result<ExitCode, CommandError> {
    if arguments.list {
        return list(service.open(0)?, printer);
    }
    let stop = signal::stop_flag()?;
    let service = service.open(arguments.lanes)?;
    let timeout_us = service.timeout_us;
    let session = service.into_session()?;
    let mut kept = Kept {
        lanes: session.lanes(),
        session,
        timeout_us,
        printer,
        told: SessionState::Opening,
    };
    kept.look();
    let ended = match arguments.command.split_first() {
        None => kept.until_stopped(&stop).map(|()| None),
        Some((command, rest)) => kept.while_runs(command, rest).map(Some),
    };
    let lost = kept.session.state() == SessionState::Lost;
    kept.close();
    let status = ended?;
    if lost {
        let message = match status {
            Some(status) => format!(
                "session {} was lost while the command ran (it ended with {status})",
                kept.lanes.session
            ),
            None => format!("session {} was lost", kept.lanes.session),
        };
        let error = CommandError::coded(Failure::Unknown, "session-lost", message);
        return Ok(exit::report(Err(error)));
    }
    Ok(match status {
        None => ExitCode::SUCCESS,
        Some(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            ExitCode::from(code.unwrap_or(Failure::Expectation as u8))
        }
    })
}

struct Kept {
    session: SessionClient,
    timeout_us: u64,
    lanes: Lanes,
    printer: Printer,
    told: SessionState,
}

impl Kept {
    fn step(&mut self, end: u64) -> Result<(), CommandError> {
        self.session.step(end, |_, _, _| ()).map_err(system)?;
        self.look();
        Ok(())
    }

    /// Tells a state that has not been told.
    fn look(&mut self) {
        let state = self.session.state();
        if state != self.told {
            self.told = state;
            self.tell(state);
        }
    }

    fn tell(&self, state: SessionState) {
        let session = self.lanes.session;
        let state = match state {
            SessionState::Opening => "opening",
            SessionState::Connected => "connected",
            SessionState::Suspended => "suspended",
            SessionState::Lost => "lost",
            _ => "closed",
        };
        if self.printer.json {
            let (first, count) = (self.lanes.first, self.lanes.count);
            self.printer.line(&json!({
                "session": session,
                "state": state,
                "first_lane": first,
                "lanes": count,
            }));
        } else {
            println!("session {session} {state}");
        }
    }

    fn until_stopped(&mut self, stop: &AtomicBool) -> Result<(), CommandError> {
        while !stop.load(Ordering::Relaxed) && self.session.state() != SessionState::Lost {
            let now = self.session.now();
            self.step(now + LOOK_US)?;
        }
        Ok(())
    }

    fn while_runs(&mut self, command: &str, rest: &[String]) -> Result<ExitStatus, CommandError> {
        let child = Command::new(command)
            .args(rest)
            .env("STATEPLANE_SESSION", self.lanes.session.to_string())
            .spawn();
        let mut child: Child = child
            .map_err(|error| CommandError::new(Failure::Input, format!("{command}: {error}")))?;
        loop {
            if let Some(status) = child.try_wait().map_err(system)? {
                return Ok(status);
            }
            let now = self.session.now();
            self.step(now + LOOK_US)?;
        }
    }

    /// Ends the session, if the service answers in time; if not, a reaper does.
    fn close(&mut self) {
        let end = self.session.now() + self.timeout_us;
        self.session.close(end);
        self.look();
    }
}

fn list(mut service: Service, printer: Printer) -> Result<ExitCode, CommandError> {
    let end = service.client.now() + service.timeout_us;
    let now = service.client.now();
    service.client.connection().list(now, 0);
    let mut rows: Vec<(Lanes, u64)> = Vec::new();
    loop {
        service.client.step(end).map_err(system)?;
        while let Some(event) = service.client.poll_event() {
            let ConnectionEvent::Sessions { sessions, next, .. } = event else {
                continue;
            };
            rows.extend(sessions);
            if let Some(next) = next {
                let now = service.client.now();
                service.client.connection().list(now, next);
                continue;
            }
            for (lanes, age_us) in &rows {
                let (session, first, count) = (lanes.session, lanes.first, lanes.count);
                let seconds = *age_us as f64 / 1e6;
                if printer.json {
                    printer.line(&json!({
                        "session": session,
                        "first_lane": first,
                        "lanes": count,
                        "known_seconds": seconds,
                    }));
                } else {
                    println!(
                        "{session}\tlanes {first} to {}\tknown for {seconds:.1} s",
                        first + count.max(1) - 1
                    );
                }
            }
            return Ok(ExitCode::SUCCESS);
        }
        if service.client.now() >= end {
            return Err(expired(None));
        }
    }
}
