// A chain of one switch in memory, read off `docs/coordination-protocol.md`: what agents are tested
// against here, in tests and in the examples of the documentation. Messages of switches among each
// other, and their loss, are the simulator's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};

use stateplane_coordination::{Agent, Chain, Event, Lanes, Settings};
use stateplane_wire::coordination::{
    Condition, Key, Kind, MessageType, Operation, Outcome, PORT, Packet, Repr, flag,
};

pub const SLOTS: u16 = 64;
pub const GROUPS: u16 = 4;
pub const SWITCH: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), PORT);

#[derive(Debug, Clone)]
pub struct Stored {
    pub kind: Kind,
    pub number: u64,
    pub token: u64,
    pub session: u32,
    pub value: Vec<u8>,
    pub slot: u16,
}

#[derive(Debug, Clone, Copy, Default)]
struct LaneState {
    incarnation: u16,
    request: u32,
    number: u64,
    kept: (u32, u64, u8, u64),
}

/// The switch and its clock.
#[derive(Default)]
pub struct Service {
    /// µs.
    pub now: u64,
    /// The switch's address, if it is not [`SWITCH`]'s.
    pub switch: Option<Ipv4Addr>,
    /// Requests that are lost from here on.
    pub lose_requests: u32,
    /// Replies that are lost from here on.
    pub lose_replies: u32,
    /// Requests that are refused with BUSY from here on.
    pub busy: u32,
    /// Groups that do not answer.
    pub down: BTreeSet<u16>,
    /// How often each group was founded anew.
    generations: BTreeMap<u16, u16>,
    pub records: BTreeMap<(u16, Key), Stored>,
    /// Entries with an effect, in their order: operation, lane and request.
    pub executed: Vec<(u8, u16, u32)>,
    /// Entries of groups that subscribers get, and answers to those who ask for older ones, which
    /// are lost from here on.
    pub lose_entries: u32,
    /// Entries that are known of each group; 0: 64.
    pub ring: u64,
    /// There is no place for a subscriber.
    pub full: bool,
    /// WATCH requests.
    pub watched: u32,
    pub subscribers: BTreeMap<(u16, SocketAddrV4), u32>,
    log: BTreeMap<(u16, u64), (Repr<'static>, Vec<u8>)>,
    /// Entries on their way.
    pub entries: VecDeque<(SocketAddrV4, Vec<u8>)>,
    lanes: BTreeMap<(u16, u16), LaneState>,
    numbers: BTreeMap<u16, u64>,
    next_lane: u16,
    sessions: u32,
}

impl Service {
    pub fn new() -> Service {
        Service::default()
    }

