//! Membership in a group of processes, and barriers.

use std::collections::{BTreeMap, VecDeque};

use stateplane_wire::coordination::Outcome;

use crate::call::{Call, Calls, End};
use crate::name::key_of_recipe;
use crate::{Action, Agent, Delete, Event, Lane, Operation, Owner, Place, When, Write};

/// Time between two looks at who is there, in µs.
const POLL_US: u64 = 10_000;

/// Members that joined and members that left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembershipEvent {
    /// A member is there, or has another value.
    Joined {
        /// Its seat, below the number of seats.
        seat: u16,
        /// Its description of itself.
        value: Vec<u8>,
    },
    /// The member of a seat is gone.
    Left {
        /// Its seat.
        seat: u16,
    },
}

/// How a process stands to the membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seat {
    /// It is no member.
    None,
    /// It looks for a seat.
    Joining,
    /// It is a member and has this seat.
    Taken(u16),
    /// It leaves.
    Leaving,
    /// All seats are taken.
    Full,
    /// Its session was ended, or the group's contents are lost.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Join(u16),
    Leave,
}

/// A group of processes with a fixed number of seats. Each member's record is owned by its session,
/// so that it goes with that.
///
/// ```
/// # #[allow(dead_code)]
/// # mod chain { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain/mod.rs")); }
/// use stateplane_coordination::{Membership, Name, Owner, Seat};
///
/// # let mut service = chain::Service::new();
/// # let mut agent = service.agent(4);
/// # let session = 1;
/// let place = Name::new(b"workers").unwrap().lock_place(4);
/// let mut membership = Membership::new(&agent, &place, Owner { session, handle: 0 }, 8);
/// membership.join(0, &mut agent, b"10.0.0.7:80");
/// membership.handle_timeout(0, &mut agent);
/// # for _ in 0..2 {
/// for event in service.events(&mut agent) {
///     membership.handle_event(0, &mut agent, &event);
/// }
/// # membership.handle_timeout(20_000, &mut agent);
/// # }
/// assert_eq!(membership.seat(), Seat::Taken(0));
/// assert_eq!(membership.members().collect::<Vec<_>>(), [(0, b"10.0.0.7:80".as_slice())]);
/// # Ok::<(), stateplane_coordination::Refused>(())
/// ```
#[derive(Debug)]
pub struct Membership {
    seats: Vec<Place>,
    owner: Owner,
    value: Vec<u8>,
    seat: Seat,
    /// The seat that is or was tried or had.
    own: u16,
    /// Seats found taken in a row.
    taken: u16,
    asked: Option<Asked>,
    call: Call,
    looks: Calls<u16>,
    next: u64,
    members: BTreeMap<u16, (u64, Vec<u8>)>,
    /// Looks that were answered since they were begun.
    rounds: u64,
    events: VecDeque<MembershipEvent>,
}

impl Membership {
    /// The group that `place` names, with `seats` seats, at least 1. All who use it name as many.
    pub fn new(agent: &Agent, place: &Place, owner: Owner, seats: u16) -> Membership {
        let group = agent.group(place);
        let seat = |index: u16| {
            let key = key_of_recipe(b'M', &[&place.key.0, &index.to_be_bytes()]);
            Place::within(group, key)
        };
        let seats: Vec<Place> = (0..seats.max(1)).map(seat).collect();
        Membership {
            own: (owner.handle % seats.len() as u32) as u16,
            seats,
            owner,
            value: Vec::new(),
            seat: Seat::None,
            taken: 0,
            asked: None,
            call: Call::default(),
            looks: Calls::default(),
            next: 0,
            members: BTreeMap::new(),
            rounds: 0,
            events: VecDeque::new(),
        }
    }

    /// How this process stands to the group.
    pub fn seat(&self) -> Seat {
        self.seat
    }

    /// The members when last looked at, by seat, and what they say of themselves. A member may
    /// have come or gone since, and those of different seats were not seen at one moment.
    pub fn members(&self) -> impl Iterator<Item = (u16, &[u8])> {
        let members = self.members.iter();
        members.map(|(seat, (_, value))| (*seat, value.as_slice()))
    }

    /// Times that all seats were looked at.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The next member that joined or left.
    pub fn poll_event(&mut self) -> Option<MembershipEvent> {
        self.events.pop_front()
    }

    /// Becomes a member that says `value`, at most 1,024 bytes, of itself. Nothing happens unless the
    /// process is none.
    pub fn join(&mut self, now: u64, agent: &mut Agent, value: &[u8]) {
        if matches!(self.seat, Seat::None | Seat::Full) {
            self.value = value.to_vec();
            self.taken = 0;
            self.seat = Seat::Joining;
            self.advance(now, agent);
        }
    }

