//! Sessions: a client's life as the chains see it (rule 19).

use stateplane_wire::coordination::{Key, Outcome};

use crate::call::{Call, End};
use crate::name::key_of_recipe;
use crate::{Action, Agent, Event, Lane, Lanes, Operation, Place, Refused, When, Write};

/// The letter of the keys of sessions.
const LETTER: u8 = b'S';

/// The value of a session's record: its lanes, and whether somebody is ending it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRecord {
    /// The session and its lanes.
    pub lanes: Lanes,
    /// A reaper ends the session.
    pub ending: bool,
}

impl SessionRecord {
    /// The bytes of the value: session 4, first lane 2, lanes 2, incarnation 2, ending 1, which is
    /// short enough for a condition.
    pub fn bytes(&self) -> [u8; 11] {
        let mut bytes = [0; 11];
        bytes[..4].copy_from_slice(&self.lanes.session.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.lanes.first.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.lanes.count.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.lanes.incarnation.to_be_bytes());
        bytes[10] = self.ending.into();
        bytes
    }

    /// Reads the value of a session's record; `None` if it is none.
    pub fn parse(value: &[u8]) -> Option<SessionRecord> {
        let bytes: &[u8; 11] = value.try_into().ok()?;
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        (bytes[10] <= 1).then(|| SessionRecord {
            lanes: Lanes {
                session: u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
                first: short(4),
                count: short(6),
                incarnation: short(8),
            },
            ending: bytes[10] == 1,
        })
    }

    /// Place of the record of `session`.
    pub fn place(session: u32) -> Place {
        Place::of(SessionRecord::key(session))
    }

    /// The record's key.
    pub fn key(session: u32) -> Key {
        key_of_recipe(LETTER, &[&session.to_be_bytes()])
    }
}

/// How long a session lives without a keepalive. Times are µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSettings {
    /// Time without a keepalive after which a reaper may end the session.
    pub ttl_us: u64,
    /// Time between two keepalives.
    pub keepalive_us: u64,
    /// Most by which clocks of client and reaper differ in speed, in millionths.
    pub clock_ppm: u32,
}

impl SessionSettings {
    /// Settings with keepalives at each fifth of the TTL, for clocks within 1 %.
    pub fn new(ttl_us: u64) -> SessionSettings {
        SessionSettings {
            ttl_us,
            keepalive_us: ttl_us / 5,
            clock_ppm: 10_000,
        }
    }

    /// The TTL by the client's clock that ends before that of any reaper.
    pub fn shrunk_us(&self) -> u64 {
        let shrink = u128::from(self.ttl_us) * u128::from(self.clock_ppm) / 1_000_000;
        self.ttl_us.saturating_sub(shrink as u64)
    }
}

/// State of a session, as its client knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// Its record is being made. What the session owns must wait.
    Opening,
    /// The last keepalive was answered in time: until [`Session::valid_until`] nobody ends the
    /// session, if clocks are within their bound.
    Connected,
    /// Keepalives go unanswered. The session may live on.
    Suspended,
    /// The session was ended, or may have been: its TTL passed. What it owned is, or will be,
    /// released. The state is final.
    Lost,
    /// The client ended the session.
    Closed,
}

/// A session: it makes its record, keeps it alive, and says what became of it.
///
/// The agent has the session's lanes; all that is owned by the session is written on them.
///
/// ```
/// # #[allow(dead_code)]
/// # mod chain { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain/mod.rs")); }
/// use stateplane_coordination::{Session, SessionSettings, SessionState};
///
/// # let mut service = chain::Service::new();
/// # let mut agent = service.agent(4);
/// // The agent has lanes from the controller, and its datagrams go to the switches.
/// let mut session = Session::open(0, &mut agent, SessionSettings::new(10_000_000))?;
/// for event in service.events(&mut agent) {
///     session.handle_event(0, &mut agent, &event);
/// }
/// assert_eq!(session.state(), SessionState::Connected);
/// // The next keepalive is due at a fifth of the TTL, which counts, shrunk, from the first one.
/// assert_eq!(session.poll_timeout(), Some(2_000_000));
/// assert_eq!(session.valid_until(), 9_900_000);
/// # Ok::<(), stateplane_coordination::Refused>(())
/// ```
#[derive(Debug)]
pub struct Session {
    settings: SessionSettings,
    lanes: Lanes,
    state: SessionState,
    call: Call,
    /// When the keepalive under way was submitted.
    asked_at: u64,
    /// When the next keepalive is due.
    next: u64,
    valid_until: u64,
    closes: bool,
}

