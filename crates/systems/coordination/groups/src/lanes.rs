//! Lanes of sessions: which are free, and who has the others (rule 19).

use std::collections::BTreeMap;

use core::net::SocketAddrV4;

use stateplane_wire::coordination_control::Lanes;

use crate::decision::{LaneBook, LaneRun, OpenSession};

/// The last number of a session: each needs two versions of the book.
const LAST_SESSION: u32 = u32::MAX >> 1;

/// A lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Lane {
    /// Incarnation that the lane has in every group where it was used, 0 where it was not.
    incarnation: u16,
    /// The session that has it, 0 if it is free.
    session: u32,
}

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is not stored yet that it has its lanes.
    Opens,
    /// It has its lanes.
    Open,
    /// It was ended, which is not stored yet.
    Closes,
}

/// A session that is not closed.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) open: OpenSession,
    state: State,
    /// Time in µs from which this controller knows it.
    pub(crate) since: u64,
    /// Clients that asked for it, or for its end, and wait until that is stored.
    asker: Option<SocketAddrV4>,
}

impl Session {
    /// True if it has its lanes and was not ended.
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }
}

/// State of a session when a book was stored, and who waits for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) session: OpenSession,
    /// True if it is closed, false if it was opened.
    pub(crate) closed: bool,
    pub(crate) to: Option<SocketAddrV4>,
}

/// All lanes and sessions.
#[derive(Debug, Clone)]
pub(crate) struct LaneTable {
    lanes: Vec<Lane>,
    pub(crate) sessions: BTreeMap<u32, Session>,
    by_nonce: BTreeMap<u64, u32>,
    /// The greatest number of a session so far.
    last: u32,
    /// Version of the last book.
    version: u32,
    /// The book that is being stored, one at a time.
    storing: Option<LaneBook>,
    /// True if something changed since the last book.
    changed: bool,
}

impl LaneTable {
    /// The table of `lanes` lanes as `stored` has it.
    pub(crate) fn new(lanes: u16, stored: Option<&LaneBook>, now: u64) -> LaneTable {
        let mut table = LaneTable {
            lanes: vec![Lane::default(); lanes.into()],
            sessions: BTreeMap::new(),
            by_nonce: BTreeMap::new(),
            last: 0,
            version: 0,
            storing: None,
            changed: false,
        };
        if let Some(book) = stored {
            table.last = book.last;
            table.version = book.version;
            for run in &book.free {
                for lane in table.span(run.first, run.count) {
                    lane.incarnation = run.incarnation;
                }
            }
            for session in &book.sessions {
                table.take(*session, State::Open, now, None);
            }
        }
        table
    }

    fn span(&mut self, first: u16, count: u16) -> impl Iterator<Item = &mut Lane> {
        let places = self.lanes.iter_mut().skip(first.into());
        places.take(count.into())
    }

    fn take(&mut self, open: OpenSession, state: State, now: u64, asker: Option<SocketAddrV4>) {
        let lanes = open.lanes;
        for lane in self.span(lanes.first, lanes.count) {
            lane.incarnation = lanes.incarnation;
            lane.session = lanes.session;
        }
        self.by_nonce.insert(open.nonce, lanes.session);
        let session = Session {
            open,
            state,
            since: now,
            asker,
        };
        self.sessions.insert(lanes.session, session);
    }

    /// The session that was opened with `nonce`.
    pub(crate) fn of_nonce(&self, nonce: u64) -> Option<&Session> {
        self.sessions.get(self.by_nonce.get(&nonce)?)
    }

