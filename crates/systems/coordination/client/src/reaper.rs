//! The reaper: it ends sessions whose clients died (rule 19).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use stateplane_wire::coordination::{Kind, Outcome};

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
    /// Most operations at a time.
    pub window: usize,
    /// Most sessions that are ended in one pass over the groups.
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

/// What a pass over the groups does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Nothing.
    Rest,
    /// All lanes move on: nothing of the sessions is written after that.
    Lanes,
    /// What was decided is finished, while locks cover it.
    Redo,
    /// Locks are released and records deleted.
    Free,
    /// The sessions' records are removed.
    Remove,
}

#[derive(Debug, Clone)]
enum Job {
    Look(u32),
    Mark(u32, u64),
    Move(u16, u16, u16),
    Scan(u16, u16),
    Decision(Redo),
    Apply(Redo),
    Release(Place, Owner),
    Delete(Place, u64),
    Suspect(u32),
    Remove(u32),
}

/// A reaper. Any number run side by side, and any goes on from where another stopped: the record of
/// a session says that it is ending, and all that a reaper does may be done twice.
///
/// Its agent has lanes of its own, of no session that it watches.
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
    dead: BTreeMap<u32, Lanes>,
    /// Sessions of the pass.
    ending: BTreeMap<u32, Lanes>,
    pass: Pass,
    todo: VecDeque<Job>,
    calls: Calls<Job>,
    /// Owners without a session that is watched.
    suspects: BTreeSet<u32>,
    events: VecDeque<Lanes>,
    ended: u64,
    /// When the agent is asked again that had no room.
    again: u64,
}

/// Time after which an agent is asked again that had no room, in µs.
const AGAIN_US: u64 = 10_000;

impl Reaper {
    /// A reaper that watches nothing.
    pub fn new(settings: ReaperSettings) -> Reaper {
        Reaper {
            settings,
            watched: BTreeMap::new(),
            dead: BTreeMap::new(),
            ending: BTreeMap::new(),
            pass: Pass::Rest,
            todo: VecDeque::new(),
            calls: Calls::default(),
            suspects: BTreeSet::new(),
            events: VecDeque::new(),
            ended: 0,
            again: 0,
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
            match end {
                End::Answered(answer) => self.answered(now, agent, job, answer),
                // The agent has other lanes then, or the group other contents.
                End::Never | End::Lost | End::Clash => self.todo.push_back(job),
            }
            self.advance(now, agent);
        }
        concerned
    }

    fn answered(&mut self, now: u64, agent: &Agent, job: Job, answer: Answer) {
        let done = answer.outcome == Outcome::Done;
        match job {
            Job::Look(session) => self.looked(now, session, answer),
            Job::Mark(session, _) => {
                let Some(watched) = self.watched.get_mut(&session) else {
                    return;
                };
                watched.asked = false;
                if done {
                    self.dead.insert(session, watched.lanes);
                } else {
                    watched.next = now;
                }
            }
            Job::Scan(group, slot) => self.scanned(agent, group, slot, answer),
            Job::Decision(redo) => self.todo.push_back(match done {
                true => Job::Apply(redo),
                false => Job::Delete(redo.place(), 0),
            }),
            // A key without room for what was decided is tried until there is some.
            Job::Apply(redo) => self.todo.push_back(match answer.outcome {
                Outcome::Full => Job::Apply(redo),
                _ => Job::Delete(redo.place(), 0),
            }),
            Job::Suspect(session) => {
                if answer.outcome == Outcome::Absent {
                    let lanes = Lanes {
                        session,
                        first: 0,
                        count: 0,
                        incarnation: 0,
                    };
                    self.dead.insert(session, lanes);
                }
            }
            Job::Remove(session) => {
                self.watched.remove(&session);
                if let Some(lanes) = self.ending.remove(&session) {
                    self.ended += 1;
                    self.events.push_back(lanes);
                }
            }
            Job::Move(..) | Job::Release(..) | Job::Delete(..) => {}
        }
    }