    /// An agent with `count` lanes of a session of its own, that knows all chains.
    pub fn agent(&mut self, count: u16) -> Agent {
        self.sessions += 1;
        let port = 40_000 + self.sessions as u16;
        let client = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), port);
        let mut agent = Agent::new(Settings::new(client, GROUPS), port.into());
        for group in 0..GROUPS {
            let generation = self.generations.get(&group).copied().unwrap_or_default();
            agent.learn(
                self.now,
                Chain {
                    generation,
                    ..chain(group)
                },
            );
        }
        agent.set_lanes(Lanes {
            session: self.sessions,
            first: self.next_lane,
            count,
            incarnation: 0,
        });
        self.next_lane += count;
        agent
    }

    /// Takes what the agent sends and gives it the replies, until both are quiet.
    pub fn exchange(&mut self, agent: &mut Agent) {
        while let Some((to, bytes)) = agent.poll_transmit() {
            assert_eq!(to.port(), PORT);
            if let Some((_, reply)) = self.handle(&bytes) {
                agent.handle_datagram(self.now, SWITCH, &reply);
            }
        }
        let own = agent.settings().client;
        let waiting = core::mem::take(&mut self.entries);
        let (own, others): (VecDeque<_>, _) = waiting.into_iter().partition(|(to, _)| *to == own);
        self.entries = others;
        for (_, entry) in own {
            agent.handle_datagram(self.now, SWITCH, &entry);
        }
    }

    /// Lets time pass until `end`, for one agent alone.
    pub fn run(&mut self, agent: &mut Agent, end: u64) {
        self.exchange(agent);
        while let Some(at) = agent.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            agent.handle_timeout(self.now);
            self.exchange(agent);
        }
        self.now = self.now.max(end);
    }

    /// All events, but those that ask for chains.
    pub fn events(&mut self, agent: &mut Agent) -> Vec<Event> {
        self.exchange(agent);
        std::iter::from_fn(|| agent.poll_event())
            .filter(|event| !matches!(event, Event::ChainWanted { .. }))
            .collect()
    }

    /// A request comes in; perhaps a reply goes out.
    pub fn handle(&mut self, bytes: &[u8]) -> Option<(SocketAddrV4, Vec<u8>)> {
        if self.lose_requests > 0 {
            self.lose_requests -= 1;
            return None;
        }
        let packet = Packet::new_checked(bytes).expect("what an agent sends is well-formed");
        let request = Repr::parse(&packet);
        assert_eq!(request.message_type, MessageType::Request);
        if self.down.contains(&request.group) {
            return None;
        }
        let mut value = request.value.to_vec();
        let mut reply = request;
        reply.message_type = MessageType::Reply;
        let operation = Operation::from_u8(request.operation).expect("an operation");
        let generation = self.generations.get(&request.group).copied();
        if request.generation != generation.unwrap_or_default() {
            reply.outcome = Outcome::WrongGeneration as u8;
            value.clear();
        } else if self.busy > 0 {
            self.busy -= 1;
            reply.outcome = Outcome::Busy as u8;
            value.clear();
        } else {
            match operation {
                Operation::Read | Operation::Scan => self.read(&mut reply, &mut value),
                Operation::Watch => self.watch(&mut reply),
                _ => self.update(&mut reply, &mut value, operation)?,
            }
        }
        reply.set_chain([self.switch.unwrap_or(*SWITCH.ip())]);
        reply.hops = 1;
        reply.epoch = 1;
        reply.newest = self.newest(request.group);
        if self.lose_replies > 0 {
            self.lose_replies -= 1;
            return None;
        }
        let reply = Repr {
            value: &value,
            ..reply
        };
        Some((request.client(), reply.to_vec().expect("a reply that fits")))
    }

    /// Rule 17: the group begins anew, empty; its chain from then on.
    pub fn found_anew(&mut self, group: u16) -> Chain {
        let generation = self.generations.entry(group).or_default();
        *generation += 1;
        let generation = *generation;
        self.records.retain(|(of, _), _| *of != group);
        self.log.retain(|(of, _), _| *of != group);
        self.lanes.retain(|(of, _), _| *of != group);
        self.numbers.remove(&group);
        self.subscribers.retain(|(of, _), _| *of != group);
        Chain {
            generation,
            ..chain(group)
        }
    }

    pub fn newest(&self, group: u16) -> u64 {
        self.numbers.get(&group).copied().unwrap_or_default()
    }

    pub fn record(&self, group: u16, key: Key) -> Option<&Stored> {
        let record = self.records.get(&(group, key))?;
        matches!(record.kind, Kind::Value | Kind::Lock).then_some(record)
    }

    /// Rule 23.
    fn watch(&mut self, reply: &mut Repr<'_>) {
        self.watched += 1;
        let (group, client, asked) = (reply.group, reply.client(), reply.number);
        let newest = self.newest(group);
        let ring = if self.ring == 0 { 64 } else { self.ring };
        let oldest = (newest + 1).saturating_sub(ring).max(1);
        reply.outcome = Outcome::Done as u8;
        match reply.handle {
            0 => _ = self.subscribers.remove(&(group, client)),
            _ if self.full => reply.outcome = Outcome::Full as u8,
            handle => _ = self.subscribers.insert((group, client), handle),
        }
        if asked != 0 && asked < oldest {
            reply.outcome = Outcome::Compacted as u8;
        } else if asked != 0 {
            for number in asked..=newest.min(asked + 15) {
                self.send_entry(group, number, client, reply.handle);
            }
        }
        (reply.number, reply.record) = (0, oldest);
    }

    /// Numbers of the entries that changed a record, in order, with its key.
    pub fn changes(&self, group: u16) -> impl Iterator<Item = (u64, Key)> {
        let log = self.log.iter().filter(move |((of, _), _)| *of == group);
        log.filter(|((_, number), (entry, _))| entry.record == *number)
            .map(|((_, number), (entry, _))| (*number, entry.key))
    }

    fn send_entry(&mut self, group: u16, number: u64, client: SocketAddrV4, handle: u32) {
        if self.lose_entries > 0 {
            self.lose_entries -= 1;
            return;
        }
        let newest = self.newest(group);
        let (entry, value) = &self.log[&(group, number)];
        let mut entry = Repr {
            value,
            newest,
            handle,
            ..*entry
        };
        entry.set_client(client);
        let bytes = entry.to_vec().expect("an entry that fits");
        self.entries.push_back((client, bytes));
    }

    /// Keeps an entry, and sends it to all subscribers.
    fn keep(&mut self, request: &Repr<'_>, outcome: Outcome, number: u64) {
        let group = request.group;
        let mut entry = Repr::new(MessageType::Event);
        (entry.group, entry.key, entry.number) = (group, request.key, number);
        (entry.operation, entry.outcome) = (request.operation, outcome as u8);
        let mut value = Vec::new();
        match self.records.get(&(group, request.key)) {
            Some(stored) => show(&mut entry, &mut value, stored),
            None if outcome == Outcome::Done => entry.record = number,
            None => {}
        }
        self.log.insert((group, number), (entry, value));
        let subscribers = self.subscribers.clone();
        for ((of, client), handle) in subscribers {
            if of == group {
                self.send_entry(group, number, client, handle);
            }
        }
    }

    fn read(&self, reply: &mut Repr<'_>, value: &mut Vec<u8>) {
        value.clear();
        let found = if reply.operation == Operation::Scan as u8 {
            let places = reply.slot..reply.slot.saturating_add(8);
            let mut found: Vec<_> = self
                .records
                .iter()
                .filter(|((group, _), stored)| {
                    *group == reply.group
                        && places.contains(&stored.slot)
                        && stored.kind != Kind::Empty
                })
                .map(|((_, key), stored)| (*key, stored))
                .collect();
            found.sort_by_key(|(_, stored)| stored.slot);
            found.first().copied()
        } else {
            self.record(reply.group, reply.key)
                .map(|stored| (reply.key, stored))
        };
        reply.number = 0;
        reply.flags &= !flag::MORE;
        match found {
            Some((key, stored)) => {
                reply.outcome = Outcome::Done as u8;
                reply.key = key;
                reply.slot = stored.slot;
                show(reply, value, stored);
            }
            None => {
                reply.outcome = Outcome::Absent as u8;
                reply.kind = Kind::None as u8;
                reply.record = 0;
                if reply.operation == Operation::Scan as u8 && reply.slot < SLOTS - 8 {
                    reply.flags |= flag::MORE;
                    reply.slot += 8;
                }
            }
        }
    }

    /// Rules 5, 6: what is new is decided, what is equal answered, what is lower dropped.
    fn update(
        &mut self,
        reply: &mut Repr<'_>,
        value: &mut Vec<u8>,
        operation: Operation,
    ) -> Option<()> {
        let place = (reply.group, reply.lane);
        let lane = *self.lanes.entry(place).or_default();
        if reply.lane_incarnation < lane.incarnation {
            reply.outcome = Outcome::LaneEnded as u8;
            value.clear();
            return Some(());
        }
        let lane = if reply.lane_incarnation > lane.incarnation {
            // A later life of the lane begins, and forgets this one (rule 19).
            LaneState {
                incarnation: reply.lane_incarnation,
                ..LaneState::default()
            }
        } else {
            lane
        };
        self.lanes.insert(place, lane);
        if reply.request < lane.request {
            return None;
        }
        let again = reply.request == lane.request;
        if !again {
            let number = self.newest(reply.group) + 1;
            self.numbers.insert(reply.group, number);
            let outcome = self.decide(reply, value, operation, number);
            self.keep(reply, outcome, number);
            self.executed
                .push((reply.operation, reply.lane, reply.request));
            reply.outcome = outcome as u8;
            reply.number = number;
            let lane = self.lanes.get_mut(&place).expect("the lane");
            (lane.request, lane.number) = (reply.request, number);
            if operation != Operation::Resolve {
                lane.kept = (reply.request, number, outcome as u8, reply.token);
            }
        }
        if again || operation == Operation::Resolve {
            value.clear();
            reply.kind = Kind::None as u8;
            reply.record = 0;
        }
        let lane = &self.lanes[&place];
        (reply.handle, reply.number, reply.outcome, reply.token) = lane.kept;
        Some(())
    }

    fn decide(
        &mut self,
        reply: &mut Repr<'_>,
        value: &mut Vec<u8>,
        operation: Operation,
        number: u64,
    ) -> Outcome {
        match operation {
            Operation::Resolve => return Outcome::Done,
            Operation::LaneNext => {
                let lane = self.lanes.entry((reply.group, reply.slot)).or_default();
                if lane.incarnation > reply.handle as u16 {
                    return Outcome::Mismatch;
                }
                if lane.incarnation < reply.handle as u16 {
                    *lane = LaneState {
                        incarnation: reply.handle as u16,
                        ..LaneState::default()
                    };
                }
                return Outcome::Done;
            }
            _ => {}
        }
        let place = (reply.group, reply.key);
        let stored = self.records.get(&place).cloned();
        let kind = stored.as_ref().map_or(Kind::None, |stored| stored.kind);
        let locks = matches!(operation, Operation::Acquire | Operation::Release);
        let seen = stored.as_ref().map_or(0, |stored| stored.token);
        let outcome = if !self.guard_holds(reply) {
            Outcome::Guarded
        } else if !locks && kind != Kind::Lock && reply.token < seen {
            Outcome::StaleToken
        } else if kind != Kind::None && locks != (kind == Kind::Lock) {
            Outcome::WrongKind
        } else if locks {
            return self.lock(reply, value, operation, number);
        } else if !holds(reply, stored.as_ref()) {
            Outcome::Mismatch
        } else if operation == Operation::Delete && kind != Kind::Value {
            Outcome::Absent
        } else {
            Outcome::Done
        };
        if outcome != Outcome::Done {
            value.clear();
            match stored {
                Some(stored) => show(reply, value, &stored),
                None => (reply.kind, reply.record) = (Kind::None as u8, 0),
            }
            return outcome;
        }
        let write = operation == Operation::Write;
        let kept = reply.token.max(seen);
        if !write && kept == 0 {
            self.records.remove(&place);
        } else {
            let slot = self.slot(place);
            let record = Stored {
                kind: if write { Kind::Value } else { Kind::Empty },
                number,
                token: kept,
                session: if write { reply.session } else { 0 },
                value: core::mem::take(value),
                slot,
            };
            self.records.insert(place, record);
        }
        value.clear();
        reply.kind = match (write, kept) {
            (true, _) => Kind::Value,
            (false, 0) => Kind::None,
            (false, _) => Kind::Empty,
        } as u8;
        reply.record = number;
        Outcome::Done
    }

    fn slot(&self, place: (u16, Key)) -> u16 {
        if let Some(stored) = self.records.get(&place) {
            return stored.slot;
        }
        let of_group = self
            .records
            .iter()
            .filter(|((group, _), _)| *group == place.0);
        let taken: Vec<u16> = of_group.map(|(_, stored)| stored.slot).collect();
        let free = (0..SLOTS).find(|slot| !taken.contains(slot));
        free.expect("a free slot")
    }

    fn guard_holds(&self, reply: &Repr<'_>) -> bool {
        let guard = self.record(reply.group, reply.guard_key);
        match Condition::from_u8(reply.guard_condition).expect("a condition") {
            Condition::Absent => guard.is_none(),
            Condition::Present => guard.is_some(),
            Condition::Number => guard.is_some_and(|guard| guard.number == reply.guard_number),
            Condition::Token => guard
                .is_some_and(|guard| guard.kind == Kind::Lock && guard.token == reply.guard_number),
            Condition::None | Condition::Value => true,
        }
    }

    /// Rule 20.
    fn lock(
        &mut self,
        reply: &mut Repr<'_>,
        value: &mut Vec<u8>,
        operation: Operation,
        number: u64,
    ) -> Outcome {
        let place = (reply.group, reply.key);
        let slot = self.slot(place);
        let who = bytes_of(reply.session, reply.handle);
        let stored = self
            .records
            .get(&place)
            .filter(|stored| stored.kind == Kind::Lock);
        let token = stored.map_or(0, |stored| stored.token);
        let mut queue: Vec<[u8; 8]> = Vec::new();
        if let Some(stored) = stored {
            queue.push(stored.value[..8].try_into().expect("an owner"));
            queue.extend(
                stored.value[16..]
                    .chunks(8)
                    .map(|one| -> [u8; 8] { one.try_into().expect("a waiter") }),
            );
        }
        let stands = queue.iter().position(|one| *one == who);
        let (outcome, token) = match (operation, stands) {
            (Operation::Acquire, None) if queue.is_empty() => {
                queue.push(who);
                (Outcome::Done, number)
            }
            (Operation::Acquire, Some(0)) => (Outcome::Done, token),
            (Operation::Acquire, Some(_)) => (Outcome::Queued, token),
            (Operation::Acquire, None) if reply.flags & flag::WAIT == 0 => (Outcome::Taken, token),
            (Operation::Acquire, None) if queue.len() == 15 => (Outcome::Full, token),
            (Operation::Acquire, None) => {
                queue.push(who);
                (Outcome::Queued, token)
            }
            (_, None) => (Outcome::NotOwner, token),
            (_, Some(at)) => {
                queue.remove(at);
                (Outcome::Done, if at == 0 { number } else { token })
            }
        };
        value.clear();
        reply.token = token;
        if queue.is_empty() {
            self.records.remove(&place);
            (reply.kind, reply.record) = (Kind::None as u8, 0);
            return outcome;
        }
        value.extend_from_slice(&queue[0]);
        value.extend_from_slice(&token.to_be_bytes());
        queue[1..]
            .iter()
            .for_each(|waiter| value.extend_from_slice(waiter));
        let stored = Stored {
            kind: Kind::Lock,
            number,
            token,
            session: u32::from_be_bytes(queue[0][..4].try_into().expect("a session")),
            value: value.clone(),
            slot,
        };
        show(reply, value, &stored);
        self.records.insert(place, stored);
        outcome
    }
}

