//! Clients: an agent each, what it asks, and what its answers are in a history.

use crate::options::Rule;
use crate::places::{CONTROLLER, client_address, switch_socket};
use crate::reaping::Reaping;
use crate::scenario::Scenario;
use crate::subscriber::Subscriber;
use core::net::SocketAddrV4;
use stateplane_apps::coordination::{self, Listing, Progress};
use stateplane_apps::datagram::frame;
use stateplane_coordination::{
    Action, Agent, Chain, Delete, Event, Fate, Guard, Lanes, Operation, Owner, Place, Reading,
    Session, SessionSettings, SessionState, Settings, Ticket, When, Write,
};
use stateplane_history::Object;
use stateplane_history::coordination::{
    Asked, Condition, CoordinationEvent, EventKind, Guard as Guarded, Holder, Request, Response,
};
use stateplane_wire::coordination::Key;
use stateplane_wire::coordination_control::{self as control, Learn, Message};
use stateplane_world::{Node, NodePort, Random};
use std::collections::BTreeMap;

/// Lanes of each client.
const LANES: u16 = 4;

/// The session of a client, and its lanes.
pub(crate) fn lanes_of(client: usize) -> Lanes {
    Lanes {
        session: client as u32 + 1,
        first: LANES * client as u16,
        count: LANES,
        // Lanes that had other sessions before, of which the groups know nothing (rule 19).
        incarnation: client as u16 % 3,
    }
}

/// A record that a client may ask for: its group, and its key there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) group: u16,
    pub(crate) lock: bool,
    pub(crate) number: u8,
}

impl Name {
    fn key(self) -> Key {
        let mut key = [0; 16];
        // Keys differ in few bits, which the hash has to tell apart.
        key[0] = 1 + u8::from(self.lock);
        key[15] = self.number;
        Key(key)
    }

    fn object(self) -> Object {
        let letter = if self.lock { 'l' } else { 'k' };
        Object::new(&format!("{letter}{}", self.number))
    }
}

/// True of a key that histories name.
pub(crate) fn is_named(key: Key) -> bool {
    let Key(bytes) = key;
    [1, 2].contains(&bytes[0]) && bytes[1..15].iter().all(|byte| *byte == 0)
}

/// Name in histories of the record with a key.
pub(crate) fn object_of(key: Key) -> Object {
    let Key(bytes) = key;
    let name = Name {
        group: 0,
        lock: bytes[0] == 2,
        number: bytes[15],
    };
    name.object()
}

/// Name of a group in histories.
pub(crate) fn group_name(group: u16) -> Object {
    Object::new(&format!("g{group}"))
}

/// An operation that has not ended for good.
#[derive(Clone, Copy)]
struct Pending {
    operation: u64,
    group: u16,
    /// The chain numbers it.
    numbered: bool,
    /// It acquires or releases.
    locks: bool,
    /// When it began.
    begun: u64,
    /// The group's generation that the client knew then.
    generation: u16,
}

/// A client.
pub(crate) struct ClientNode {
    pub(crate) agent: Agent,
    client: usize,
    /// Operations that have not ended for good, by ticket.
    asked: BTreeMap<Ticket, Pending>,
    /// Newest number that it saw of each record.
    numbers: BTreeMap<Name, u64>,
    records: BTreeMap<Ticket, Name>,
    /// Version of the chains that the controller told, and which start of it.
    learnt: (u32, u64),
    wanted: bool,
    /// The session that it opens when it begins, if sessions end.
    opens: Option<SessionSettings>,
    session: Option<Session>,
    /// The reaper, if it is that.
    pub(crate) reaping: Option<Reaping>,
    /// Its watches, if it watches groups.
    subscriber: Option<Subscriber>,
    /// Its list under way.
    listing: Option<Listing>,
    pub(crate) notes: Vec<EventKind>,
}

impl ClientNode {
    pub(crate) fn new(
        client: usize,
        scenario: &Scenario,
        without: Option<Rule>,
        seed: u64,
    ) -> Self {
        let settings = Settings {
            deadline_us: scenario.deadline,
            learn_us: 5_000,
            ..Settings::new(client_address(client), scenario.groups.into())
        };
        let mut agent = Agent::new(settings, seed);
        agent.set_lanes(lanes_of(client));
        let clients = usize::from(scenario.clients);
        let opens =
            (scenario.ttl > 0 && client < clients).then(|| SessionSettings::new(scenario.ttl));
        let reaping = (client >= clients).then(|| {
            let sessions = (0..clients).map(lanes_of);
            Reaping::new(Self::node(client), scenario.ttl, sessions)
        });
        Self {
            agent,
            client,
            asked: BTreeMap::new(),
            numbers: BTreeMap::new(),
            records: BTreeMap::new(),
            learnt: (0, 0),
            wanted: true,
            opens,
            session: None,
            reaping,
            subscriber: (client < scenario.watchers.into())
                .then(|| Subscriber::new(Self::node(client), scenario, without)),
            listing: None,
            notes: Vec::new(),
        }
    }