impl Session {
    /// Opens a session on the agent's lanes.
    ///
    /// # Errors
    ///
    /// [`Refused`], as of [`Agent::submit`].
    pub fn open(
        now: u64,
        agent: &mut Agent,
        settings: SessionSettings,
    ) -> Result<Session, Refused> {
        let lanes = agent.lanes().ok_or(Refused::NoLanes)?;
        let mut session = Session {
            settings,
            lanes,
            state: SessionState::Opening,
            call: Call::default(),
            asked_at: now,
            next: now.saturating_add(settings.keepalive_us),
            valid_until: now.saturating_add(settings.shrunk_us()),
            closes: false,
        };
        session.write(now, agent, false, When::Absent)?;
        agent.session_opens();
        Ok(session)
    }

    /// Number of the session.
    pub fn id(&self) -> u32 {
        self.lanes.session
    }

    /// Its state. It changes in `handle_event` and `handle_timeout` alone.
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// Time, of the client's clock, until which nobody ends the session.
    pub fn valid_until(&self) -> u64 {
        self.valid_until
    }

    fn live(&self) -> [u8; 11] {
        SessionRecord {
            lanes: self.lanes,
            ending: false,
        }
        .bytes()
    }

    fn write(
        &mut self,
        now: u64,
        agent: &mut Agent,
        ending: bool,
        when: When,
    ) -> Result<(), Refused> {
        let record = SessionRecord {
            lanes: self.lanes,
            ending,
        };
        let write = Write {
            value: record.bytes().to_vec(),
            when,
            session: self.lanes.session,
            ..Write::default()
        };
        let place = SessionRecord::place(self.lanes.session);
        let mut operation = Operation::new(place, Action::Write(write));
        operation.lane = Lane::Kept(0);
        self.asked_at = now;
        self.call.begin(now, agent, operation)
    }

    /// Ends the session: it marks the record, and a reaper does the rest. The state is
    /// [`SessionState::Closed`] once that is answered.
    ///
    /// # Errors
    ///
    /// [`Refused`], as of [`Agent::submit`].
    pub fn close(&mut self, now: u64, agent: &mut Agent) -> Result<(), Refused> {
        let live = self.live().to_vec();
        self.write(now, agent, true, When::Value(live))?;
        self.closes = true;
        Ok(())
    }

    /// Takes an event of the agent; true if it was the session's.
    pub fn handle_event(&mut self, now: u64, agent: &mut Agent, event: &Event) -> bool {
        if *event == Event::LanesEnded && self.is_alive() {
            self.state = SessionState::Lost;
            return true;
        }
        let concerned = self.call.concerns(event);
        match (self.call.end(event), event) {
            (Some(end), _) => self.ended(now, agent, end),
            (None, Event::Unknown { .. }) if concerned && self.is_alive() => self.suspend(),
            _ => {}
        }
        concerned
    }

    fn is_alive(&self) -> bool {
        !matches!(self.state, SessionState::Lost | SessionState::Closed)
    }

    fn suspend(&mut self) {
        if self.state == SessionState::Connected {
            self.state = SessionState::Suspended;
        }
    }

    fn ended(&mut self, now: u64, agent: &mut Agent, end: End) {
        if !self.is_alive() {
            return;
        }
        match end {
            End::Answered(answer) if answer.outcome == Outcome::Done && self.closes => {
                self.state = SessionState::Closed;
            }
            End::Answered(answer) if answer.outcome == Outcome::Done => {
                self.valid_until = self.asked_at.saturating_add(self.settings.shrunk_us());
                self.state = SessionState::Connected;
                agent.session_is_open(now);
                self.next = self.asked_at.saturating_add(self.settings.keepalive_us);
                self.handle_timeout(now, agent);
            }
            End::Answered(_) | End::Lost | End::Clash => self.state = SessionState::Lost,
            End::Never => {
                self.suspend();
                self.keep_alive(now, agent);
            }
        }
    }

    /// Writes the record as it is, on condition that it is that: a record that is gone is not
    /// made again, one that is marked stays marked.
    fn keep_alive(&mut self, now: u64, agent: &mut Agent) {
        let when = match self.state {
            SessionState::Opening => When::Absent,
            _ => When::Value(self.live().to_vec()),
        };
        self.next = now.saturating_add(self.settings.keepalive_us);
        let (when, ending) = if self.closes {
            (When::Value(self.live().to_vec()), true)
        } else {
            (when, false)
        };
        if self.write(now, agent, ending, when) == Err(Refused::NoLanes) {
            self.state = SessionState::Lost;
        }
    }

    /// Does what is due at `now`: a keepalive, or the end of the TTL.
    pub fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        if !self.is_alive() {
            return;
        }
        if now >= self.valid_until {
            self.state = SessionState::Lost;
        } else if now >= self.next {
            if self.call.is_busy() {
                self.suspend();
                self.next = now.saturating_add(self.settings.keepalive_us);
            } else {
                self.keep_alive(now, agent);
            }
        }
    }

    /// When [`Session::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.is_alive().then(|| self.next.min(self.valid_until))
    }
}
