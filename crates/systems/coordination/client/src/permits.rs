//! Semaphores and read-write locks: permits behind a gate.
//!
//! A gate and a number of permits, all locks of one group. Who wants permits queues for the gate,
//! takes permits while it holds that, and lets the gate go: so all are served first come first
//! served, and each permit has an owner whom a reaper finds.

use crate::name::key_of_recipe;
use crate::{Agent, Denied, Event, Hold, Mutex, Owner, Place, Wait};

/// Time between two rounds over the permits, in µs.
const POLL_US: u64 = 5_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Idle,
    /// It queues for the gate.
    Gate,
    /// It has the gate and takes permits.
    Take,
    Held(u64),
    Release,
    Lost,
}

#[derive(Debug)]
struct Permits {
    gate: Mutex,
    permits: Vec<Mutex>,
    all: bool,
    step: Step,
    wait: Wait,
    /// The permit tried, if one is enough.
    turn: usize,
    /// Permits in a row that others had.
    taken: usize,
    next_round: u64,
    denied: Option<Denied>,
}

impl Permits {
    fn new(place: &Place, owner: Owner, count: u16, group: u16) -> Permits {
        let permit = |index: u16| {
            let key = key_of_recipe(b'P', &[&place.key.0, &index.to_be_bytes()]);
            Mutex::new(Place::within(group, key), owner)
        };
        let gate = key_of_recipe(b'G', &[&place.key.0]);
        Permits {
            gate: Mutex::new(Place::within(group, gate), owner),
            permits: (0..count.max(1)).map(permit).collect(),
            all: false,
            step: Step::Idle,
            wait: Wait::Try,
            turn: owner.handle as usize,
            taken: 0,
            next_round: 0,
            denied: None,
        }
    }

    fn hold(&self) -> Hold {
        match self.step {
            Step::Idle => Hold::Idle,
            Step::Gate | Step::Take => Hold::Waiting,
            Step::Held(token) => Hold::Held { token },
            Step::Release => Hold::Releasing,
            Step::Lost => Hold::Lost,
        }
    }

    fn acquire(
        &mut self,
        now: u64,
        agent: &mut Agent,
        all: bool,
        wait: Wait,
    ) -> Result<(), Denied> {
        if self.step == Step::Idle {
            self.gate.acquire(now, agent, wait)?;
            (self.all, self.wait, self.denied) = (all, wait, None);
            self.taken = 0;
            self.step = Step::Gate;
        }
        Ok(())
    }

    fn release(&mut self, now: u64, agent: &mut Agent) {
        if matches!(self.step, Step::Gate | Step::Take | Step::Held(_)) {
            self.step = Step::Release;
            self.advance(now, agent);
        }
    }

    fn handle_event(&mut self, now: u64, agent: &mut Agent, event: &Event) -> bool {
        let mut concerned = self.gate.handle_event(now, agent, event);
        for permit in &mut self.permits {
            concerned |= permit.handle_event(now, agent, event);
        }
        if concerned {
            self.advance(now, agent);
        }
        concerned
    }

    fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        self.gate.handle_timeout(now, agent);
        for permit in &mut self.permits {
            permit.handle_timeout(now, agent);
        }
        if matches!(self.step, Step::Gate | Step::Take) && now >= self.wait.deadline() {
            self.give_up(now, agent, Denied::TimedOut);
        }
        self.advance(now, agent);
    }

    fn poll_timeout(&self) -> Option<u64> {
        let deadline = self.wait.deadline();
        let waits = matches!(self.step, Step::Gate | Step::Take) && deadline != u64::MAX;
        let round = self.step == Step::Take && self.taken >= self.permits.len();
        let locks = self.permits.iter().chain([&self.gate]);
        locks
            .filter_map(Mutex::poll_timeout)
            .chain(waits.then_some(deadline))
            .chain(round.then_some(self.next_round))
            .min()
    }

    fn give_up(&mut self, now: u64, agent: &mut Agent, denied: Denied) {
        self.denied = Some(denied);
        self.step = Step::Release;
        self.advance(now, agent);
    }

    fn advance(&mut self, now: u64, agent: &mut Agent) {
        let lost = |mutex: &Mutex| mutex.hold() == Hold::Lost;
        if lost(&self.gate) || self.permits.iter().any(lost) {
            self.step = Step::Lost;
        }
        match self.step {
            Step::Idle | Step::Lost => {}
            Step::Gate => match (self.gate.hold(), self.gate.denied()) {
                (Hold::Held { .. }, _) => {
                    self.step = Step::Take;
                    self.take(now, agent);
                }
                (Hold::Idle, Some(denied)) => {
                    self.denied = Some(denied);
                    self.step = Step::Idle;
                }
                _ => {}
            },
            Step::Take => self.take(now, agent),
            // The gate goes while the permits stay.
            Step::Held(_) => _ = self.gate.release(now, agent),
            Step::Release => {
                let mut idle = true;
                for lock in self.permits.iter_mut().chain([&mut self.gate]) {
                    // What the agent has no room for is tried again at the next event or timeout.
                    _ = lock.release(now, agent);
                    idle &= lock.hold() == Hold::Idle;
                }
                if idle {
                    self.step = Step::Idle;
                }
            }
        }
    }

    /// Takes permits behind the gate: one after the other until one is free, or all.
    fn take(&mut self, now: u64, agent: &mut Agent) {
        let tokens = self.permits.iter().filter_map(Mutex::token);
        let (count, token) =
            tokens.fold((0, 0), |(count, most), token| (count + 1, most.max(token)));
        if count == self.permits.len() || (count > 0 && !self.all) {
            self.step = Step::Held(token);
            _ = self.gate.release(now, agent);
            return;
        }
        if self.all {
            for permit in &mut self.permits {
                if permit.hold() != Hold::Idle {
                    continue;
                }
                if let Some(denied) = permit.denied().filter(|_| self.taken > 0) {
                    return self.give_up(now, agent, denied);
                }
                if let Err(denied) = permit.acquire(now, agent, self.wait) {
                    return self.give_up(now, agent, denied);
                }
            }
            self.taken = 1;
            return;
        }
        let count = self.permits.len();
        if self
            .permits
            .iter()
            .any(|permit| permit.hold() != Hold::Idle)
        {
            return;
        }
        if self.permits[self.turn % count].denied().is_some() && self.taken < count {
            self.turn += 1;
            self.taken += 1;
            self.next_round = now.saturating_add(POLL_US);
        }
        if self.taken >= count {
            if self.wait == Wait::Try {
                return self.give_up(now, agent, Denied::Taken);
            }
            if now < self.next_round {
                return;
            }
            self.taken = 0;
        }
        if let Err(denied) = self.permits[self.turn % count].acquire(now, agent, Wait::Try) {
            self.give_up(now, agent, denied);
        }
    }
}

/// A semaphore: at most a number of holders at a time.
///
/// ```
/// # #[allow(dead_code)]
/// # mod chain { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain/mod.rs")); }
/// use stateplane_coordination::{Hold, Name, Owner, Semaphore, Wait};
///
/// # let mut service = chain::Service::new();
/// # let mut agent = service.agent(4);
/// # let session = 1;
/// let place = Name::new(b"licences").unwrap().lock_place(4);
/// let holders = (1..=3).map(|handle| Semaphore::new(&agent, &place, Owner { session, handle }, 2));
/// let mut holders: Vec<Semaphore> = holders.collect();
/// for holder in &mut holders {
///     holder.acquire(0, &mut agent, Wait::Forever)?;
/// }
/// # let mut now = 0;
/// # while now < 100_000 {
/// for event in service.events(&mut agent) {
///     for holder in &mut holders {
///         holder.handle_event(now, &mut agent, &event);
///     }
/// }
/// #     holders.iter_mut().for_each(|holder| holder.handle_timeout(now, &mut agent));
/// #     now += 1_000;
/// # }
/// let held = holders.iter().filter(|one| matches!(one.hold(), Hold::Held { .. })).count();
/// assert_eq!(held, 2);
/// # Ok::<(), stateplane_coordination::Denied>(())
/// ```
#[derive(Debug)]
pub struct Semaphore(Permits);

