//! A mutex: a lock of the switches, held by a session (rules 20, 21).

use stateplane_wire::coordination::Outcome;

use crate::call::{Call, End};
use crate::{Agent, Event, Operation, Owner, Place, Refused};

/// How long to wait for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all: if another has it, the attempt is over.
    Try,
    /// In its queue, first come first served, until this time.
    Until(u64),
    /// In its queue, for ever.
    Forever,
}

impl Wait {
    pub(crate) fn deadline(self) -> u64 {
        match self {
            Wait::Until(end) => end,
            Wait::Try | Wait::Forever => u64::MAX,
        }
    }
}

/// Why an attempt ended without the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// Another has it, and the attempt was not to wait.
    #[error("another has it")]
    Taken,
    /// As many wait as the queue has room for, or the store has no room for a record.
    #[error("there is no room")]
    Full,
    /// The time is over.
    #[error("it was not acquired in time")]
    TimedOut,
    /// The key has a value.
    #[error("the key has a value and is no lock")]
    WrongKind,
    /// The agent took no operation.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// How a holder stands to what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It has nothing and wants nothing.
    Idle,
    /// It asked and was not answered, or waits in a queue.
    Waiting,
    /// It has it, with this fencing token, which grows with each holder: what is written with the
    /// token is refused once a later holder wrote. Without that, "I hold it" is true only while
    /// the session is connected and clocks are within their bound (rule 21).
    Held {
        /// The fencing token.
        token: u64,
    },
    /// It gives it up, or leaves the queue.
    Releasing,
    /// Its session was ended, or the group's contents are lost. The state is final.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Idle,
    /// ACQUIRE is under way.
    Acquire,
    /// It stands in the queue; the record is read from time to time.
    Queue,
    Held(u64),
    /// RELEASE is under way.
    Release,
    Lost,
}

/// A mutex, as one of its would-be holders sees it.
///
/// ```
/// # #[allow(dead_code)]
/// # mod chain { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain/mod.rs")); }
/// use stateplane_coordination::{Hold, Mutex, Name, Owner, Wait};
///
/// # let mut service = chain::Service::new();
/// # let mut agent = service.agent(4);
/// # let session = 1;
/// let place = Name::new(b"printer").unwrap().lock_place(4);
/// let mut mutex = Mutex::new(place, Owner { session, handle: 1 });
/// mutex.acquire(0, &mut agent, Wait::Try)?;
/// for event in service.events(&mut agent) {
///     mutex.handle_event(0, &mut agent, &event);
/// }
/// assert_eq!(mutex.hold(), Hold::Held { token: 1 });
/// mutex.release(0, &mut agent)?;
/// # Ok::<(), stateplane_coordination::Denied>(())
/// ```
#[derive(Debug)]
pub struct Mutex {
    place: Place,
    owner: Owner,
    step: Step,
    call: Call,
    wait: Wait,
    poll_us: u64,
    next_poll: u64,
    denied: Option<Denied>,
}

/// Time between two looks at a lock while waiting for it, in µs.
const POLL_US: u64 = 5_000;

impl Mutex {
    /// The lock at `place`, for `owner`. Two holders of one session need two handles.
    pub fn new(place: Place, owner: Owner) -> Mutex {
        Mutex {
            place,
            owner,
            step: Step::Idle,
            call: Call::default(),
            wait: Wait::Try,
            poll_us: POLL_US,
            next_poll: 0,
            denied: None,
        }
    }

    /// Place of the lock.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// How the holder stands to the lock.
    pub fn hold(&self) -> Hold {
        match self.step {
            Step::Idle => Hold::Idle,
            Step::Acquire | Step::Queue => Hold::Waiting,
            Step::Held(token) => Hold::Held { token },
            Step::Release => Hold::Releasing,
            Step::Lost => Hold::Lost,
        }
    }

    /// The fencing token, if the lock is held.
    pub fn token(&self) -> Option<u64> {
        match self.step {
            Step::Held(token) => Some(token),
            _ => None,
        }
    }

    /// Why the last attempt ended without the lock.
    pub fn denied(&self) -> Option<Denied> {
        self.denied
    }

    /// Wants the lock. Nothing happens unless the holder is idle.
    ///
    /// # Errors
    ///
    /// [`Denied::Refused`] if the agent takes no operation.
    pub fn acquire(&mut self, now: u64, agent: &mut Agent, wait: Wait) -> Result<(), Denied> {
        if self.step == Step::Idle {
            self.denied = None;
            self.wait = wait;
            self.ask(now, agent)?;
        }
        Ok(())
    }

    fn ask(&mut self, now: u64, agent: &mut Agent) -> Result<(), Refused> {
        let waits = self.wait != Wait::Try;
        let operation = Operation::acquire(self.place.clone(), self.owner, waits);
        self.call.begin(now, agent, operation)?;
        self.step = Step::Acquire;
        Ok(())
    }

