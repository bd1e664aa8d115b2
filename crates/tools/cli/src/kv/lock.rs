//! `stateplane kv lock`: a command under a lock.

use std::process::{Child, Command, ExitCode, ExitStatus};

use clap::Args;
use stateplane_coordination::{Denied, SessionState, Wait};
use stateplane_host::coordination_client::LockClient;

use super::{ServiceArguments, name, system};
use crate::exit::{self, CommandError, Failure};

/// Time between two looks at the command, in µs.
const LOOK_US: u64 = 10_000;

/// Run a command while holding a lock.
///
/// The command has the lock's fencing token in STATEPLANE_TOKEN, and the lock's name in
/// STATEPLANE_LOCK. What it writes with the token is refused once a later holder wrote; nothing
/// else stops it from writing when its session was ended meanwhile, of which this command says so.
/// The exit code is the command's, unless the lock was not acquired or not held to the end.
#[derive(Args)]
pub struct LockArguments {
    /// Name of the lock
    name: String,
    /// Do not wait for another holder
    #[arg(long = "try", conflicts_with = "wait")]
    attempt: bool,
    /// Seconds to wait for other holders; without it, for ever
    #[arg(long, value_name = "SECONDS")]
    wait: Option<f64>,
    /// The command and its arguments
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

/// Runs the command.
pub fn run(
    service: &ServiceArguments,
    arguments: &LockArguments,
) -> Result<ExitCode, CommandError> {
    let name = name(&arguments.name)?;
    let service = service.open(2)?;
    let place = name.lock_place(service.groups);
    let timeout_us = service.timeout_us;
    let mut held = Held {
        lock: LockClient::new(service.into_session()?, place),
        timeout_us,
    };
    let token = held.acquire(arguments)?;
    let mut child = Command::new(&arguments.command[0])
        .args(&arguments.command[1..])
        .env("STATEPLANE_TOKEN", token.to_string())
        .env("STATEPLANE_LOCK", &arguments.name)
        .spawn();
    let ended = match &mut child {
        Ok(child) => held.watch(child),
        Err(error) => Err(CommandError::new(
            Failure::Input,
            format!("{}: {error}", arguments.command[0]),
        )),
    };
    let lost = held.lock.is_lost();
    held.give_back();
    let status = ended?;
    if lost {
        let message = format!(
            "the session was lost while the command ran (it ended with {status}): from then on the \
             lock may have been another's; only what checks the token {token} was safe"
        );
        return Ok(exit::report(Err(CommandError::coded(
            Failure::Unknown,
            "session-lost",
            message,
        ))));
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(Failure::Expectation as u8)))
}

struct Held {
    lock: LockClient,
    timeout_us: u64,
}

impl Held {
    /// The fencing token of the lock, once it is held.
    fn acquire(&mut self, arguments: &LockArguments) -> Result<u64, CommandError> {
        let now = self.lock.session().now();
        let wait = match arguments.wait {
            _ if arguments.attempt => Wait::Try,
            Some(seconds) if (0.0..=1e9).contains(&seconds) => {
                Wait::Until(now + (seconds * 1e6) as u64)
            }
            Some(_) => {
                return Err(CommandError::new(
                    Failure::Input,
                    "--wait is a number of seconds",
                ));
            }
            None => Wait::Forever,
        };
        let denied = |denied: Denied| {
            let failure = match denied {
                Denied::Taken | Denied::TimedOut | Denied::Full => Failure::Taken,
                Denied::WrongKind => Failure::Input,
                Denied::Refused(_) => Failure::System,
            };
            CommandError::new(failure, format!("{}: {denied}", arguments.name))
        };
        self.lock.begin(wait).map_err(denied)?;
        while self.lock.attempt().is_none() && !self.lock.is_lost() {
            self.lock.step(u64::MAX).map_err(system)?;
        }
        match self.lock.attempt() {
            Some(Ok(token)) => Ok(token),
            Some(Err(why)) => {
                self.give_back();
                Err(denied(why))
            }
            None => {
                let message = "the session was lost while it waited for the lock";
                Err(CommandError::coded(
                    Failure::Unknown,
                    "session-lost",
                    message,
                ))
            }
        }
    }

    /// Waits for the end of the command, and says at once if the session is lost.
    fn watch(&mut self, child: &mut Child) -> Result<ExitStatus, CommandError> {
        let mut told = SessionState::Connected;
        loop {
            if let Some(status) = child.try_wait().map_err(system)? {
                return Ok(status);
            }
            let now = self.lock.session().now();
            self.lock.step(now + LOOK_US).map_err(system)?;
            let state = self.lock.state();
            if state != told {
                match state {
                    SessionState::Suspended => {
                        eprintln!("warning: the service does not answer; the session may end");
                    }
                    SessionState::Lost => {
                        eprintln!("warning: the session is lost; the lock may be another's");
                    }
                    _ => eprintln!("the session is connected again"),
                }
                told = state;
            }
        }
    }

    /// Releases the lock and ends the session, if the service answers in time.
    fn give_back(&mut self) {
        let end = self.lock.session().now() + self.timeout_us;
        self.lock.release(end);
        let end = self.lock.session().now() + self.timeout_us;
        self.lock.session().close(end);
    }
}
