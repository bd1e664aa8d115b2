//! The reaper: it ends sessions whose clients died (rule 19).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use stateplane_wire::coordination::{Key, Kind, Outcome};

use crate::call::{Calls, End};
use crate::redo::Redo;
use crate::{
    Action, Agent, Answer, Delete, Event, Lanes, Operation, Owner, Place, Reading, Record, Refused,
    SessionRecord, When, Write,
};

/// How a reaper works. Times are µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaperSettings {
    /// Time without a keepalive after which a session is ended.
    pub ttl_us: u64,
    /// Time between two looks at a session's record.
    pub look_us: u64,
    /// Most operations at a time in groups that answer, half of them in one group. A group that
    /// does not answer is asked one thing at a time.
    pub window: usize,
    /// Most sessions that are ended in one pass over a group.
    pub batch: usize,
}

impl ReaperSettings {
    /// Settings with looks at each quarter of the TTL.
    pub fn new(ttl_us: u64) -> ReaperSettings {
        ReaperSettings {
            ttl_us,
            look_us: ttl_us / 4,
            window: 64,
            batch: 1_024,
        }
    }
}

/// A session that a reaper watches.
#[derive(Debug)]
struct Watched {
    lanes: Lanes,
    /// The record's number, 0 if there is none; and since when it is so.
    seen: Option<(u64, u64)>,
    next: u64,
    asked: bool,
}

/// The work in a group for the sessions of its pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Pass {
    /// Nothing.
    #[default]
    Rest,
    /// Their lanes move on: nothing of the sessions is written after that.
    Lanes,
    /// Decided transactions are finished, while locks cover it.
    Redo,
    /// Locks are released and records deleted.
    Free,
}

#[derive(Debug, Clone)]
enum Job {
    Look(u32),
    Mark(u32, u64),
    Move(u16, u16, u16),
    Scan(u16, u16),
    /// The decision about what a session left beside data of a group is read.
    Decision(u32, Redo),
    Apply(Redo),
    Release(Place, Owner),
    Delete(Place, u64),
    Suspect(u32),
    /// A decision of a session is deleted.
    Forget(u32, Place, u64),
    Remove(u32),
}

impl Job {
    /// The group whose pass waits for it.
    fn pass(&self) -> Option<u16> {
        match self {
            Job::Move(group, ..) | Job::Scan(group, _) => Some(*group),
            Job::Decision(_, redo) | Job::Apply(redo) => Some(redo.group),
            Job::Release(place, _) | Job::Delete(place, _) => place.group,
            Job::Look(_) | Job::Mark(..) | Job::Suspect(_) | Job::Forget(..) | Job::Remove(_) => {
                None
            }
        }
    }

    /// The group that it asks.
    fn asks(&self, agent: &Agent) -> u16 {
        match self {
            Job::Move(group, ..) | Job::Scan(group, _) => *group,
            Job::Decision(_, redo) => redo.decision_group,
            Job::Apply(redo) => redo.group,
            Job::Release(place, _) | Job::Delete(place, _) | Job::Forget(_, place, _) => {
                agent.group(place)
            }
            Job::Look(session)
            | Job::Mark(session, _)
            | Job::Suspect(session)
            | Job::Remove(session) => agent.group(&SessionRecord::place(*session)),
        }
    }
}

/// The work in one group.
#[derive(Debug, Default)]
struct Work {
    pass: Pass,
    /// Sessions of the pass.
    sessions: BTreeSet<u32>,
    /// Jobs that the pass waits for.
    open: usize,
    /// Jobs that ask this group.
    todo: VecDeque<Job>,
    running: usize,
    /// The last answer did not come.
    silent: bool,
}

/// A session that is ended.
#[derive(Debug)]
struct Ending {
    lanes: Lanes,
    /// Groups in which something decided may be left to finish.
    redo: BTreeSet<u16>,
    /// Groups in which lanes have to move on, or something is owned.
    left: BTreeSet<u16>,
    /// Its decisions, which stay until all groups have asked for them; their tokens.
    decisions: BTreeMap<(u16, Key), u64>,
}

