//! A client that takes one lock.

use std::io;

use stateplane_coordination::{Denied, Hold, Mutex, Owner, Place, SessionState, Wait};

use super::SessionClient;

/// A session and a mutex of it (rules 20, 21).
#[derive(Debug)]
pub struct LockClient {
    session: SessionClient,
    mutex: Mutex,
}

impl LockClient {
    /// The lock at `place`, for the session.
    pub fn new(session: SessionClient, place: Place) -> LockClient {
        let owner = Owner {
            session: session.lanes().session,
            handle: 1,
        };
        LockClient {
            session,
            mutex: Mutex::new(place, owner),
        }
    }

    /// The session.
    pub fn session(&mut self) -> &mut SessionClient {
        &mut self.session
    }

    /// How far the session may be trusted.
    pub fn state(&self) -> SessionState {
        self.session.state()
    }

    /// True if the lock may be another's though this client took it.
    pub fn is_lost(&self) -> bool {
        self.session.state() == SessionState::Lost || self.mutex.hold() == Hold::Lost
    }

    /// Waits until a message comes, something is due, or `until`.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn step(&mut self, until: u64) -> io::Result<()> {
        let mutex = &mut self.mutex;
        let due = mutex.poll_timeout().unwrap_or(until).min(until);
        self.session.step(due, |now, agent, event| {
            mutex.handle_event(now, agent, event);
        })?;
        let now = self.session.now();
        mutex.handle_timeout(now, self.session.agent());
        Ok(())
    }

    /// Begins to take the lock; [`attempt`](LockClient::attempt) tells how that goes.
    ///
    /// # Errors
    ///
    /// The agent takes no operation.
    pub fn begin(&mut self, wait: Wait) -> Result<(), Denied> {
        let now = self.session.now();
        self.mutex.acquire(now, self.session.agent(), wait)
    }

    /// The fencing token once the lock is held, the refusal once there is one, and nothing before.
    /// [`is_lost`](LockClient::is_lost) tells of the third end.
    pub fn attempt(&self) -> Option<Result<u64, Denied>> {
        if matches!(self.mutex.hold(), Hold::Waiting | Hold::Releasing) {
            return None;
        }
        let denied = self.mutex.denied().map(Err);
        self.mutex.token().map(Ok).or(denied)
    }

    /// Gives the lock back, or leaves its queue, and waits for that until `end`. A lock that is not
    /// given back here is free once a reaper has ended the session.
    pub fn release(&mut self, end: u64) {
        let now = self.session.now();
        _ = self.mutex.release(now, self.session.agent());
        let over = |lock: &LockClient| matches!(lock.mutex.hold(), Hold::Idle | Hold::Lost);
        while !over(self) && self.session.now() < end && self.step(end).is_ok() {}
    }
}
