//! Election of a leader.

use stateplane_wire::coordination::Outcome;

use crate::call::{Call, End};
use crate::name::key_of_recipe;
use crate::{
    Action, Agent, Delete, Denied, Event, Guard, Hold, Lane, Mutex, Operation, Owner, Place, Wait,
    When, Write,
};

/// A candidate for leadership: it queues for a lock, and who has that announces itself in a record
/// beside it, guarded by the lock's token and owned by the session.
///
/// ```
/// # #[allow(dead_code)]
/// # mod chain { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain/mod.rs")); }
/// use stateplane_coordination::{Hold, LeaderLatch, Name, Operation, Owner};
///
/// # let mut service = chain::Service::new();
/// # let mut agent = service.agent(4);
/// # let session = 1;
/// let place = Name::new(b"scheduler").unwrap().lock_place(4);
/// let mut latch = LeaderLatch::new(&agent, &place, Owner { session, handle: 1 }, b"node-7");
/// latch.run(0, &mut agent)?;
/// # for _ in 0..2 {
/// for event in service.events(&mut agent) {
///     latch.handle_event(0, &mut agent, &event);
/// }
/// # }
/// assert!(matches!(latch.hold(), Hold::Held { .. }));
/// let leader = LeaderLatch::announcement(&agent, &place);
/// agent.submit(0, Operation::read(leader))?;
/// # let events = service.events(&mut agent);
/// # let stateplane_coordination::Event::Answered { answer, .. } = &events[0] else { panic!() };
/// # assert_eq!(answer.record.as_ref().unwrap().value, b"node-7");
/// # Ok::<(), stateplane_coordination::Denied>(())
/// ```
#[derive(Debug)]
pub struct LeaderLatch {
    mutex: Mutex,
    announcement: Place,
    owner: Owner,
    id: Vec<u8>,
    call: Call,
    announced: bool,
    resigns: bool,
}

impl LeaderLatch {
    /// A candidate `owner` for the leadership that `place` names. `id`, at most 1,024 bytes, is told
    /// to those who ask for the leader.
    pub fn new(agent: &Agent, place: &Place, owner: Owner, id: &[u8]) -> LeaderLatch {
        LeaderLatch {
            mutex: Mutex::new(Place::within(agent.group(place), place.key), owner),
            announcement: LeaderLatch::announcement(agent, place),
            owner,
            id: id.to_vec(),
            call: Call::default(),
            announced: false,
            resigns: false,
        }
    }

    /// Place of the leader's id: a record owned by the leader's session. While none leads, or the
    /// leader did not announce itself, there is none.
    pub fn announcement(agent: &Agent, place: &Place) -> Place {
        let key = key_of_recipe(b'L', &[&place.key.0]);
        Place::within(agent.group(place), key)
    }

    /// Held once the candidate leads and announced that; the token is the leadership's.
    pub fn hold(&self) -> Hold {
        match self.mutex.hold() {
            Hold::Held { .. } if self.resigns => Hold::Releasing,
            Hold::Held { .. } if !self.announced => Hold::Waiting,
            hold => hold,
        }
    }

    /// Becomes a candidate.
    ///
    /// # Errors
    ///
    /// [`Denied::Refused`] if the agent takes no operation.
    pub fn run(&mut self, now: u64, agent: &mut Agent) -> Result<(), Denied> {
        if self.mutex.hold() == Hold::Idle {
            (self.announced, self.resigns) = (false, false);
        }
        self.mutex.acquire(now, agent, Wait::Forever)
    }

    /// Ends the leadership or the candidacy.
    pub fn resign(&mut self, now: u64, agent: &mut Agent) {
        self.resigns = true;
        self.advance(now, agent);
    }

    /// Takes an event of the agent; true if it was the latch's.
    pub fn handle_event(&mut self, now: u64, agent: &mut Agent, event: &Event) -> bool {
        let concerned = self.call.concerns(event) | self.mutex.handle_event(now, agent, event);
        if let Some(end) = self.call.end(event) {
            let done = matches!(&end, End::Answered(answer) if answer.outcome == Outcome::Done);
            self.announced = if self.resigns {
                // What is not there need not be withdrawn.
                !matches!(end, End::Answered(_))
            } else {
                done
            };
        }
        if concerned {
            self.advance(now, agent);
        }
        concerned
    }

    fn advance(&mut self, now: u64, agent: &mut Agent) {
        let token = self.mutex.token();
        if self.call.is_busy() {
            return;
        }
        match (token, self.announced, self.resigns) {
            (Some(token), false, false) => {
                let write = Write {
                    value: self.id.clone(),
                    guard: Some(Guard::Token(self.mutex.place().key, token)),
                    token,
                    session: self.owner.session,
                    when: When::Always,
                };
                self.write(now, agent, Action::Write(write));
            }
            (Some(token), true, true) => {
                let delete = Delete {
                    guard: Some(Guard::Token(self.mutex.place().key, token)),
                    token,
                    when: When::Always,
                };
                self.write(now, agent, Action::Delete(delete));
            }
            // What the agent has no room for is tried again at the next event or timeout.
            (_, _, true) => _ = self.mutex.release(now, agent),
            _ => {}
        }
    }

    fn write(&mut self, now: u64, agent: &mut Agent, action: Action) {
        let operation = Operation {
            lane: Lane::Kept(self.owner.handle),
            ..Operation::new(self.announcement.clone(), action)
        };
        _ = self.call.begin(now, agent, operation);
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        self.mutex.handle_timeout(now, agent);
        self.advance(now, agent);
    }

    /// When [`LeaderLatch::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.mutex.poll_timeout()
    }
}
