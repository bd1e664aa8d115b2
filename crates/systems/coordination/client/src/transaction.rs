//! Transactions of several keys, by two-phase locking (rule 22).

use stateplane_random::Random;
use stateplane_wire::coordination::{Key, Outcome};

use crate::call::{Calls, End};
use crate::name::key_of_recipe;
use crate::redo::{MAX_CHANGE, Redo, lock_of, redo_of};
use crate::{
    Action, Agent, Answer, Denied, Event, Lane, Operation, Owner, Place, Record, Refused, When,
    Write,
};

/// A change of one of a transaction's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which of the transaction's places, counted from 0.
    pub place: usize,
    /// The new value, or none to delete the record.
    pub value: Option<Vec<u8>>,
}

/// State of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionState {
    /// It did not begin.
    Idle,
    /// It wants its locks, backing off while others have some, and reads.
    Locking,
    /// It has all locks, and [`Transaction::records`] are what they cover.
    Ready,
    /// It writes, or gives its locks back.
    Busy,
    /// It is over, and all its changes are made.
    Committed,
    /// It is over and changed nothing.
    Aborted,
    /// Its session was ended, or contents are lost. If its changes were decided, whoever ends the
    /// session makes them; else none is made.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Idle,
    Lock,
    /// It gives back what it got, and tries again after a time.
    BackOff,
    Rest,
    Read,
    /// It finishes what a dead client decided.
    Finish,
    Ready,
    Prepare,
    Decide,
    Apply,
    Clean,
    Release,
    Committed,
    Aborted,
    Lost,
}

#[derive(Debug, Clone)]
enum Job {
    Lock(usize),
    Unlock(usize),
    Read(usize),
    ReadRedo(usize),
    ReadDecision(Redo),
    Finish(Redo),
    Prepare(usize),
    Decide,
    Apply(usize),
    Remove(Place),
}

/// A transaction. All its locks are tried in one round trip; if one has another owner, all are given
/// back and tried again after a time that grows. Its writes carry the locks' tokens. Several
/// changes are decided by one record, so that all are made or none: if the client dies, by the
/// reaper, or by the next owner of the locks.
///
/// The promise holds among clients who use transactions for these keys. Others see changes one by
/// one.
///
/// ```
/// # #[allow(dead_code)]
/// # mod chain { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain/mod.rs")); }
/// use stateplane_coordination::{Change, Name, Owner, Transaction, TransactionState};
///
/// # let mut service = chain::Service::new();
/// # let mut agent = service.agent(4);
/// # let session = 1;
/// let accounts = [b"alice", b"bobby"].map(|name| Name::new(name).unwrap().place(4));
/// let mut transfer = Transaction::new(&agent, &accounts, Owner { session, handle: 10 }, 7);
/// transfer.begin(0, &mut agent, u64::MAX);
/// # for _ in 0..5 {
/// for event in service.events(&mut agent) {
///     transfer.handle_event(0, &mut agent, &event);
/// }
/// # }
/// assert_eq!(transfer.state(), TransactionState::Ready);
/// let change = |place, value: &[u8]| Change { place, value: Some(value.to_vec()) };
/// transfer.commit(0, &mut agent, &[change(0, b"90"), change(1, b"110")])?;
/// # for _ in 0..8 {
/// #     for event in service.events(&mut agent) {
/// #         transfer.handle_event(0, &mut agent, &event);
/// #     }
/// # }
/// assert_eq!(transfer.state(), TransactionState::Committed);
/// # Ok::<(), stateplane_coordination::Refused>(())
/// ```
#[derive(Debug)]
pub struct Transaction {
    places: Vec<Place>,
    owner: Owner,
    random: Random,
    step: Step,
    deadline: u64,
    todo: Vec<Job>,
    calls: Calls<Job>,
    tokens: Vec<Option<u64>>,
    records: Vec<Option<Record>>,
    denied: Option<Denied>,
    backoff: u64,
    next: u64,
    decision: Place,
    redo: Vec<Redo>,
    commits: bool,
}

/// Least and most time for which a transaction backs off, in µs.
const BACKOFF_US: (u64, u64) = (100, 20_000);