impl Semaphore {
    /// The semaphore that `place` names, with `permits` permits, at least 1, for `owner`. All who
    /// use it name as many.
    pub fn new(agent: &Agent, place: &Place, owner: Owner, permits: u16) -> Semaphore {
        Semaphore(Permits::new(place, owner, permits, agent.group(place)))
    }

    /// Wants a permit.
    ///
    /// # Errors
    ///
    /// [`Denied::Refused`] if the agent takes no operation.
    pub fn acquire(&mut self, now: u64, agent: &mut Agent, wait: Wait) -> Result<(), Denied> {
        self.0.acquire(now, agent, false, wait)
    }
}

/// A read-write lock: one writer, or up to a number of readers. Writers and readers are served
/// first come first served.
///
/// ```
/// # #[allow(dead_code)]
/// # mod chain { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain/mod.rs")); }
/// use stateplane_coordination::{Hold, Name, Owner, ReadWriteLock, Wait};
///
/// # let mut service = chain::Service::new();
/// # let mut agent = service.agent(4);
/// # let session = 1;
/// let place = Name::new(b"catalogue").unwrap().lock_place(4);
/// let mut writer = ReadWriteLock::new(&agent, &place, Owner { session, handle: 1 }, 4);
/// writer.write(0, &mut agent, Wait::Forever)?;
/// for _ in 0..2 {
///     for event in service.events(&mut agent) {
///         writer.handle_event(0, &mut agent, &event);
///     }
/// }
/// assert!(matches!(writer.hold(), Hold::Held { .. }));
/// # Ok::<(), stateplane_coordination::Denied>(())
/// ```
#[derive(Debug)]
pub struct ReadWriteLock(Permits);

impl ReadWriteLock {
    /// The lock that `place` names, for `owner`, with at most `readers` readers at a time, at least
    /// 1. All who use it name as many.
    pub fn new(agent: &Agent, place: &Place, owner: Owner, readers: u16) -> ReadWriteLock {
        ReadWriteLock(Permits::new(place, owner, readers, agent.group(place)))
    }

    /// Wants to read.
    ///
    /// # Errors
    ///
    /// [`Denied::Refused`] if the agent takes no operation.
    pub fn read(&mut self, now: u64, agent: &mut Agent, wait: Wait) -> Result<(), Denied> {
        self.0.acquire(now, agent, false, wait)
    }

    /// Wants to write. The token is greater than that of all writers and readers before.
    ///
    /// # Errors
    ///
    /// [`Denied::Refused`] if the agent takes no operation.
    pub fn write(&mut self, now: u64, agent: &mut Agent, wait: Wait) -> Result<(), Denied> {
        self.0.acquire(now, agent, true, wait)
    }
}

macro_rules! holder {
    ($($type:ident),*) => {$(
        impl $type {
            /// How the holder stands to it.
            pub fn hold(&self) -> Hold {
                self.0.hold()
            }

            /// Why the last attempt ended with nothing.
            pub fn denied(&self) -> Option<Denied> {
                self.0.denied
            }

            /// Gives it up, or leaves the queue. Nothing happens if the holder is idle.
            pub fn release(&mut self, now: u64, agent: &mut Agent) {
                self.0.release(now, agent);
            }

            /// Takes an event of the agent; true if it was this holder's.
            pub fn handle_event(&mut self, now: u64, agent: &mut Agent, event: &Event) -> bool {
                self.0.handle_event(now, agent, event)
            }

            /// Does what is due at `now`.
            pub fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
                self.0.handle_timeout(now, agent);
            }

            /// When the holder's `handle_timeout` is due next.
            pub fn poll_timeout(&self) -> Option<u64> {
                self.0.poll_timeout()
            }
        }
    )*};
}

holder!(Semaphore, ReadWriteLock);