    /// True if it believes at `now` that nobody ends its session.
    pub(crate) fn is_safe(&self, now: u64) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| {
            session.state() == SessionState::Connected && now < session.valid_until()
        })
    }

    /// Ends its watches for a time.
    pub(crate) fn pause_watches(&mut self, now: u64) {
        if let Some(subscriber) = &mut self.subscriber {
            subscriber.pause(now, &mut self.agent);
        }
    }

    /// Goes on with its watches.
    pub(crate) fn resume_watches(&mut self) {
        if let Some(subscriber) = &mut self.subscriber {
            subscriber.resume();
        }
    }

    /// Ends the watch of a group in the history, [`Subscriber::end`]; true of a client without.
    pub(crate) fn end_watch(&mut self, group: u16, newest: Option<u64>) -> bool {
        let subscriber = self.subscriber.as_ref();
        subscriber.is_none_or(|subscriber| subscriber.end(group, newest, &mut self.notes))
    }

    /// Number of the client in histories.
    pub(crate) fn node(client: usize) -> u32 {
        100 + client as u32
    }

    /// True once after the agent wanted a chain.
    pub(crate) fn wants_chains(&mut self) -> bool {
        core::mem::take(&mut self.wanted)
    }

    /// The question to the controller for chains.
    pub(crate) fn question(&self) -> Vec<u8> {
        let learn = Learn {
            controller: self.learnt.0,
            version: self.learnt.1,
            group: 0,
            room: control::room_for_chains(control::MOST_ROWS),
        };
        let bytes = Message::Learn(learn).to_vec();
        frame(client_address(self.client), CONTROLLER, &bytes)
    }

    /// Takes the controller's answer.
    pub(crate) fn chains(&mut self, now: u64, bytes: &[u8]) {
        let Ok(Message::Chains {
            controller,
            version,
            next,
            chains,
            ..
        }) = Message::parse(bytes)
        else {
            return;
        };
        if next == control::END_OF_GROUPS {
            self.learnt = (controller, version);
        }
        for row in chains {
            let mut members: Vec<_> = row.switches().collect();
            let joining = match row.flags & control::JOINS {
                0 => None,
                _ => members.pop(),
            };
            let chain = Chain {
                group: row.group,
                generation: row.generation,
                epoch: row.epoch,
                members,
                joining,
            };
            self.agent.learn(now, chain);
        }
    }

    /// The newest generation of a group that it knows, 0 for none.
    fn generation(&self, group: u16) -> u16 {
        self.agent.chain(group).map_or(0, |chain| chain.generation)
    }

    /// Begins the operation that `draw` gives. `number` names it, and makes its value unlike all
    /// others; `until` is the true time by which it ends.
    pub(crate) fn begin(
        &mut self,
        now: u64,
        scenario: &Scenario,
        number: u64,
        draw: u64,
        until: u64,
    ) {
        let mut random = Random::new(draw);
        if scenario.lists > 0 && random.permille(scenario.lists) {
            return self.begin_list(now, scenario, number, &mut random);
        }
        let (name, operation, request) = self.drawn(scenario, number, until, &mut random);
        let numbered = operation.action.is_numbered();
        let Ok(ticket) = self.agent.submit(now, operation) else {
            return;
        };
        let locks = matches!(request.asked, Asked::Acquire(_) | Asked::Release);
        let pending = Pending {
            generation: self.generation(name.group),
            operation: number,
            group: name.group,
            numbered,
            locks,
            begun: now,
        };
        self.asked.insert(ticket, pending);
        self.records.insert(ticket, name);
        self.notes.push(EventKind::Call {
            node: Self::node(self.client),
            object: group_name(name.group),
            operation: number,
            request,
        });
    }

    /// Begins a list of a group's records, unless one is under way.
    fn begin_list(&mut self, now: u64, scenario: &Scenario, number: u64, random: &mut Random) {
        if self.listing.is_some() {
            return;
        }
        let group = random.place(scenario.groups.into()) as u16;
        let reading = if random.permille(scenario.leased) {
            Reading::Leased
        } else {
            Reading::Chain
        };
        let begun = Listing::begin(now, &mut self.agent, (group, number), reading);
        if let Some((listing, progress)) = begun {
            self.notes.push(self.scanned(&listing, progress));
            self.listing = Some(listing);
        }
    }

    /// Progress of a list as a history has it. Records that histories do not name are none.
    fn scanned(&self, listing: &Listing, progress: Progress) -> EventKind {
        let progress = progress.of_named(is_named);
        let (key, seen) = progress.record.unzip();
        EventKind::Of(CoordinationEvent::Scanned {
            node: Self::node(self.client),
            group: group_name(listing.group),
            list: listing.number,
            scanned: progress.scanned,
            number: progress.number,
            key: key.map(object_of),
            seen,
        })
    }

    fn drawn(
        &self,
        scenario: &Scenario,
        number: u64,
        until: u64,
        random: &mut Random,
    ) -> (Name, Operation, Request) {
        let group = random.place(scenario.groups.into()) as u16;
        let lock = scenario.locks > 0 && (scenario.keys == 0 || random.permille(350));
        let count = if lock { scenario.locks } else { scenario.keys };
        let name = Name {
            group,
            lock,
            number: random.place(usize::from(count).max(1)) as u8,
        };
        let place = Place::within(group, name.key());
        let owner = Owner {
            session: self.client as u32 + 1,
            handle: random.place(2) as u32,
        };
        let known = |name: Name| self.numbers.get(&name).copied().unwrap_or(0);
        let mut token = 0;
        let mut guard = None;
        let (action, asked) = if random.permille(scenario.reads) {
            let reading = if random.permille(scenario.leased) {
                Reading::Leased
            } else {
                Reading::Chain
            };
            (Action::Read(reading), Asked::Read)
        } else if lock && !random.permille(40) {
            if random.permille(450) {
                (Action::Release { owner }, Asked::Release)
            } else {
                let wait = random.permille(400);
                (Action::Acquire { owner, wait }, Asked::Acquire(wait))
            }
        } else {
            if random.permille(150) && scenario.locks > 0 {
                let lock = Name {
                    group,
                    lock: true,
                    number: random.place(scenario.locks.into()) as u8,
                };
                let at = known(lock);
                let (key, of) = (lock.key(), lock.object());
                let (guarded, condition) = match random.place(4) {
                    0 => (Guard::Absent(key), Condition::Absent),
                    1 => (Guard::Present(key), Condition::Present),
                    2 => (Guard::Number(key, at), Condition::Number(at)),
                    _ => (Guard::Token(key, at), Condition::Token(at)),
                };
                guard = Some((guarded, Guarded { key: of, condition }));
            }
            if random.permille(100) {
                token = known(name).saturating_sub(random.between(0, 3));
            }
            let (when, condition) = match random.place(9) {
                0 => (When::Absent, Condition::Absent),
                1 => (When::Present, Condition::Present),
                2 | 3 => (When::Number(known(name)), Condition::Number(known(name))),
                4 => {
                    let value = value(number.saturating_sub(random.between(1, 8)), 8);
                    let condition = Condition::Value(value.as_slice().into());
                    (When::Value(value), condition)
                }
                _ => (When::Always, Condition::None),
            };
            let guarded = guard.as_ref().map(|(guarded, _)| *guarded);
            if random.permille(250) {
                let delete = Delete {
                    when,
                    guard: guarded,
                    token,
                };
                (Action::Delete(delete), Asked::Delete(condition))
            } else {
                let lengths = [8, 8, 8, 16, 17, 64, 128, 129, 1024];
                let value = value(number, lengths[random.place(lengths.len())]);
                let asked = Asked::Write(value.as_slice().into(), condition);
                let write = Write {
                    value,
                    when,
                    guard: guarded,
                    token,
                    session: if scenario.ttl > 0 && random.permille(400) {
                        owner.session
                    } else {
                        0
                    },
                };
                (Action::Write(write), asked)
            }
        };
        let holder = Holder {
            session: owner.session,
            handle: owner.handle,
        };
        let request = Request {
            key: name.object(),
            asked,
            token,
            guard: guard.map(|(_, guard)| guard),
            holder,
            // Who stands still ends nothing in time.
            until: (scenario.freezes == 0).then_some(until),
        };
        (name, Operation::new(place, action), request)
    }

    /// An operation that began before `time`, of which it never learnt what became.
    pub(crate) fn unresolved(&self, time: u64) -> Option<u64> {
        let mut pending = self.asked.values();
        let found = pending.find(|pending| pending.numbered && pending.begun < time);
        found.map(|pending| pending.operation)
    }

    /// Notes what the agent and the watches tell.
    pub(crate) fn listen(&mut self, now: u64) {
        if let Some(settings) = self.opens.take() {
            self.session = Session::open(now, &mut self.agent, settings).ok();
        }
        self.take_events(now);
        if let Some(subscriber) = &mut self.subscriber {
            subscriber.handle_timeout(now, &mut self.agent);
        }
        if let Some(session) = &mut self.session
            && session.poll_timeout().is_some_and(|due| due <= now)
        {
            session.handle_timeout(now, &mut self.agent);
        }
        if let Some(reaping) = &mut self.reaping {
            reaping.handle_timeout(now, &mut self.agent);
        }
        // It may ask for chains.
        self.take_events(now);
    }

    fn take_events(&mut self, now: u64) {
        while let Some(event) = self.agent.poll_event() {
            if let Some(subscriber) = &mut self.subscriber {
                subscriber.handle_event(now, &event, &mut self.notes);
            }
            if let Some(session) = &mut self.session {
                session.handle_event(now, &mut self.agent, &event);
            }
            if let Some(reaping) = &mut self.reaping {
                reaping.handle_event(now, &mut self.agent, &event);
            }
            if let Some(mut listing) = self.listing.take() {
                for progress in listing.handle_event(now, &mut self.agent, &event) {
                    self.notes.push(self.scanned(&listing, progress));
                }
                self.listing = (!listing.is_over()).then_some(listing);
            }
            let Some(ticket) = event.ticket() else {
                self.wanted |= matches!(event, Event::ChainWanted { .. });
                if event == Event::LanesEnded {
                    // It asks for nothing from here on.
                    let node = Self::node(self.client);
                    self.notes.push(EventKind::Died { node });
                }
                continue;
            };
            let Some(pending) = self.asked.get(&ticket) else {
                continue;
            };
            let Pending {
                operation,
                group,
                numbered,
                locks,
                generation,
                ..
            } = *pending;
            let (node, object) = (Self::node(self.client), group_name(group));
            let unknown = EventKind::Of(CoordinationEvent::Unknown {
                node,
                group: object.clone(),
                operation,
                before: None,
            });
            let returned = |response| EventKind::Return {
                node,
                object: object.clone(),
                operation,
                response,
            };
            let ends = matches!(event, Event::Failed { .. });
            let note = match event {
                Event::Answered { answer, .. } => {
                    if let Some(name) = self.records.get(&ticket) {
                        let seen = answer.record.as_ref().map_or(answer.number, |of| of.number);
                        let shown = if answer.token != 0 {
                            answer.token
                        } else {
                            seen
                        };
                        let number = self.numbers.entry(*name).or_default();
                        *number = (*number).max(shown);
                    }
                    returned(coordination::response(&answer, numbered, locks))
                }
                Event::Resolved { fate, .. } => match fate {
                    Fate::Executed {
                        outcome, number, ..
                    } => returned(Response {
                        outcome: coordination::outcome(outcome),
                        number,
                        token: None,
                        seen: None,
                    }),
                    Fate::Never => returned(coordination::never()),
                    Fate::Lost => {
                        let known = self.generation(group);
                        self.asked.remove(&ticket);
                        // Lanes that end with a session lose operations of any generation.
                        if known == generation || self.session.is_some() {
                            continue;
                        }
                        EventKind::Of(CoordinationEvent::Unknown {
                            node,
                            group: object.clone(),
                            operation,
                            before: Some(known),
                        })
                    }
                },
                // A read has no effect; of a write nobody will hear.
                Event::Expired { .. } if !numbered => unknown,
                Event::Expired { .. } => returned(coordination::never()),
                Event::Unknown { .. } | Event::Failed { .. } => unknown,
                Event::Entry { .. } | Event::ChainWanted { .. } | Event::LanesEnded => continue,
            };
            if ends || matches!(note, EventKind::Return { .. }) {
                self.asked.remove(&ticket);
                self.records.remove(&ticket);
            }
            self.notes.push(note);
        }
    }
}

