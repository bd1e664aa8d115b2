//! The agent: requests with numbers, their repetition, and what became of them (rules 5, 6, 10).

mod flight;
mod lanes;
mod operations;
mod proof;
mod reply;

use core::net::SocketAddrV4;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use stateplane_random::Random;
use stateplane_wire::coordination::{MAX_VALUE, Outcome};

use crate::directory::{Directory, Learnt};
use crate::{Action, Chain, Counters, Event, Lane, Operation, Settings, Ticket, When, group_of};
use flight::Flight;
use lanes::GroupLanes;
use operations::{Pending, Phase};
use proof::Proof;
use stateplane_wire::round_trip::RoundTrip;

/// A range of lanes that a session has (rules 5, 19).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes {
    /// Number of the session that has them.
    pub session: u32,
    /// The first lane.
    pub first: u16,
    /// Number of lanes, at least 1.
    pub count: u16,
    /// Incarnation of all of them.
    pub incarnation: u16,
}

/// Generation of a group that was founded once.
const FIRST_GENERATION: u16 = 1;

/// Why an agent does not take an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// As many operations as [`Settings::most_operations`] are under way.
    #[error("too many operations are under way")]
    Full,
    /// The agent has no lanes, which only reads and scans do without; or they ended.
    #[error("the agent has no lanes")]
    NoLanes,
    /// The place names a group that there is not.
    #[error("there is no group {0}")]
    NoGroup(u16),
    /// Name and value are longer than [`MAX_VALUE`] bytes together.
    #[error("a name and value of {0} bytes do not fit in {MAX_VALUE}")]
    TooLong(usize),
    /// A number is out of its range: a place of a transaction, or a lane of the agent's own that it
    /// was to move on.
    #[error("a number is out of its range")]
    OutOfRange,
}

/// Work that is due at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A flight is repeated.
    Repeat(u64),
    /// An operation ends.
    Deadline(Ticket),
}

/// A client of the chains. It keeps no clock: times are µs of any clock that does not go back,
/// and below 2⁴⁸.
#[derive(Debug)]
pub struct Agent {
    settings: Settings,
    random: Random,
    directory: Directory,
    lanes: Option<Lanes>,
    /// True if the lanes are of no more use.
    lanes_ended: bool,
    groups: Vec<GroupLanes>,
    proof: Proof,
    /// Time from which the chain of each group may be asked for again.
    learn_from: Vec<u64>,
    pending: BTreeMap<Ticket, Pending>,
    flights: BTreeMap<u64, Flight>,
    /// Reads under way, by the number of their request.
    reads: BTreeMap<u32, u64>,
    next_read: u32,
    /// Number of the agent's subscriptions, which nobody else knows.
    handle: u32,
    next: u64,
    due: BTreeSet<(u64, Due)>,
    round_trip: RoundTrip,
    outbox: VecDeque<(SocketAddrV4, Vec<u8>)>,
    events: VecDeque<Event>,
    counters: Counters,
}

