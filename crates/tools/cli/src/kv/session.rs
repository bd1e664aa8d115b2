//! `stateplane kv session`: a session that is kept alive, and the list of sessions.

use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use serde_json::json;
use stateplane_coordination::{ConnectionEvent, Lanes, Session, SessionSettings, SessionState};

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
    let mut service = service.open(arguments.lanes)?;
    let Some((lanes, ttl_us)) = service.session else {
        return Err(CommandError::new(Failure::System, "there is no session"));
    };
    let now = service.client.now();
    let session = Session::open(now, service.agent(), SessionSettings::new(ttl_us))
        .map_err(|refused| CommandError::new(Failure::System, refused))?;
    let mut kept = Kept {
        service,
        session,
        lanes,
        printer,
        told: SessionState::Opening,
    };
    let end = kept.service.client.now() + 2 * kept.service.timeout_us;
    while kept.session.state() == SessionState::Opening && kept.service.client.now() < end {
        kept.step(end)?;
    }
    if kept.session.state() != SessionState::Connected {
        return Err(expired(None));
    }
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
                lanes.session
            ),
            None => format!("session {} was lost", lanes.session),
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
    service: Service,
    session: Session,
    lanes: Lanes,
    printer: Printer,
    told: SessionState,
}

impl Kept {
    fn step(&mut self, end: u64) -> Result<(), CommandError> {
        let due = self.session.poll_timeout().unwrap_or(end).min(end);
        self.service.client.step(due).map_err(system)?;
        let now = self.service.client.now();
        while let Some(event) = self.service.client.poll_event() {
            if let ConnectionEvent::Agent(event) = event {
                let agent = self.service.agent();
                self.session.handle_event(now, agent, &event);
            }
        }
        let agent = self.service.agent();
        self.session.handle_timeout(now, agent);
        let state = self.session.state();
        if state != self.told {
            self.told = state;
            self.tell(state);
        }
        Ok(())
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
            let now = self.service.client.now();
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
            let now = self.service.client.now();
            self.step(now + LOOK_US)?;
        }
    }

    /// Ends the session, if the service answers in time; if not, a reaper does.
    fn close(&mut self) {
        let now = self.service.client.now();
        let end = now + self.service.timeout_us;
        if self.session.close(now, self.service.agent()).is_err() {
            return;
        }
        let over = |state| matches!(state, SessionState::Closed | SessionState::Lost);
        while !over(self.session.state())
            && self.service.client.now() < end
            && self.step(end).is_ok()
        {}
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