    /// Lanes that are free.
    pub(crate) fn free_lanes(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.is_free()).count()
    }

    /// True if a session of this number was once opened.
    pub(crate) fn was_opened(&self, session: u32) -> bool {
        (1..=self.last).contains(&session)
    }

    /// Gives at most `count` lanes to a new session, for `asker`, once that is stored; false if no
    /// lane is free or no number of a session is left.
    pub(crate) fn open(&mut self, now: u64, nonce: u64, count: u16, asker: SocketAddrV4) -> bool {
        let Some((first, count)) = self.run(count).filter(|_| self.last < LAST_SESSION) else {
            return false;
        };
        self.last += 1;
        let session = self.last;
        let lanes = Lanes {
            session,
            first,
            count,
            incarnation: self.lanes[usize::from(first)].incarnation,
        };
        self.take(OpenSession { lanes, nonce }, State::Opens, now, Some(asker));
        self.changed = true;
        true
    }

    /// First lane and number of lanes for who wants `count`: of all runs of free lanes of one
    /// incarnation that have so many, one of the lowest incarnation, so that incarnations stay
    /// together and runs long, and of those one of the shortest; otherwise the longest run.
    fn run(&self, count: u16) -> Option<(u16, u16)> {
        let runs = self.runs(Lane::is_free);
        let best = runs.min_by_key(|run| {
            let is_long = run.count >= count;
            let lacking = if is_long { 0 } else { count - run.count };
            let beyond = if is_long { run.count } else { 0 };
            (lacking, run.incarnation, beyond)
        });
        best.map(|run| (run.first, run.count.min(count)))
    }

    /// The longest runs of equal lanes for which `counts` is true.
    fn runs(&self, counts: impl Fn(&Lane) -> bool) -> impl Iterator<Item = LaneRun> {
        let mut first = 0;
        let runs = self.lanes.chunk_by(|a, b| a == b).map(move |run| {
            let begin = first;
            first += run.len() as u16;
            (run[0], begin, run.len() as u16)
        });
        let runs = runs.filter(move |(lane, ..)| counts(lane));
        runs.map(|(lane, first, count)| LaneRun {
            first,
            count,
            incarnation: lane.incarnation,
        })
    }

    /// Takes back the lanes of a session, for `asker`, once that is stored. Returns false if the
    /// session is not there; lanes that are not the session's change nothing.
    pub(crate) fn close(&mut self, lanes: &Lanes, asker: SocketAddrV4) -> bool {
        let Some(session) = self.sessions.get_mut(&lanes.session) else {
            return false;
        };
        if session.open.lanes == *lanes && session.state != State::Opens {
            session.asker = Some(asker);
            self.changed |= session.state == State::Open;
            session.state = State::Closes;
        }
        true
    }

    /// A client that asks again for a session that is not stored yet is answered then.
    pub(crate) fn ask_again(&mut self, nonce: u64, asker: SocketAddrV4) {
        let session = self.by_nonce.get(&nonce);
        let session = session.and_then(|session| self.sessions.get_mut(session));
        if let Some(session) = session.filter(|session| session.state == State::Opens) {
            session.asker = Some(asker);
        }
    }

    /// The next book to store, if something changed and none is being stored.
    pub(crate) fn poll_book(&mut self) -> Option<LaneBook> {
        if !self.changed || self.storing.is_some() {
            return None;
        }
        self.changed = false;
        self.version = self.version.saturating_add(1);
        let (mut kept, mut closing) = (Vec::new(), Vec::new());
        for session in self.sessions.values() {
            if session.state == State::Closes {
                closing.push(session.open.lanes);
            } else {
                kept.push(session.open);
            }
        }
        let free = self.runs(|lane| lane.session == 0 && lane.incarnation > 0);
        let next = |lanes: &Lanes| LaneRun {
            first: lanes.first,
            count: lanes.count,
            incarnation: lanes.incarnation.saturating_add(1),
        };
        let book = LaneBook {
            version: self.version,
            last: self.last,
            free: free.chain(closing.iter().map(next)).collect(),
            sessions: kept,
        };
        self.storing = Some(book.clone());
        Some(book)
    }

    /// Takes that `book` is stored, and gives what became of sessions; `None` if it is not the one
    /// that was to be stored.
    pub(crate) fn stored(&mut self, book: &LaneBook) -> Option<Vec<Answer>> {
        if self.storing.as_ref() != Some(book) {
            return None;
        }
        self.storing = None;
        let mut answers = Vec::new();
        for session in &book.sessions {
            let known = self.sessions.get_mut(&session.lanes.session);
            if let Some(known) = known.filter(|known| known.state == State::Opens) {
                known.state = State::Open;
                answers.push(Answer {
                    session: *session,
                    closed: false,
                    to: known.asker.take(),
                });
            }
        }
        let written = |number: &u32| {
            let place = book
                .sessions
                .binary_search_by_key(number, |it| it.lanes.session);
            place.is_ok() || *number > book.last
        };
        let closed = self
            .sessions
            .keys()
            .copied()
            .filter(|number| !written(number));
        let closed: Vec<u32> = closed.collect();
        for number in closed {
            let Some(session) = self.sessions.remove(&number) else {
                continue;
            };
            let lanes = session.open.lanes;
            for lane in self.span(lanes.first, lanes.count) {
                lane.incarnation = lanes.incarnation.saturating_add(1);
                lane.session = 0;
            }
            self.by_nonce.remove(&session.open.nonce);
            answers.push(Answer {
                session: session.open,
                closed: true,
                to: session.asker,
            });
        }
        Some(answers)
    }
}

impl Lane {
    /// The last incarnation has no next, to which the end of a session would move the lane.
    fn is_free(&self) -> bool {
        self.session == 0 && self.incarnation < u16::MAX
    }
}

#[cfg(test)]
mod tests;
