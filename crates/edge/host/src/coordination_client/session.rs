//! A client with a session.

use std::io;

use stateplane_coordination::{
    Agent, ConnectionEvent, Event, Lanes, Refused, Session, SessionSettings, SessionState,
};

use super::{Client, Opened};

/// A client with a session, which it keeps alive as long as [`step`](SessionClient::step) is called.
#[derive(Debug)]
pub struct SessionClient {
    client: Client,
    session: Session,
    lanes: Lanes,
}

impl SessionClient {
    /// Opens the session of a client that has lanes.
    ///
    /// # Errors
    ///
    /// The agent takes no operation, or there are no lanes.
    pub fn open(mut client: Client, opened: &Opened) -> Result<SessionClient, Refused> {
        let lanes = opened.lanes.ok_or(Refused::NoLanes)?;
        let now = client.now();
        let agent = client.connection().agent().ok_or(Refused::NoLanes)?;
        let session = Session::open(now, agent, SessionSettings::new(opened.ttl_us))?;
        Ok(SessionClient {
            client,
            session,
            lanes,
        })
    }

    /// The time, in µs.
    pub fn now(&self) -> u64 {
        self.client.now()
    }

    /// The session's lanes, and its number.
    pub fn lanes(&self) -> Lanes {
        self.lanes
    }

    /// How far the session may be trusted.
    pub fn state(&self) -> SessionState {
        self.session.state()
    }

    /// The agent, to which operations are submitted.
    ///
    /// # Panics
    ///
    /// Never: a client has its agent from before its session on.
    pub fn agent(&mut self) -> &mut Agent {
        let agent = self.client.connection().agent();
        agent.expect("a session is opened through an agent")
    }

    /// Waits until a message comes, something is due, or `until`; gives the events to `handle`, with
    /// the time.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn step(
        &mut self,
        until: u64,
        mut handle: impl FnMut(u64, &mut Agent, &Event),
    ) -> io::Result<()> {
        let due = self.session.poll_timeout().unwrap_or(until).min(until);
        self.client.step(due)?;
        let now = self.client.now();
        while let Some(event) = self.client.poll_event() {
            if let (ConnectionEvent::Agent(event), Some(agent)) =
                (event, self.client.connection().agent())
            {
                self.session.handle_event(now, agent, &event);
                handle(now, agent, &event);
            }
        }
        if let Some(agent) = self.client.connection().agent() {
            self.session.handle_timeout(now, agent);
        }
        Ok(())
    }

    /// Waits until the session is more than asked for, or `end`; true if it is connected.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn wait_connected(&mut self, end: u64) -> io::Result<bool> {
        while self.state() == SessionState::Opening && self.now() < end {
            self.step(end, |_, _, _| ())?;
        }
        Ok(self.state() == SessionState::Connected)
    }

    /// Ends the session, and waits for that until `end`. A session that is not ended here is ended
    /// by a reaper.
    pub fn close(&mut self, end: u64) {
        let now = self.client.now();
        let Some(agent) = self.client.connection().agent() else {
            return;
        };
        if self.session.close(now, agent).is_err() {
            return;
        }
        let over = |state| matches!(state, SessionState::Closed | SessionState::Lost);
        while !over(self.state()) && self.now() < end && self.step(end, |_, _, _| ()).is_ok() {}
    }
}