impl Transaction {
    /// A transaction of the records at `places`, which are distinct. `owner.handle` and as many
    /// after it as there are places are its own. `seed` spreads its attempts, and makes, with the
    /// owner, the name of its decision, so that it is another for each transaction of a session.
    pub fn new(agent: &Agent, places: &[Place], owner: Owner, seed: u64) -> Transaction {
        let session = owner.session.to_be_bytes();
        let parts: [&[u8]; 3] = [&session, &owner.handle.to_be_bytes(), &seed.to_be_bytes()];
        let within = |place: &Place| Place {
            group: Some(agent.group(place)),
            ..place.clone()
        };
        Transaction {
            tokens: vec![None; places.len()],
            records: vec![None; places.len()],
            places: places.iter().map(within).collect(),
            owner,
            random: Random::new(seed),
            step: Step::Idle,
            deadline: u64::MAX,
            todo: Vec::new(),
            calls: Calls::default(),
            denied: None,
            backoff: BACKOFF_US.0,
            next: 0,
            decision: within(&Place::of(key_of_recipe(b'C', &parts))),
            redo: Vec::new(),
            commits: false,
        }
    }

    /// State of the transaction.
    pub fn state(&self) -> TransactionState {
        match self.step {
            Step::Idle => TransactionState::Idle,
            Step::Lock | Step::BackOff | Step::Rest | Step::Read | Step::Finish => {
                TransactionState::Locking
            }
            Step::Ready => TransactionState::Ready,
            Step::Prepare | Step::Decide | Step::Apply | Step::Clean | Step::Release => {
                TransactionState::Busy
            }
            Step::Committed => TransactionState::Committed,
            Step::Aborted => TransactionState::Aborted,
            Step::Lost => TransactionState::Lost,
        }
    }

    /// The records that the locks cover, in the order of the places.
    pub fn records(&self) -> &[Option<Record>] {
        &self.records
    }

    /// Why it was aborted, unless by its owner.
    pub fn denied(&self) -> Option<Denied> {
        self.denied
    }

    /// Begins it. It is aborted if it has not all its locks at `deadline`.
    pub fn begin(&mut self, now: u64, agent: &mut Agent, deadline: u64) {
        if self.step == Step::Idle {
            self.deadline = deadline;
            self.go(now, agent, Step::Lock);
        }
    }

    /// Makes `changes`, at most one of each place, and ends the transaction. Nothing happens unless
    /// it is [`TransactionState::Ready`].
    ///
    /// # Errors
    ///
    /// [`Refused::TooLong`] if a value, with the name before it, is longer than [`MAX_CHANGE`]
    /// bytes and not the only change; [`Refused::OutOfRange`] if there is no such place, or a
    /// place has two changes.
    pub fn commit(
        &mut self,
        now: u64,
        agent: &mut Agent,
        changes: &[Change],
    ) -> Result<(), Refused> {
        if self.step != Step::Ready {
            return Ok(());
        }
        let mut redo: Vec<Redo> = Vec::new();
        for change in changes {
            let place = self.places.get(change.place).ok_or(Refused::OutOfRange)?;
            let group = agent.group(place);
            let value = change
                .value
                .as_ref()
                .map(|value| [&place.prefix, value.as_slice()].concat());
            let length = value.as_ref().map_or(0, Vec::len);
            let most = match changes.len() {
                1 => stateplane_wire::coordination::MAX_VALUE,
                _ => MAX_CHANGE,
            };
            if length > most {
                return Err(Refused::TooLong(length));
            }
            let twice = |one: &Redo| (one.group, one.data) == (group, place.key);
            if redo.iter().any(twice) {
                return Err(Refused::OutOfRange);
            }
            redo.push(Redo {
                decision_group: agent.group(&self.decision),
                decision: self.decision.key,
                group,
                data: place.key,
                token: self.tokens[change.place].unwrap_or_default(),
                value,
            });
        }
        self.commits = true;
        self.redo = redo;
        let step = match self.redo.len() {
            0 => Step::Release,
            1 => Step::Apply,
            _ => Step::Prepare,
        };
        self.go(now, agent, step);
        Ok(())
    }

    /// Ends the transaction without changes. One whose changes are being made goes on.
    pub fn abort(&mut self, now: u64, agent: &mut Agent) {
        match self.step {
            Step::Ready | Step::Rest => self.go(now, agent, Step::Release),
            // The deadline ends it after what is under way.
            Step::Lock | Step::BackOff | Step::Read | Step::Finish => self.deadline = 0,
            _ => {}
        }
    }