    /// Leaves the group.
    pub fn leave(&mut self, now: u64, agent: &mut Agent) {
        if matches!(self.seat, Seat::Joining | Seat::Taken(_)) {
            self.seat = Seat::Leaving;
            self.advance(now, agent);
        }
    }

    fn advance(&mut self, now: u64, agent: &mut Agent) {
        if self.call.is_busy() {
            return;
        }
        let (action, asked) = match self.seat {
            Seat::Joining => {
                let write = Write {
                    value: self.value.clone(),
                    when: When::Absent,
                    session: self.owner.session,
                    ..Write::default()
                };
                (Action::Write(write), Asked::Join(self.own))
            }
            Seat::Leaving if self.asked.is_some() => {
                (Action::Delete(Delete::default()), Asked::Leave)
            }
            Seat::Leaving => {
                self.seat = Seat::None;
                return;
            }
            _ => return,
        };
        let place = self.seats[usize::from(self.own)].clone();
        let operation = Operation {
            lane: Lane::Kept(self.owner.handle),
            ..Operation::new(place, action)
        };
        // What the agent has no room for is tried again at the next timeout.
        if self.call.begin(now, agent, operation).is_ok() {
            self.asked = Some(asked);
        }
    }

    /// Takes an event of the agent; true if it was the membership's.
    pub fn handle_event(&mut self, now: u64, agent: &mut Agent, event: &Event) -> bool {
        let concerned = self.call.concerns(event) || self.looks.concerns(event);
        if let Some(end) = self.call.end(event) {
            self.ended(end);
            self.advance(now, agent);
        }
        if let Some((seat, end)) = self.looks.end(event) {
            self.looked(seat, end);
        }
        concerned
    }

    fn ended(&mut self, end: End) {
        let outcome = match end {
            End::Answered(answer) => answer.outcome,
            End::Never => return,
            End::Lost | End::Clash => {
                self.seat = Seat::Lost;
                return;
            }
        };
        match (self.asked, outcome) {
            (Some(Asked::Join(seat)), Outcome::Done) if self.seat == Seat::Joining => {
                self.seat = Seat::Taken(seat);
            }
            // It left while it joined: the seat that it got is given back.
            (Some(Asked::Join(_)), Outcome::Done) => {}
            (Some(Asked::Join(_)), _) => {
                self.asked = None;
                self.taken += 1;
                let seats = self.seats.len() as u16;
                self.own = (self.own + 1) % seats;
                if self.taken >= seats && self.seat == Seat::Joining {
                    self.seat = Seat::Full;
                }
            }
            (Some(Asked::Leave), _) => {
                self.asked = None;
                self.seat = Seat::None;
            }
            (None, _) => {}
        }
    }

    fn looked(&mut self, seat: u16, end: End) {
        let End::Answered(answer) = end else {
            return;
        };
        let record = answer.record.filter(|_| answer.outcome == Outcome::Done);
        let number = record.as_ref().map_or(0, |record| record.number);
        let known = self.members.get(&seat).map_or(0, |(known, _)| *known);
        if known != number {
            self.events.push_back(match record {
                Some(record) => {
                    self.members.insert(seat, (number, record.value.clone()));
                    MembershipEvent::Joined {
                        seat,
                        value: record.value,
                    }
                }
                None => {
                    self.members.remove(&seat);
                    MembershipEvent::Left { seat }
                }
            });
        }
        if self.looks.is_empty() {
            self.rounds += 1;
        }
    }

    /// Does what is due at `now`: a look at all seats, unless events of the last one wait.
    pub fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        self.advance(now, agent);
        if now < self.next || !self.looks.is_empty() || self.events.len() > self.seats.len() {
            return;
        }
        self.next = now.saturating_add(POLL_US);
        for (seat, place) in self.seats.iter().enumerate() {
            let read = Operation::read(place.clone());
            if self.looks.begin(now, agent, read, seat as u16).is_err() {
                return;
            }
        }
    }

    /// When [`Membership::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.looks.is_empty().then_some(self.next)
    }
}

/// How a party stands at a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// It did not come.
    Outside,
    /// It waits for the others to come.
    Entering,
    /// All came.
    Inside,
    /// It waits for the others to leave.
    Leaving,
    /// All left.
    Left,
    /// Its session was ended, or the group's contents are lost.
    Lost,
}