/// A reaper. Any number run side by side, and any goes on from where another stopped: the record of
/// a session says that it is ending, and all that a reaper does may be done twice.
///
/// Its agent has lanes of its own, of no session that it watches.
///
/// Each group has a pass of its own, so that one that does not answer keeps what lies in it and the
/// ends of sessions, which are told once all groups have taken part, but frees nobody's locks later
/// elsewhere. Of data whose decision lies in such a group the locks stay, too.
///
/// ```
/// # #[allow(dead_code)]
/// # mod chain { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain/mod.rs")); }
/// use stateplane_coordination::{Reaper, ReaperSettings, Session, SessionSettings};
///
/// # let mut service = chain::Service::new();
/// # let (mut client, mut agent) = (service.agent(2), service.agent(4));
/// // A client opens a session and dies.
/// Session::open(0, &mut client, SessionSettings::new(1_000_000))?;
/// # service.events(&mut client);
/// let mut reaper = Reaper::new(ReaperSettings::new(1_000_000));
/// reaper.watch(0, client.lanes().unwrap());
/// # let mut now = 0;
/// while reaper.ended() == 0 {
/// #   now += 10_000;
/// #   assert!(now < 3_000_000);
///     reaper.handle_timeout(now, &mut agent);
///     for event in service.events(&mut agent) {
///         reaper.handle_event(now, &mut agent, &event);
///     }
/// }
/// assert!(now > 1_000_000 && service.records.is_empty());
/// # Ok::<(), stateplane_coordination::Refused>(())
/// ```
#[derive(Debug)]
pub struct Reaper {
    settings: ReaperSettings,
    watched: BTreeMap<u32, Watched>,
    /// Sessions to end, by their number.
    ending: BTreeMap<u32, Ending>,
    /// By group.
    work: Vec<Work>,
    calls: Calls<Job>,
    /// Owners without a session that is watched.
    suspects: BTreeSet<u32>,
    events: VecDeque<Lanes>,
    ended: u64,
    /// When the agent is asked again, if it had no room.
    again: Option<u64>,
}

/// Time after which an agent is asked again that had no room, in µs.
const AGAIN_US: u64 = 10_000;

impl Reaper {
    /// A reaper that watches nothing.
    pub fn new(settings: ReaperSettings) -> Reaper {
        Reaper {
            settings,
            watched: BTreeMap::new(),
            ending: BTreeMap::new(),
            work: Vec::new(),
            calls: Calls::default(),
            suspects: BTreeSet::new(),
            events: VecDeque::new(),
            ended: 0,
            again: None,
        }
    }

    /// Watches a session, whether its record was made or not.
    pub fn watch(&mut self, now: u64, lanes: Lanes) {
        self.watched.entry(lanes.session).or_insert(Watched {
            lanes,
            seen: None,
            next: now,
            asked: false,
        });
    }