    /// Takes an event of the agent; true if it was the transaction's.
    pub fn handle_event(&mut self, now: u64, agent: &mut Agent, event: &Event) -> bool {
        let over = matches!(
            self.step,
            Step::Idle | Step::Committed | Step::Aborted | Step::Lost
        );
        if *event == Event::LanesEnded && !over {
            self.step = Step::Lost;
            return true;
        }
        let concerned = self.calls.concerns(event);
        if let Some((job, end)) = self.calls.end(event) {
            self.ended(job, end);
            self.advance(now, agent);
        }
        concerned
    }

    fn ended(&mut self, job: Job, end: End) {
        let answer = match end {
            End::Answered(answer) => answer,
            End::Never => return self.todo.push(job),
            End::Clash => {
                self.denied = Some(Denied::WrongKind);
                return;
            }
            End::Lost => {
                self.step = Step::Lost;
                return;
            }
        };
        let done = answer.outcome == Outcome::Done;
        match job {
            Job::Lock(index) if done => self.tokens[index] = Some(answer.token),
            Job::Lock(_) => {
                self.denied = Some(match answer.outcome {
                    Outcome::WrongKind => Denied::WrongKind,
                    Outcome::Full => Denied::Full,
                    _ => Denied::Taken,
                });
            }
            Job::Unlock(index) => self.tokens[index] = None,
            Job::Read(index) => self.read(index, answer),
            Job::ReadRedo(index) => {
                let group = self.places[index].group.unwrap_or_default();
                let left = answer.record.and_then(|record| Redo::parse(group, &record));
                self.redo.extend(left);
            }
            Job::ReadDecision(redo) if done => {
                // The lock is this transaction's by now, and with it the right to write.
                let index = self.places.iter().position(|place| place.key == redo.data);
                let token = index
                    .and_then(|index| self.tokens[index])
                    .unwrap_or_default();
                self.todo.push(Job::Finish(Redo { token, ..redo }));
            }
            Job::ReadDecision(redo) => self.todo.push(Job::Remove(redo.place())),
            Job::Finish(redo) => self.todo.push(Job::Remove(redo.place())),
            Job::Prepare(_) | Job::Decide if !done => self.denied = Some(Denied::Full),
            // A single change is judged with the lock in one pass; it was not made.
            Job::Apply(_) if self.redo.len() == 1 => {
                self.denied = match answer.outcome {
                    Outcome::Done | Outcome::Absent => None,
                    Outcome::Full => Some(Denied::Full),
                    Outcome::WrongKind => Some(Denied::WrongKind),
                    _ => Some(Denied::Taken),
                };
            }
            // The changes are decided: room for them is waited for.
            Job::Apply(index) if answer.outcome == Outcome::Full => {
                self.todo.push(Job::Apply(index));
            }
            Job::Prepare(_) | Job::Decide | Job::Apply(_) | Job::Remove(_) => {}
        }
    }

    fn read(&mut self, index: usize, answer: Answer) {
        self.records[index] = answer.record.filter(|_| answer.outcome == Outcome::Done);
    }

    /// Begins a step.
    fn go(&mut self, now: u64, agent: &mut Agent, step: Step) {
        self.step = step;
        let all = 0..self.places.len();
        let held = |index: &usize| self.tokens[*index].is_some();
        self.todo = match step {
            Step::Lock => {
                self.denied = None;
                all.map(Job::Lock).collect()
            }
            Step::BackOff | Step::Release => all.filter(held).map(Job::Unlock).collect(),
            Step::Read => {
                self.redo.clear();
                all.flat_map(|index| [Job::Read(index), Job::ReadRedo(index)])
                    .collect()
            }
            Step::Finish => self.redo.drain(..).map(Job::ReadDecision).collect(),
            Step::Prepare => (0..self.redo.len()).map(Job::Prepare).collect(),
            Step::Decide => vec![Job::Decide],
            Step::Apply => (0..self.redo.len()).map(Job::Apply).collect(),
            Step::Clean => {
                let decision = Job::Remove(self.decision.clone());
                let redo = self.redo.iter().map(|redo| Job::Remove(redo.place()));
                redo.chain([decision]).collect()
            }
            _ => Vec::new(),
        };
        self.advance(now, agent);
    }