impl Agent {
    /// An agent that knows no chain and has no lanes. `seed` spreads its repetitions in time, and
    /// the numbers of its reads.
    pub fn new(settings: Settings, seed: u64) -> Agent {
        let groups = settings.groups.max(1);
        let mut random = Random::new(seed);
        let settings = Settings { groups, ..settings };
        let drawn = random.next();
        Agent {
            directory: Directory::new(groups),
            lanes: None,
            lanes_ended: false,
            proof: Proof::default(),
            groups: (0..groups).map(|_| GroupLanes::default()).collect(),
            learn_from: vec![0; groups.into()],
            pending: BTreeMap::new(),
            flights: BTreeMap::new(),
            reads: BTreeMap::new(),
            next_read: drawn as u32,
            handle: (drawn >> 32) as u32 | 1,
            next: 1,
            due: BTreeSet::new(),
            round_trip: RoundTrip::default(),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            random,
            settings,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Counters of events.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Operations without an event that ends them.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The lanes, if the agent has some that did not end.
    pub fn lanes(&self) -> Option<Lanes> {
        self.lanes.filter(|_| !self.lanes_ended)
    }

    /// The chain of `group` as the agent knows it.
    pub fn chain(&self, group: u16) -> Option<&Chain> {
        self.directory.chain(group)
    }

    /// The group of a place.
    pub fn group(&self, place: &crate::Place) -> u16 {
        place
            .group
            .unwrap_or_else(|| group_of(&place.key, self.settings.groups))
    }

    /// Gives the agent lanes that nobody else used in this incarnation. Operations on lanes that
    /// it had before end: those under way as [`Fate::Lost`](crate::Fate::Lost) after
    /// [`Event::Unknown`], those that waited as [`Event::Expired`].
    pub fn set_lanes(&mut self, lanes: Lanes) {
        self.drop_lanes();
        self.lanes_ended = lanes.count == 0;
        self.lanes = Some(lanes);
        for group in &mut self.groups {
            *group = GroupLanes::new(lanes.count);
        }
    }

    /// Takes a chain from the controller. Older ones than known are dropped.
    pub fn learn(&mut self, now: u64, chain: Chain) {
        let (group, generation) = (chain.group, chain.generation);
        match self.directory.learn(chain) {
            Learnt::Nothing => return,
            Learnt::Chain => {}
            Learnt::First if generation <= FIRST_GENERATION => {}
            Learnt::First => self.doubt(group),
            Learnt::Founding => {
                self.refounded(group);
                self.doubt(group);
            }
        }
        self.counters.chains += 1;
        self.prove(now);
        self.ask_again(now, group);
    }

    /// Takes an operation.
    ///
    /// # Errors
    ///
    /// [`Refused`]; nothing happened then.
    pub fn submit(&mut self, now: u64, operation: Operation) -> Result<Ticket, Refused> {
        if let Err(refused) = self.check(&operation) {
            self.counters.refused += 1;
            return Err(refused);
        }
        self.counters.submitted += 1;
        let ticket = Ticket(self.fresh());
        let deadline = now.saturating_add(self.settings.deadline_us);
        let group = self.group(&operation.place);
        self.due.insert((deadline, Due::Deadline(ticket)));
        self.pending.insert(
            ticket,
            Pending {
                operation,
                group,
                deadline,
                phase: Phase::Waiting,
                refusal: None,
                judged: None,
            },
        );
        self.begin(now, ticket);
        Ok(ticket)
    }

    fn check(&self, operation: &Operation) -> Result<(), Refused> {
        let place = &operation.place;
        if self.pending.len() >= self.settings.most_operations {
            return Err(Refused::Full);
        }
        if let Some(group) = place.group.filter(|group| *group >= self.settings.groups) {
            return Err(Refused::NoGroup(group));
        }
        if operation.action.is_numbered() && self.lanes().is_none() {
            return Err(Refused::NoLanes);
        }
        if let (Action::LaneNext { lane, .. }, Some(lanes)) = (&operation.action, self.lanes) {
            // A lane does not move itself on.
            if lane
                .checked_sub(lanes.first)
                .is_some_and(|at| at < lanes.count)
            {
                return Err(Refused::OutOfRange);
            }
        }
        let value = match &operation.action {
            Action::Write(write) => write.value.len(),
            _ => 0,
        };
        let compared = match &operation.action {
            Action::Write(crate::Write { when, .. })
            | Action::Delete(crate::Delete { when, .. }) => match when {
                When::Value(value) => value.len(),
                _ => 0,
            },
            _ => 0,
        };
        let length = place.prefix.len() + value.max(compared);
        if length > MAX_VALUE {
            return Err(Refused::TooLong(length));
        }
        Ok(())
    }

    /// Gives up an operation: it ends as [`Event::Expired`] or [`Event::Unknown`], as if its
    /// deadline had passed. Nothing happens if it ended.
    pub fn cancel(&mut self, now: u64, ticket: Ticket) {
        if let Some(pending) = self.pending.get(&ticket) {
            self.due.remove(&(pending.deadline, Due::Deadline(ticket)));
            self.expire(now, ticket);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: u64) {
        while let Some((at, due)) = self.due.first().copied() {
            if at > now {
                return;
            }
            self.due.pop_first();
            match due {
                Due::Repeat(flight) => self.repeat(now, flight),
                Due::Deadline(ticket) => self.expire(now, ticket),
            }
        }
    }

    /// When [`Agent::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The next datagram to send, and where to.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddrV4, Vec<u8>)> {
        self.outbox.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Asks for the chain of `group`, if it was not asked for a short time ago.
    fn want_chain(&mut self, now: u64, group: u16) {
        let Some(from) = self.learn_from.get_mut(usize::from(group)) else {
            return;
        };
        if now >= *from {
            *from = now.saturating_add(self.settings.learn_us);
            self.events.push_back(Event::ChainWanted { group });
        }
    }

    /// Ends an operation whose time is over.
    fn expire(&mut self, now: u64, ticket: Ticket) {
        let Some(pending) = self.pending.remove(&ticket) else {
            return;
        };
        let refusal = pending.refusal;
        let group = pending.group;
        match pending.phase {
            Phase::Waiting => {
                self.forget_waiting(group, ticket);
                self.expired(ticket, refusal);
            }
            Phase::Flying(flight) => {
                let Some(flight) = self.end_flight(flight) else {
                    return self.expired(ticket, refusal);
                };
                let Flight { request, sent, .. } = flight;
                let Some(lane) = flight.lane else {
                    return self.expired(ticket, refusal);
                };
                if sent == 0 {
                    self.expired(ticket, refusal);
                    return self.free_lane(now, group, lane);
                }
                self.counters.unknown += 1;
                self.events.push_back(Event::Unknown { ticket, refusal });
                self.resolve(now, group, lane, ticket, request);
            }
        }
    }

    fn expired(&mut self, ticket: Ticket, refusal: Option<Outcome>) {
        self.counters.expired += 1;
        self.events.push_back(Event::Expired { ticket, refusal });
    }
}