    fn looked(&mut self, now: u64, session: u32, answer: Answer) {
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
            self.dead.insert(session, parsed.lanes);
            return;
        }
        match watched.seen {
            Some((seen, since)) if seen == number => {
                if now < since.saturating_add(self.settings.ttl_us) {
                    return;
                }
                if number == 0 {
                    // It was opened and never made, or made and removed.
                    self.dead.insert(session, watched.lanes);
                } else {
                    watched.asked = true;
                    self.todo.push_back(Job::Mark(session, number));
                }
            }
            _ => watched.seen = Some((number, now)),
        }
    }

    fn scanned(&mut self, agent: &Agent, group: u16, slot: u16, answer: Answer) {
        let Some(record) = answer.record else {
            if answer.more && answer.slot > slot {
                self.todo.push_back(Job::Scan(group, answer.slot));
            }
            return;
        };
        if let Some(next) = answer.slot.checked_add(1) {
            self.todo.push_back(Job::Scan(group, next));
        }
        match self.pass {
            Pass::Redo => {
                let ends = self.ending.contains_key(&record.session);
                let redo = ends.then(|| Redo::parse(group, &record)).flatten();
                self.todo.extend(redo.map(Job::Decision));
            }
            Pass::Free => self.free(agent, group, &record),
            Pass::Rest | Pass::Lanes | Pass::Remove => {}
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
            if self.ending.contains_key(&session) {
                self.todo.push_back(match record.kind {
                    Kind::Lock => Job::Release(place.clone(), owner),
                    _ => Job::Delete(place.clone(), record.token),
                });
            } else if !self.watched.contains_key(&session)
                && session != 0
                && agent.lanes().is_none_or(|lanes| lanes.session != session)
            {
                self.suspects.insert(session);
            }
        }
    }

    /// Begins what is to do, and the next pass when one is over.
    fn advance(&mut self, now: u64, agent: &mut Agent) {
        loop {
            while self.calls.len() < self.settings.window {
                let Some(job) = self.todo.pop_front() else {
                    break;
                };
                let operation = self.operation(agent, &job);
                match self.calls.begin(now, agent, operation, job.clone()) {
                    Ok(()) => {}
                    // A lane of its own it does not move.
                    Err(Refused::OutOfRange | Refused::NoGroup(_)) => {}
                    Err(Refused::Full | Refused::NoLanes | Refused::TooLong(_)) => {
                        self.todo.push_front(job);
                        self.again = now.saturating_add(AGAIN_US);
                        return;
                    }
                }
            }
            let looks = |job: &Job| matches!(job, Job::Look(_) | Job::Mark(..) | Job::Suspect(_));
            if self.todo.iter().any(|job| !looks(job)) || self.calls.iter().any(|job| !looks(job)) {
                return;
            }
            if !self.next_pass(agent) {
                return;
            }
        }
    }

    /// Begins the next pass; false if there is nothing to do.
    fn next_pass(&mut self, agent: &Agent) -> bool {
        let groups = agent.settings().groups;
        match self.pass {
            Pass::Rest => {
                while self.ending.len() < self.settings.batch {
                    let Some((session, lanes)) = self.dead.pop_first() else {
                        break;
                    };
                    self.ending.insert(session, lanes);
                }
                if self.ending.is_empty() {
                    return false;
                }
                self.pass = Pass::Lanes;
                for lanes in self.ending.values() {
                    let next = lanes.incarnation.wrapping_add(1);
                    let lanes = lanes.first..lanes.first.saturating_add(lanes.count);
                    let moves = lanes.flat_map(|lane| (0..groups).map(move |group| (group, lane)));
                    self.todo
                        .extend(moves.map(|(group, lane)| Job::Move(group, lane, next)));
                }
            }
            Pass::Lanes | Pass::Redo => {
                self.pass = match self.pass {
                    Pass::Lanes => Pass::Redo,
                    _ => Pass::Free,
                };
                self.todo
                    .extend((0..groups).map(|group| Job::Scan(group, 0)));
            }
            Pass::Free => {
                self.pass = Pass::Remove;
                self.todo
                    .extend(self.ending.keys().map(|session| Job::Remove(*session)));
                let suspects = core::mem::take(&mut self.suspects);
                self.todo.extend(suspects.into_iter().map(Job::Suspect));
            }
            Pass::Remove => self.pass = Pass::Rest,
        }
        true
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
            Job::Decision(redo) => Operation::read(redo.decision_place()),
            Job::Apply(redo) => redo.apply(),
            Job::Release(place, owner) => Operation::release(place.clone(), *owner),
            Job::Delete(place, token) => delete(place.clone(), *token),
            Job::Remove(session) => {
                let place = SessionRecord::place(*session);
                let group = agent.group(&place);
                delete(Place::within(group, place.key), 0)
            }
        }
    }

    /// Does what is due at `now`: looks at sessions.
    pub fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        for (session, watched) in &mut self.watched {
            let ends = self.dead.contains_key(session) || self.ending.contains_key(session);
            if !watched.asked && !ends && now >= watched.next {
                watched.asked = true;
                self.todo.push_back(Job::Look(*session));
            }
        }
        self.advance(now, agent);
    }

    /// When [`Reaper::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        let looks = self.watched.iter().filter(|(session, watched)| {
            let ends = self.dead.contains_key(session) || self.ending.contains_key(session);
            !watched.asked && !ends
        });
        let again = (!self.todo.is_empty() && self.calls.len() < self.settings.window)
            .then_some(self.again);
        looks.map(|(_, watched)| watched.next).chain(again).min()
    }
}