    /// Watches only the sessions of `keep`: others were ended by somebody.
    pub fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        self.watched.retain(|session, _| keep(*session));
    }

    /// Sessions ended so far.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// A session that ended: in each group its lanes have the next incarnation, and nothing is
    /// owned by it. The controller may give the lanes to others.
    pub fn poll_ended(&mut self) -> Option<Lanes> {
        self.events.pop_front()
    }

    /// Takes an event of the agent; true if it was the reaper's.
    pub fn handle_event(&mut self, now: u64, agent: &mut Agent, event: &Event) -> bool {
        let concerned = self.calls.concerns(event);
        if let Some((job, end)) = self.calls.end(event) {
            let pass = job.pass();
            let asked = &mut self.work[usize::from(job.asks(agent))];
            asked.running = asked.running.saturating_sub(1);
            asked.silent = end == End::Never;
            match (end, job) {
                (End::Answered(answer), job) => self.answered(now, agent, job, answer),
                // The data's group does not wait for the decision's: the session's turn there comes
                // again.
                (End::Never, Job::Decision(session, redo)) => {
                    self.work[usize::from(redo.group)].sessions.remove(&session);
                }
                // The agent has other lanes then, or the group other contents.
                (End::Never | End::Lost | End::Clash, job) => self.add(agent, job),
            }
            self.done(pass);
            self.advance(now, agent);
        }
        concerned
    }

    /// Adds a job, for which its pass waits.
    fn add(&mut self, agent: &Agent, job: Job) {
        if let Some(pass) = job.pass() {
            self.work[usize::from(pass)].open += 1;
        }
        let group = usize::from(job.asks(agent));
        if let Some(work) = self.work.get_mut(group) {
            work.todo.push_back(job);
        } else {
            // A redo record that names no group of this service.
            self.done(job.pass());
        }
    }

    /// A job that a pass waited for is over.
    fn done(&mut self, pass: Option<u16>) {
        if let Some(pass) = pass {
            let open = &mut self.work[usize::from(pass)].open;
            *open = open.saturating_sub(1);
        }
    }

    fn end(&mut self, session: u32, lanes: Lanes) {
        let groups = 0..self.work.len() as u16;
        self.ending.entry(session).or_insert_with(|| Ending {
            lanes,
            redo: groups.clone().collect(),
            left: groups.collect(),
            decisions: BTreeMap::new(),
        });
    }

    fn answered(&mut self, now: u64, agent: &Agent, job: Job, answer: Answer) {
        let done = answer.outcome == Outcome::Done;
        match job {
            Job::Look(session) => self.looked(now, agent, session, answer),
            Job::Mark(session, _) => {
                let Some(watched) = self.watched.get_mut(&session) else {
                    return;
                };
                watched.asked = false;
                let lanes = watched.lanes;
                if done {
                    self.end(session, lanes);
                } else {
                    watched.next = now;
                }
            }
            Job::Scan(group, slot) => self.scanned(agent, group, slot, answer),
            Job::Decision(_, redo) => self.add(
                agent,
                if done {
                    Job::Apply(redo)
                } else {
                    Job::Delete(redo.place(), 0)
                },
            ),
            // A key without room for what was decided is tried until there is some.
            Job::Apply(redo) => self.add(
                agent,
                match answer.outcome {
                    Outcome::Full => Job::Apply(redo),
                    _ => Job::Delete(redo.place(), 0),
                },
            ),
            Job::Suspect(session) => {
                if answer.outcome == Outcome::Absent {
                    let lanes = Lanes {
                        session,
                        first: 0,
                        count: 0,
                        incarnation: 0,
                    };
                    self.end(session, lanes);
                }
            }
            Job::Forget(session, place, _) => {
                if let Some(ending) = self.ending.get_mut(&session) {
                    ending.decisions.remove(&(agent.group(&place), place.key));
                }
                self.finish(agent, session);
            }
            Job::Remove(session) => {
                self.watched.remove(&session);
                if let Some(ending) = self.ending.remove(&session) {
                    self.ended += 1;
                    self.events.push_back(ending.lanes);
                }
            }
            Job::Move(..) | Job::Release(..) | Job::Delete(..) => {}
        }
    }

    fn looked(&mut self, now: u64, agent: &Agent, session: u32, answer: Answer) {
        let Some(watched) = self.watched.get_mut(&session) else {
            return;
        };
        watched.asked = false;
        watched.next = now.saturating_add(self.settings.look_us);
        let record = answer.record.filter(|_| answer.outcome == Outcome::Done);
        let number = record.as_ref().map_or(0, |record| record.number);
        let parsed = record.and_then(|record| SessionRecord::parse(&record.value));
        if let Some(parsed) = parsed.filter(|parsed| parsed.ending) {
            watched.lanes = parsed.lanes;
            return self.end(session, parsed.lanes);
        }
        match watched.seen {
            Some((seen, since)) if seen == number => {
                if now < since.saturating_add(self.settings.ttl_us) {
                    return;
                }
                if number == 0 {
                    // It was opened and never made, or made and removed.
                    let lanes = watched.lanes;
                    self.end(session, lanes);
                } else {
                    watched.asked = true;
                    self.add(agent, Job::Mark(session, number));
                }
            }
            _ => watched.seen = Some((number, now)),
        }
    }

    fn scanned(&mut self, agent: &Agent, group: u16, slot: u16, answer: Answer) {
        let Some(record) = answer.record else {
            if answer.more && answer.slot > slot {
                self.add(agent, Job::Scan(group, answer.slot));
            }
            return;
        };
        if let Some(next) = answer.slot.checked_add(1) {
            self.add(agent, Job::Scan(group, next));
        }
        let work = &self.work[usize::from(group)];
        match work.pass {
            Pass::Redo => {
                let ends = work.sessions.contains(&record.session);
                let redo = ends.then(|| Redo::parse(group, &record)).flatten();
                if let Some(redo) = redo {
                    self.add(agent, Job::Decision(record.session, redo));
                }
            }
            Pass::Free => self.free(agent, group, &record),
            Pass::Rest | Pass::Lanes => {}
        }
    }

    fn free(&mut self, agent: &Agent, group: u16, record: &Record) {
        let place = Place::within(group, record.key);
        let lock = record.lock();
        let owners: Vec<Owner> = match lock {
            Some(lock) => lock.waiters.iter().copied().chain([lock.owner]).collect(),
            None if record.session == 0 => return,
            None => vec![Owner {
                session: record.session,
                handle: 0,
            }],
        };
        for owner in owners {
            let session = owner.session;
            // The session's own record goes last.
            if record.key == SessionRecord::key(session) {
                continue;
            }
            if self.work[usize::from(group)].sessions.contains(&session) {
                let ending = self.ending.get_mut(&session);
                if record.kind == Kind::Lock {
                    self.add(agent, Job::Release(place.clone(), owner));
                } else if let Some(ending) =
                    ending.filter(|ending| record.value.is_empty() && !ending.redo.is_empty())
                {
                    // It may be a decision.
                    ending.decisions.insert((group, record.key), record.token);
                } else {
                    self.add(agent, Job::Delete(place.clone(), record.token));
                }
            } else if !self.watched.contains_key(&session)
                && !self.ending.contains_key(&session)
                && session != 0
                && agent.lanes().is_none_or(|lanes| lanes.session != session)
            {
                self.suspects.insert(session);
            }
        }
    }

    /// Begins what is to do, and the next passes of groups when theirs are over.
    fn advance(&mut self, now: u64, agent: &mut Agent) {
        self.again = None;
        loop {
            if !self.begin_jobs(now, agent) {
                self.again = Some(now.saturating_add(AGAIN_US));
                return;
            }
            let groups = 0..self.work.len() as u16;
            let moved = groups.filter(|group| self.next_pass(agent, *group));
            if moved.count() == 0 {
                return;
            }
        }
    }

    /// Begins jobs, of each group in turn; false if the agent has no room.
    fn begin_jobs(&mut self, now: u64, agent: &mut Agent) -> bool {
        let answering = self.work.iter().filter(|work| !work.silent);
        let mut running: usize = answering.map(|work| work.running).sum();
        loop {
            let mut begun = false;
            for at in 0..self.work.len() {
                let work = &mut self.work[at];
                let room = if work.silent {
                    work.running == 0
                } else {
                    let most = (self.settings.window / 2).max(1);
                    work.running < most && running < self.settings.window
                };
                let Some(job) = (if room { work.todo.pop_front() } else { None }) else {
                    continue;
                };
                let operation = self.operation(agent, &job);
                match self.calls.begin(now, agent, operation, job.clone()) {
                    Ok(()) => {
                        let work = &mut self.work[at];
                        work.running += 1;
                        running += usize::from(!work.silent);
                    }
                    // A lane of its own it does not move.
                    Err(Refused::OutOfRange | Refused::NoGroup(_)) => self.done(job.pass()),
                    Err(Refused::Full | Refused::NoLanes | Refused::TooLong(_)) => {
                        self.work[at].todo.push_front(job);
                        return false;
                    }
                }
                begun = true;
            }
            if !begun {
                return true;
            }
        }
    }

    /// Begins the next pass of a group if it has none or its jobs are done; false if there is
    /// nothing to begin.
    fn next_pass(&mut self, agent: &Agent, group: u16) -> bool {
        let work = &mut self.work[usize::from(group)];
        if work.open > 0 {
            return false;
        }
        match work.pass {
            Pass::Rest => {
                let ending = self.ending.iter();
                let dead = ending.filter(|(_, ending)| ending.left.contains(&group));
                let dead = dead.take(self.settings.batch);
                let mut moves = Vec::new();
                for (session, Ending { lanes, .. }) in dead {
                    work.sessions.insert(*session);
                    let next = lanes.incarnation.wrapping_add(1);
                    let lanes = lanes.first..lanes.first.saturating_add(lanes.count);
                    moves.extend(lanes.map(|lane| Job::Move(group, lane, next)));
                }
                if work.sessions.is_empty() {
                    return false;
                }
                work.pass = Pass::Lanes;
                for job in moves {
                    self.add(agent, job);
                }
            }
            Pass::Lanes => {
                work.pass = Pass::Redo;
                self.add(agent, Job::Scan(group, 0));
            }
            Pass::Redo => {
                work.pass = Pass::Free;
                for session in &work.sessions {
                    if let Some(ending) = self.ending.get_mut(session) {
                        ending.redo.remove(&group);
                    }
                }
                self.add(agent, Job::Scan(group, 0));
            }
            Pass::Free => {
                work.pass = Pass::Rest;
                for session in core::mem::take(&mut work.sessions) {
                    if let Some(ending) = self.ending.get_mut(&session) {
                        ending.left.remove(&group);
                    }
                    self.finish(agent, session);
                }
                for session in core::mem::take(&mut self.suspects) {
                    self.add(agent, Job::Suspect(session));
                }
            }
        }
        true
    }

    /// Removes what a session leaves to the end, its decisions and its record, once all groups have
    /// taken part.
    fn finish(&mut self, agent: &Agent, session: u32) {
        let Some(ending) = self.ending.get(&session) else {
            return;
        };
        if !ending.left.is_empty() {
            return;
        }
        match ending.decisions.first_key_value() {
            Some(((group, key), token)) => {
                let job = Job::Forget(session, Place::within(*group, *key), *token);
                self.add(agent, job);
            }
            None => self.add(agent, Job::Remove(session)),
        }
    }

    fn operation(&self, agent: &Agent, job: &Job) -> Operation {
        let delete = |place: Place, token| {
            let delete = Delete {
                token,
                ..Delete::default()
            };
            Operation::new(place, Action::Delete(delete))
        };
        match job {
            Job::Look(session) | Job::Suspect(session) => {
                Operation::read(SessionRecord::place(*session))
            }
            Job::Mark(session, number) => {
                let lanes = self.watched.get(session).map(|watched| watched.lanes);
                let lanes = lanes.unwrap_or(Lanes {
                    session: *session,
                    first: 0,
                    count: 0,
                    incarnation: 0,
                });
                let write = Write {
                    value: SessionRecord {
                        lanes,
                        ending: true,
                    }
                    .bytes()
                    .to_vec(),
                    when: When::Number(*number),
                    session: *session,
                    ..Write::default()
                };
                Operation::new(SessionRecord::place(*session), Action::Write(write))
            }
            Job::Move(group, lane, incarnation) => {
                let place = Place::within(*group, Default::default());
                let action = Action::LaneNext {
                    lane: *lane,
                    incarnation: *incarnation,
                };
                Operation::new(place, action)
            }
            Job::Scan(group, slot) => {
                let place = Place::within(*group, Default::default());
                let action = Action::Scan {
                    slot: *slot,
                    reading: Reading::Leased,
                };
                Operation::new(place, action)
            }
            Job::Decision(_, redo) => Operation::read(redo.decision_place()),
            Job::Apply(redo) => redo.apply(),
            Job::Release(place, owner) => Operation::release(place.clone(), *owner),
            Job::Delete(place, token) | Job::Forget(_, place, token) => {
                delete(place.clone(), *token)
            }
            Job::Remove(session) => {
                let place = SessionRecord::place(*session);
                let group = agent.group(&place);
                delete(Place::within(group, place.key), 0)
            }
        }
    }

    /// Does what is due at `now`: looks at sessions.
    pub fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        let groups = agent.settings().groups;
        self.work.resize_with(groups.into(), Work::default);
        let mut looks = Vec::new();
        for (session, watched) in &mut self.watched {
            if !watched.asked && !self.ending.contains_key(session) && now >= watched.next {
                watched.asked = true;
                looks.push(Job::Look(*session));
            }
        }
        for look in looks {
            self.add(agent, look);
        }
        self.advance(now, agent);
    }

    /// When [`Reaper::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        let looks = self
            .watched
            .iter()
            .filter(|(session, watched)| !watched.asked && !self.ending.contains_key(session));
        looks
            .map(|(_, watched)| watched.next)
            .chain(self.again)
            .min()
    }
}
