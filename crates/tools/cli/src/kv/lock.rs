//! `stateplane kv lock`: a command under a lock.

use std::process::{Child, Command, ExitCode, ExitStatus};

use clap::Args;
use stateplane_coordination::{
    ConnectionEvent, Denied, Hold, Mutex, Owner, Session, SessionSettings, SessionState, Wait,
};

use super::{Service, ServiceArguments, name, system};
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

struct Held {
    service: Service,
    session: Session,
    mutex: Mutex,
}

/// Runs the command.
pub fn run(
    service: &ServiceArguments,
    arguments: &LockArguments,
) -> Result<ExitCode, CommandError> {
    let name = name(&arguments.name)?;
    let mut service = service.open(2)?;
    let Some((lanes, ttl_us)) = service.session else {
        return Err(CommandError::new(Failure::System, "there is no session"));
    };
    let place = name.lock_place(service.groups);
    let now = service.client.now();
    let settings = SessionSettings::new(ttl_us);
    let session = Session::open(now, service.agent(), settings)
        .map_err(|refused| CommandError::new(Failure::System, refused))?;
    let owner = Owner {
        session: lanes.session,
        handle: 1,
    };
    let mut held = Held {
        service,
        session,
        mutex: Mutex::new(place, owner),
    };
    held.until(|held| held.session.state() != SessionState::Opening)?;
    if held.session.state() != SessionState::Connected {
        return Err(CommandError::new(
            Failure::System,
            "no session could be opened",
        ));
    }
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
    let lost = held.session.state() == SessionState::Lost || held.mutex.hold() == Hold::Lost;
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

impl Held {
    /// Goes on with all until `end` or until `until` is true of it.
    fn step(&mut self, end: u64) -> Result<(), CommandError> {
        let due = [self.session.poll_timeout(), self.mutex.poll_timeout()];
        let due = due.into_iter().flatten().min().unwrap_or(end).min(end);
        self.service.client.step(due).map_err(system)?;
        let now = self.service.client.now();
        while let Some(event) = self.service.client.poll_event() {
            if let ConnectionEvent::Agent(event) = event {
                let agent = self.service.agent();
                self.session.handle_event(now, agent, &event);
                self.mutex.handle_event(now, agent, &event);
            }
        }
        let agent = self.service.agent();
        self.session.handle_timeout(now, agent);
        self.mutex.handle_timeout(now, agent);
        Ok(())
    }

    fn until(&mut self, until: impl Fn(&Held) -> bool) -> Result<(), CommandError> {
        while !until(self) {
            self.step(u64::MAX)?;
        }
        Ok(())
    }

    /// The fencing token of the lock, once it is held.
    fn acquire(&mut self, arguments: &LockArguments) -> Result<u64, CommandError> {
        let now = self.service.client.now();
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
        let agent = self.service.agent();
        self.mutex.acquire(now, agent, wait).map_err(denied)?;
        let waits = |hold| matches!(hold, Hold::Waiting | Hold::Releasing);
        self.until(|held| !waits(held.mutex.hold()) || held.session.state() == SessionState::Lost)?;
        match (self.mutex.token(), self.mutex.denied()) {
            (Some(token), _) => Ok(token),
            (None, Some(why)) => {
                self.give_back();
                Err(denied(why))
            }
            (None, None) => {
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
            let now = self.service.client.now();
            self.step(now + LOOK_US)?;
            let state = self.session.state();
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
        let now = self.service.client.now();
        let end = now + self.service.timeout_us;
        let agent = self.service.agent();
        // What is not released here, a reaper releases.
        _ = self.mutex.release(now, agent);
        let over = |held: &Held| matches!(held.mutex.hold(), Hold::Idle | Hold::Lost);
        while !over(self) && self.service.client.now() < end && self.step(end).is_ok() {}
        let now = self.service.client.now();
        if self.session.close(now, self.service.agent()).is_err() {
            return;
        }
        let over = |held: &Held| {
            matches!(
                held.session.state(),
                SessionState::Closed | SessionState::Lost
            )
        };
        while !over(self) && self.service.client.now() < end && self.step(end).is_ok() {}
    }
}