/// A double barrier: a number of parties enter together, and leave together. Of parties that die
/// inside, the others do not wait for the leaving.
///
/// ```
/// # #[allow(dead_code)]
/// # mod chain { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain/mod.rs")); }
/// use stateplane_coordination::{Barrier, Name, Owner, Passage};
///
/// # let mut service = chain::Service::new();
/// # let mut agent = service.agent(4);
/// # let session = 1;
/// let place = Name::new(b"phase-1").unwrap().lock_place(4);
/// let party = |handle| Barrier::new(&agent, &place, Owner { session, handle }, 2);
/// let mut parties = [party(0), party(1)];
/// parties[0].enter(0, &mut agent);
/// # let mut now = 0;
/// # while now < 200_000 {
/// #     for event in service.events(&mut agent) {
/// #         parties.iter_mut().for_each(|party| _ = party.handle_event(now, &mut agent, &event));
/// #     }
/// #     parties.iter_mut().for_each(|party| party.handle_timeout(now, &mut agent));
/// #     if now == 100_000 {
/// // Events and timeouts go to both parties meanwhile.
/// assert_eq!(parties[0].passage(), Passage::Entering);
/// parties[1].enter(now, &mut agent);
/// #     }
/// #     now += 1_000;
/// # }
/// assert_eq!(parties[0].passage(), Passage::Inside);
/// ```
#[derive(Debug)]
pub struct Barrier {
    parties: Membership,
    ready: Place,
    passage: Passage,
    call: Call,
    /// Rounds of looks when the question was asked that they answer.
    since: u64,
}

impl Barrier {
    /// The barrier that `place` names, for `parties` parties, at least 1.
    pub fn new(agent: &Agent, place: &Place, owner: Owner, parties: u16) -> Barrier {
        let key = key_of_recipe(b'B', &[&place.key.0]);
        Barrier {
            parties: Membership::new(agent, place, owner, parties),
            ready: Place::within(agent.group(place), key),
            passage: Passage::Outside,
            call: Call::default(),
            since: 0,
        }
    }

    /// How the party stands.
    pub fn passage(&self) -> Passage {
        self.passage
    }

    /// Comes to the barrier.
    pub fn enter(&mut self, now: u64, agent: &mut Agent) {
        if matches!(self.passage, Passage::Outside | Passage::Left) {
            self.passage = Passage::Entering;
            self.parties.join(now, agent, b"");
        }
    }

    /// Goes to leave.
    pub fn leave(&mut self, now: u64, agent: &mut Agent) {
        if self.passage == Passage::Inside {
            self.passage = Passage::Leaving;
            self.since = self.parties.rounds() + 1;
            self.parties.leave(now, agent);
        }
    }

    /// Takes an event of the agent; true if it was the barrier's.
    pub fn handle_event(&mut self, now: u64, agent: &mut Agent, event: &Event) -> bool {
        let concerned = self.call.concerns(event) | self.parties.handle_event(now, agent, event);
        while self.parties.poll_event().is_some() {}
        let end = self.call.end(event);
        match (self.passage, end) {
            // Somebody saw all parties, and said so for those who look later.
            (Passage::Entering, Some(End::Answered(answer))) if answer.outcome == Outcome::Done => {
                self.passage = Passage::Inside;
            }
            (Passage::Leaving, Some(End::Answered(_))) => self.passage = Passage::Left,
            _ => {}
        }
        if self.parties.seat() == Seat::Lost && self.passage != Passage::Left {
            self.passage = Passage::Lost;
        }
        concerned
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        if matches!(
            self.passage,
            Passage::Outside | Passage::Inside | Passage::Lost | Passage::Left
        ) {
            return;
        }
        let round = self.parties.rounds();
        self.parties.handle_timeout(now, agent);
        let rested = !self.call.is_busy() && round > self.since;
        let present = self.parties.members().count();
        let operation = match self.passage {
            Passage::Entering if rested && present == self.parties.seats.len() => {
                Operation::put(self.ready.clone(), b"")
            }
            Passage::Entering if rested => Operation::read(self.ready.clone()),
            Passage::Leaving if rested && present == 0 && self.parties.seat() == Seat::None => {
                Operation::delete(self.ready.clone(), When::Always)
            }
            _ => return,
        };
        // At most one question in each round.
        if self.call.begin(now, agent, operation).is_ok() {
            self.since = round;
        }
    }

    /// When [`Barrier::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        match self.passage {
            Passage::Entering | Passage::Leaving => self.parties.poll_timeout(),
            _ => None,
        }
    }
}
