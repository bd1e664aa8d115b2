//! An agent with its controller: chains, and a session's lanes.

use core::net::SocketAddrV4;
use std::collections::VecDeque;

use stateplane_random::Random;
use stateplane_wire::coordination_control::{
    self as control, END_OF_GROUPS, END_OF_SESSIONS, Learn, MOST_ROWS, Message, Opened,
    room_for_chains, room_for_sessions,
};

use crate::{Agent, Chain, Event, Lanes, Settings};

/// Time between two requests for what changed while nothing asks for it, in µs.
const REFRESH_US: u64 = 1_000_000;

/// Least and most time before a request to the controller is repeated, in µs.
const REPEAT_US: (u64, u64) = (10_000, 500_000);

/// Most events that wait to be taken, after which lists of sessions are dropped.
const MOST_EVENTS: usize = 1_024;

/// Event of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// The number of groups is known, and with it the agent.
    Known,
    /// The controller gave a session with lanes; the agent has them.
    Opened {
        /// The session and its lanes, perhaps fewer than wanted.
        lanes: Lanes,
        /// Time in µs without a keepalive after which the session may be ended.
        ttl_us: u64,
    },
    /// The controller has no lanes to give. It is asked again.
    NoLanes,
    /// Something of the agent's.
    Agent(Event),
    /// A part of the list of sessions that are not closed, in the order of their numbers.
    Sessions {
        /// Their lanes, and the time in µs since the controller knows of each.
        sessions: Vec<(Lanes, u64)>,
        /// Time in µs without a keepalive after which a session may be ended.
        ttl_us: u64,
        /// The list goes on at this session.
        next: Option<u32>,
    },
    /// The controller took note that a session ended.
    Closed {
        /// The session.
        session: u32,
    },
}

/// A request to the controller that is repeated until it is answered.
#[derive(Debug)]
struct Asked {
    message: Message,
    backoff: u64,
    due: u64,
}

/// An agent, and the messages by which it learns chains and gets lanes.
///
/// All controllers are asked in turn; any of them answers.
#[derive(Debug)]
pub struct Connection {
    controllers: Vec<SocketAddrV4>,
    turn: usize,
    settings: Settings,
    seed: u64,
    random: Random,
    agent: Option<Agent>,
    /// Lanes wanted, 0 for none, and the nonce of the request.
    lanes: u16,
    nonce: u64,
    /// Which start of the controller counted `version`.
    controller: u32,
    version: u64,
    /// The version of a list whose rows come in several answers.
    partial: Option<(u32, u64)>,
    learns: Option<Asked>,
    opens: Option<Asked>,
    lists: Option<Asked>,
    closes: Option<Asked>,
    refresh: u64,
    outbox: VecDeque<(SocketAddrV4, Vec<u8>)>,
    events: VecDeque<ConnectionEvent>,
    malformed: u64,
}

impl Connection {
    /// A connection that asks `controllers`, at least one, for all chains, and for a session with
    /// `lanes` lanes, if that is not 0. The number of groups in `settings` does not matter: the
    /// controller says it. `seed` must be another for each connection.
    pub fn new(
        now: u64,
        controllers: &[SocketAddrV4],
        settings: Settings,
        lanes: u16,
        seed: u64,
    ) -> Connection {
        let mut random = Random::new(seed);
        let mut connection = Connection {
            controllers: controllers.to_vec(),
            turn: 0,
            settings,
            seed: random.next(),
            nonce: random.next(),
            random,
            agent: None,
            lanes,
            controller: 0,
            version: 0,
            partial: None,
            learns: None,
            opens: None,
            lists: None,
            closes: None,
            refresh: now,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            malformed: 0,
        };
        connection.learn(now, 0);
        if lanes > 0 {
            connection.open(now);
        }
        connection
    }

    /// The agent, once the number of groups is known.
    pub fn agent(&mut self) -> Option<&mut Agent> {
        self.agent.as_mut()
    }