pub fn chain(group: u16) -> Chain {
    Chain {
        group,
        generation: 0,
        epoch: 1,
        members: vec![*SWITCH.ip()],
        joining: None,
    }
}

fn bytes_of(session: u32, handle: u32) -> [u8; 8] {
    (u64::from(session) << 32 | u64::from(handle)).to_be_bytes()
}

fn show(reply: &mut Repr<'_>, value: &mut Vec<u8>, stored: &Stored) {
    reply.kind = stored.kind as u8;
    reply.record = stored.number;
    reply.token = stored.token;
    reply.session = stored.session;
    value.clone_from(&stored.value);
}

fn holds(reply: &Repr<'_>, stored: Option<&Stored>) -> bool {
    let stored = stored.filter(|stored| stored.kind == Kind::Value);
    let operand = &reply.operand.0;
    match Condition::from_u8(reply.condition).expect("a condition") {
        Condition::None | Condition::Token => true,
        Condition::Absent => stored.is_none(),
        Condition::Present => stored.is_some(),
        Condition::Number => {
            stored.is_some_and(|stored| stored.number.to_be_bytes() == operand[8..])
        }
        Condition::Value => {
            let length = usize::from(reply.operand_length);
            stored.is_some_and(|stored| stored.value == operand[..length])
        }
    }
}