impl Node for ClientNode {
    type Message = Vec<u8>;
    type Transmit = (SocketAddrV4, Vec<u8>);

    fn handle_message(&mut self, now: u64, _: u16, _: NodePort, bytes: Vec<u8>) {
        if let Some(reaping) = &mut self.reaping {
            reaping.receives(&bytes, &mut self.notes);
        }
        self.agent
            .handle_datagram(now, switch_socket(0), bytes.as_slice());
    }

    fn handle_timeout(&mut self, now: u64) {
        self.agent.handle_timeout(now);
    }

    fn poll_transmit(&mut self, _: u64) -> Option<Self::Transmit> {
        let transmit = self.agent.poll_transmit();
        if let (Some(reaping), Some((_, bytes))) = (&mut self.reaping, &transmit) {
            reaping.sends(bytes, &mut self.notes);
        }
        transmit
    }

    fn poll_timeout(&self) -> Option<u64> {
        let watches = self.subscriber.as_ref().and_then(Subscriber::poll_timeout);
        let session = self.session.as_ref().and_then(Session::poll_timeout);
        let reaping = self.reaping.as_ref().and_then(Reaping::poll_timeout);
        let all = [self.agent.poll_timeout(), watches, session, reaping];
        all.into_iter().flatten().min()
    }
}

/// The value of operation `number`.
fn value(number: u64, length: usize) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    bytes.into_iter().cycle().take(length).collect()
}