    /// Begins what is to do, and the next step when that is done.
    fn advance(&mut self, now: u64, agent: &mut Agent) {
        if matches!(self.step, Step::Lost) {
            return;
        }
        while let Some(job) = self.todo.pop() {
            let operation = self.operation(&job);
            match self.calls.begin(now, agent, operation, job.clone()) {
                Ok(()) => {}
                Err(Refused::NoLanes) => return self.step = Step::Lost,
                Err(_) => {
                    self.todo.push(job);
                    self.next = now.saturating_add(BACKOFF_US.1);
                    return;
                }
            }
        }
        if !self.calls.is_empty() {
            return;
        }
        let late = now >= self.deadline;
        let next = match self.step {
            Step::Lock if self.denied.is_some() || late => Step::BackOff,
            Step::Lock => Step::Read,
            Step::BackOff if late || self.denied == Some(Denied::WrongKind) => {
                self.denied = self.denied.filter(|denied| *denied != Denied::Taken);
                self.denied = self.denied.or(Some(Denied::TimedOut));
                Step::Aborted
            }
            Step::BackOff => {
                self.next = now.saturating_add(self.random.between(self.backoff / 2, self.backoff));
                self.backoff = (2 * self.backoff).min(BACKOFF_US.1);
                Step::Rest
            }
            Step::Read if self.denied.is_some() || late => Step::BackOff,
            Step::Read if self.redo.is_empty() => Step::Ready,
            Step::Read => Step::Finish,
            Step::Finish => Step::Read,
            Step::Prepare if self.denied.is_some() => Step::Clean,
            Step::Prepare => Step::Decide,
            Step::Decide if self.denied.is_some() => Step::Clean,
            Step::Decide => Step::Apply,
            Step::Apply if self.redo.len() > 1 => Step::Clean,
            Step::Apply | Step::Clean => Step::Release,
            Step::Release if self.commits && self.denied.is_none() => Step::Committed,
            Step::Release => Step::Aborted,
            _ => return,
        };
        self.go(now, agent, next);
    }

    fn operation(&self, job: &Job) -> Operation {
        let lock = |index: usize| {
            let place = &self.places[index];
            let place = lock_of(place.group.unwrap_or_default(), place.key);
            let handle = self.owner.handle.wrapping_add(index as u32);
            (
                place,
                Owner {
                    handle,
                    ..self.owner
                },
            )
        };
        match job {
            Job::Lock(index) => {
                let (place, owner) = lock(*index);
                Operation::acquire(place, owner, false)
            }
            Job::Unlock(index) => {
                let (place, owner) = lock(*index);
                Operation::release(place, owner)
            }
            Job::Read(index) => Operation::read(self.places[*index].clone()),
            Job::ReadRedo(index) => {
                let place = &self.places[*index];
                Operation::read(redo_of(place.group.unwrap_or_default(), place.key))
            }
            Job::ReadDecision(redo) => Operation::read(redo.decision_place()),
            Job::Finish(redo) => redo.apply(),
            Job::Prepare(index) => {
                let redo = &self.redo[*index];
                self.owned(redo.place(), redo.bytes(), When::Always)
            }
            Job::Decide => self.owned(self.decision.clone(), Vec::new(), When::Absent),
            Job::Apply(index) => self.redo[*index].apply(),
            Job::Remove(place) => Operation::delete(place.clone(), When::Always),
        }
    }

    fn owned(&self, place: Place, value: Vec<u8>, when: When) -> Operation {
        let write = Write {
            value,
            when,
            session: self.owner.session,
            ..Write::default()
        };
        let mut operation = Operation::new(place, Action::Write(write));
        operation.lane = Lane::Any;
        operation
    }

    /// Does what is due at `now`: another attempt, or the end of all.
    pub fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        if self.step == Step::Rest && (now >= self.next || now >= self.deadline) {
            let late = now >= self.deadline;
            if late {
                self.denied = Some(Denied::TimedOut);
            }
            self.go(now, agent, if late { Step::Release } else { Step::Lock });
        } else if !self.todo.is_empty() && now >= self.next {
            self.advance(now, agent);
        }
    }

    /// When [`Transaction::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        let rests = self.step == Step::Rest;
        let next = (rests || !self.todo.is_empty()).then_some(self.next)?;
        Some(if rests { next.min(self.deadline) } else { next })
    }

    /// Key of the record that decides this transaction.
    pub fn decision(&self) -> Key {
        self.decision.key
    }
}