    /// Datagrams of the controller's kind that could not be read.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Asks for another session, after [`Event::LanesEnded`].
    pub fn open(&mut self, now: u64) {
        self.nonce = self.random.next();
        let (nonce, lanes) = (self.nonce, self.lanes.max(1));
        self.opens = self.ask(now, Message::Open { nonce, lanes });
    }

    /// Asks for the sessions from number `from` on that are not closed.
    pub fn list(&mut self, now: u64, from: u32) {
        let room = room_for_sessions(MOST_ROWS);
        self.lists = self.ask(
            now,
            Message::List {
                session: from,
                room,
            },
        );
    }

    /// Tells the controller that a session ended (rule 19). One is told after the other.
    pub fn close(&mut self, now: u64, lanes: Lanes) {
        let message = Message::Close(control::Lanes {
            session: lanes.session,
            first: lanes.first,
            count: lanes.count,
            incarnation: lanes.incarnation,
        });
        self.closes = self.ask(now, message);
    }

    /// True if the controller was not yet told of the last session that ended.
    pub fn is_closing(&self) -> bool {
        self.closes.is_some()
    }

    fn learn(&mut self, now: u64, group: u16) {
        self.refresh = now.saturating_add(REFRESH_US);
        let message = Message::Learn(Learn {
            controller: self.controller,
            version: self.version,
            group,
            room: room_for_chains(MOST_ROWS),
        });
        self.learns = self.ask(now, message);
    }

    fn ask(&mut self, now: u64, message: Message) -> Option<Asked> {
        let mut asked = Asked {
            message,
            backoff: REPEAT_US.0,
            due: now,
        };
        self.send(now, &mut asked);
        Some(asked)
    }

    fn send(&mut self, now: u64, asked: &mut Asked) {
        let spread = self.random.between(0, asked.backoff / 4);
        asked.due = now.saturating_add(asked.backoff + spread);
        asked.backoff = (2 * asked.backoff).min(REPEAT_US.1);
        if !self.controllers.is_empty() {
            let to = self.controllers[self.turn % self.controllers.len()];
            self.outbox.push_back((to, asked.message.to_vec()));
        }
    }

    fn asks(&mut self) -> [&mut Option<Asked>; 4] {
        [
            &mut self.learns,
            &mut self.opens,
            &mut self.lists,
            &mut self.closes,
        ]
    }

    /// Takes a datagram that came from `from`.
    pub fn handle_datagram(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        if !Message::is_one(bytes) {
            if let Some(agent) = &mut self.agent {
                agent.handle_datagram(now, from, bytes);
            }
            return;
        }
        let message = match Message::parse(bytes) {
            Ok(message) if self.controllers.contains(&from) => message,
            _ => {
                self.malformed += 1;
                return;
            }
        };
        match message {
            Message::Chains {
                controller,
                version,
                groups,
                next,
                chains,
                ..
            } => {
                self.learnt(now, (controller, version), groups, next, &chains);
            }
            Message::Opened(opened) => self.opened(now, &opened),
            Message::Ended { session } => {
                let asked = self.closes.as_ref().map(|asked| &asked.message);
                if matches!(asked, Some(Message::Close(lanes)) if lanes.session == session) {
                    self.closes = None;
                    self.events.push_back(ConnectionEvent::Closed { session });
                }
            }
            Message::Sessions {
                ttl_ms, next, rows, ..
            } => {
                if self.lists.take().is_none() || self.events.len() >= MOST_EVENTS {
                    return;
                }
                let lanes = |row: &control::Session| Lanes {
                    session: row.session,
                    first: row.first_lane,
                    count: row.count,
                    incarnation: row.lane_incarnation,
                };
                let age = |row: &control::Session| u64::from(row.age_ms) * 1_000;
                self.events.push_back(ConnectionEvent::Sessions {
                    sessions: rows.iter().map(|row| (lanes(row), age(row))).collect(),
                    ttl_us: u64::from(ttl_ms) * 1_000,
                    next: Some(next).filter(|next| *next != END_OF_SESSIONS),
                });
            }
            Message::Learn(_) | Message::Open { .. } | Message::Close(_) | Message::List { .. } => {
                self.malformed += 1;
            }
        }
    }