    /// Gives the lock up, or leaves its queue; after an unknown outcome too, as the release follows
    /// what became of that on the same lane. Nothing happens if the holder is idle.
    ///
    /// # Errors
    ///
    /// [`Denied::Refused`] if the agent takes no operation.
    pub fn release(&mut self, now: u64, agent: &mut Agent) -> Result<(), Denied> {
        if matches!(self.step, Step::Acquire | Step::Queue | Step::Held(_)) {
            self.call.cancel(now, agent);
            self.let_go(now, agent)?;
        }
        Ok(())
    }

    fn let_go(&mut self, now: u64, agent: &mut Agent) -> Result<(), Refused> {
        let operation = Operation::release(self.place.clone(), self.owner);
        self.call.begin(now, agent, operation)?;
        self.step = Step::Release;
        Ok(())
    }

    /// Takes an event of the agent; true if it was the mutex's.
    pub fn handle_event(&mut self, now: u64, agent: &mut Agent, event: &Event) -> bool {
        if *event == Event::LanesEnded && self.step != Step::Idle {
            self.step = Step::Lost;
            return true;
        }
        let concerned = self.call.concerns(event);
        if let Some(end) = self.call.end(event) {
            let went_on = match self.step {
                Step::Acquire => self.acquired(now, agent, end),
                Step::Queue => self.looked(now, agent, end),
                Step::Release => self.released(now, agent, &end),
                Step::Idle | Step::Held(_) | Step::Lost => Ok(()),
            };
            if let Err(refused) = went_on {
                self.refused(now, refused);
            }
        }
        concerned
    }

    /// The agent takes nothing more: without lanes the session is over, else it is tried later.
    fn refused(&mut self, now: u64, refused: Refused) {
        match refused {
            Refused::NoLanes => self.step = Step::Lost,
            _ => self.next_poll = now.saturating_add(self.poll_us),
        }
    }

    fn acquired(&mut self, now: u64, agent: &mut Agent, end: End) -> Result<(), Refused> {
        let answer = match end {
            End::Answered(answer) => answer,
            End::Never if now >= self.wait.deadline() => {
                self.over(Denied::TimedOut);
                return Ok(());
            }
            End::Never => return self.ask(now, agent),
            End::Lost | End::Clash => {
                self.step = Step::Lost;
                return Ok(());
            }
        };
        match answer.outcome {
            Outcome::Done => self.step = Step::Held(answer.token),
            Outcome::Queued => {
                self.step = Step::Queue;
                self.next_poll = now.saturating_add(self.poll_us);
            }
            Outcome::Taken => self.over(Denied::Taken),
            Outcome::WrongKind => self.over(Denied::WrongKind),
            _ => self.over(Denied::Full),
        }
        Ok(())
    }

    fn over(&mut self, denied: Denied) {
        self.denied = Some(denied);
        self.step = Step::Idle;
    }

    /// Takes the record's view of the queue.
    fn looked(&mut self, now: u64, agent: &mut Agent, end: End) -> Result<(), Refused> {
        self.next_poll = now.saturating_add(self.poll_us);
        let answer = match end {
            End::Answered(answer) => answer,
            End::Never => return Ok(()),
            End::Lost | End::Clash => {
                self.step = Step::Lost;
                return Ok(());
            }
        };
        let lock = answer.record.as_ref().and_then(crate::Record::lock);
        match lock {
            Some(lock) if lock.owner == self.owner => self.step = Step::Held(lock.token),
            Some(lock) if lock.waiters.contains(&self.owner) => {}
            _ => return self.ask(now, agent),
        }
        Ok(())
    }

    fn released(&mut self, now: u64, agent: &mut Agent, end: &End) -> Result<(), Refused> {
        match end {
            End::Never => return self.let_go(now, agent),
            End::Lost => self.step = Step::Lost,
            End::Answered(_) | End::Clash => self.step = Step::Idle,
        }
        Ok(())
    }

    /// Does what is due at `now`: a look at the queue, or the end of waiting.
    pub fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        let waits = matches!(self.step, Step::Acquire | Step::Queue);
        let went_on = if waits && now >= self.wait.deadline() {
            self.denied = Some(Denied::TimedOut);
            self.call.cancel(now, agent);
            self.let_go(now, agent)
        } else if now < self.next_poll || self.call.is_busy() {
            Ok(())
        } else {
            match self.step {
                Step::Queue => {
                    let read = Operation::read(self.place.clone());
                    self.call.begin(now, agent, read)
                }
                // The agent was full when they were due.
                Step::Acquire => self.ask(now, agent),
                Step::Release => self.let_go(now, agent),
                Step::Idle | Step::Held(_) | Step::Lost => Ok(()),
            }
        };
        if let Err(refused) = went_on {
            self.refused(now, refused);
        }
    }

    /// When [`Mutex::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        let polls = !self.call.is_busy()
            && matches!(self.step, Step::Acquire | Step::Queue | Step::Release);
        let poll = polls.then_some(self.next_poll);
        let waits = matches!(self.step, Step::Acquire | Step::Queue);
        let deadline = Some(self.wait.deadline()).filter(|end| waits && *end != u64::MAX);
        poll.into_iter().chain(deadline).min()
    }
}