    fn know(&mut self, groups: u16) {
        if self.agent.is_none() && groups > 0 {
            let settings = Settings {
                groups,
                ..self.settings.clone()
            };
            self.agent = Some(Agent::new(settings, self.seed));
            self.events.push_back(ConnectionEvent::Known);
        }
    }

    fn learnt(
        &mut self,
        now: u64,
        version: (u32, u64),
        groups: u16,
        next: u16,
        chains: &[control::Chain],
    ) {
        if self.learns.take().is_none() {
            return;
        }
        self.know(groups);
        for row in chains.iter().filter(|row| row.flags & control::DOWN == 0) {
            let switches: Vec<_> = row.switches().collect();
            let members = usize::from(row.members).min(switches.len());
            let (members, joining) = switches.split_at(members);
            let chain = Chain {
                group: row.group,
                generation: row.generation,
                epoch: row.epoch,
                members: members.to_vec(),
                joining: joining.first().copied(),
            };
            if let Some(agent) = &mut self.agent {
                agent.learn(now, chain);
            }
        }
        // What changed while the list was asked for in parts is asked for by the version of its
        // first part.
        let version = *self.partial.get_or_insert(version);
        if next != END_OF_GROUPS {
            return self.learn(now, next);
        }
        (self.controller, self.version) = version;
        self.partial = None;
    }

    fn opened(&mut self, now: u64, opened: &Opened) {
        if self.opens.is_none() || opened.nonce != self.nonce {
            return;
        }
        self.know(opened.groups);
        if opened.session == 0 || opened.count == 0 {
            // The request stays, and is repeated.
            self.events.push_back(ConnectionEvent::NoLanes);
            return;
        }
        self.opens = None;
        let lanes = Lanes {
            session: opened.session,
            first: opened.first_lane,
            count: opened.count,
            incarnation: opened.lane_incarnation,
        };
        if let Some(agent) = &mut self.agent {
            agent.set_lanes(lanes);
        }
        let ttl_us = u64::from(opened.ttl_ms) * 1_000;
        self.events
            .push_back(ConnectionEvent::Opened { lanes, ttl_us });
        self.refresh = self.refresh.min(now.saturating_add(REFRESH_US));
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: u64) {
        if let Some(agent) = &mut self.agent {
            agent.handle_timeout(now);
        }
        for index in 0..4 {
            let slot = &mut *self.asks()[index];
            let Some(mut asked) = slot.take_if(|asked| asked.due <= now) else {
                continue;
            };
            // Another controller may lead or live.
            self.turn += 1;
            self.send(now, &mut asked);
            *self.asks()[index] = Some(asked);
        }
        if now >= self.refresh && self.learns.is_none() {
            self.partial = None;
            self.learn(now, 0);
        }
    }

    /// When [`Connection::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        let asks = [&self.learns, &self.opens, &self.lists, &self.closes];
        let refresh = self.learns.is_none().then_some(self.refresh);
        let agent = self.agent.as_ref().and_then(Agent::poll_timeout);
        asks.into_iter()
            .filter_map(|asked| asked.as_ref().map(|asked| asked.due))
            .chain(refresh)
            .chain(agent)
            .min()
    }

    /// The next datagram to send, and where to.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddrV4, Vec<u8>)> {
        let waiting = self.outbox.pop_front();
        waiting.or_else(|| self.agent.as_mut()?.poll_transmit())
    }

    /// The next event. `now` is the time at which a chain that is wanted is asked for.
    pub fn poll_event(&mut self, now: u64) -> Option<ConnectionEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        loop {
            match self.agent.as_mut()?.poll_event()? {
                Event::ChainWanted { .. } if self.learns.is_some() => {}
                Event::ChainWanted { .. } => {
                    self.partial = None;
                    self.learn(now, 0);
                }
                event => return Some(ConnectionEvent::Agent(event)),
            }
        }
    }
}
