//! Lanes of sessions: which are free, and who has the others (rule 19).

use std::collections::BTreeMap;

use core::net::SocketAddrV4;

use stateplane_wire::coordination_control::Lanes;

use crate::decision::{MOST_SESSIONS, Range};

/// A lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Lane {
    /// Incarnation that the lane has in every group where it was used, 0 where it was not.
    incarnation: u16,
    /// The session that has it, 0 if it is free.
    session: u32,
}

/// A session that is not closed.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) range: Range,
    /// True if it is stored that it has the lanes.
    pub(crate) opened: bool,
    /// Time in µs from which this controller knows it.
    pub(crate) since: u64,
    /// Who asks for it, or for its end, and waits until that is stored.
    pub(crate) asker: Option<SocketAddrV4>,
}

/// All lanes and sessions.
#[derive(Debug, Clone)]
pub(crate) struct LaneTable {
    lanes: Vec<Lane>,
    pub(crate) sessions: BTreeMap<u32, Session>,
    by_nonce: BTreeMap<u64, u32>,
    /// The greatest number of a session so far.
    last: u32,
}

impl LaneTable {
    /// The table of `lanes` lanes after `stored` ranges.
    pub(crate) fn new(lanes: u16, stored: impl IntoIterator<Item = Range>, now: u64) -> LaneTable {
        let mut table = LaneTable {
            lanes: vec![Lane::default(); lanes.into()],
            sessions: BTreeMap::new(),
            by_nonce: BTreeMap::new(),
            last: 0,
        };
        let mut stored: Vec<Range> = stored.into_iter().collect();
        // A later session may have lanes of several earlier ones.
        stored.sort_by_key(|range| range.lanes.session);
        for range in stored {
            table.last = table.last.max(range.lanes.session);
            if range.closed {
                table.free(&range.lanes);
            } else {
                table.take(range, now, true, None);
            }
        }
        table
    }

    fn span(&mut self, lanes: &Lanes) -> impl Iterator<Item = &mut Lane> {
        let places = self.lanes.iter_mut().skip(lanes.first.into());
        places.take(lanes.count.into())
    }

    fn take(&mut self, range: Range, now: u64, opened: bool, asker: Option<SocketAddrV4>) {
        let lanes = range.lanes;
        for lane in self.span(&lanes) {
            lane.incarnation = lanes.incarnation;
            lane.session = lanes.session;
        }
        self.by_nonce.insert(range.nonce, lanes.session);
        self.sessions.insert(
            lanes.session,
            Session {
                range,
                opened,
                since: now,
                asker,
            },
        );
    }

    fn free(&mut self, lanes: &Lanes) {
        for lane in self.span(lanes) {
            lane.incarnation = lanes.incarnation.saturating_add(1);
            lane.session = 0;
        }
    }

    /// The session that was opened with `nonce`.
    pub(crate) fn of_nonce(&mut self, nonce: u64) -> Option<&mut Session> {
        let session = self.by_nonce.get(&nonce)?;
        self.sessions.get_mut(session)
    }

    /// Lanes that are free.
    pub(crate) fn free_lanes(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.is_free()).count()
    }

    /// True if a session of this number was once opened.
    pub(crate) fn was_opened(&self, session: u32) -> bool {
        (1..=self.last).contains(&session)
    }

    /// Gives at most `count` lanes to a new session, for `asker`; `None` if no lane is free or no
    /// number of a session is left.
    pub(crate) fn open(
        &mut self,
        now: u64,
        nonce: u64,
        count: u16,
        asker: SocketAddrV4,
    ) -> Option<Range> {
        if self.last >= MOST_SESSIONS {
            return None;
        }
        let (first, count) = self.run(count)?;
        let session = self.last + 1;
        self.last = session;
        let incarnation = self.lanes[usize::from(first)].incarnation;
        let range = Range {
            lanes: Lanes {
                session,
                first,
                count,
                incarnation,
            },
            nonce,
            closed: false,
        };
        self.take(range, now, false, Some(asker));
        Some(range)
    }

    /// First lane and number of lanes for who wants `count`: of all runs of free lanes of one
    /// incarnation that have so many, one of the lowest incarnation, so that incarnations stay
    /// together and runs long, and of those one of the shortest; otherwise the longest run.
    fn run(&self, count: u16) -> Option<(u16, u16)> {
        let mut best: Option<(bool, u16, u16, u16)> = None;
        let mut first = 0;
        while let Some(lane) = self.lanes.get(usize::from(first)) {
            if !lane.is_free() {
                first += 1;
                continue;
            }
            let run = self.lanes[usize::from(first)..].iter();
            let length = run.take_while(|other| *other == lane).count() as u16;
            let found = (length >= count, length, lane.incarnation, first);
            let is_better = |best: &(bool, u16, u16, u16)| match (found.0, best.0) {
                (true, true) => (found.2, found.1) < (best.2, best.1),
                (false, false) => (best.1, found.2) < (found.1, best.2),
                (enough, _) => enough,
            };
            if best.as_ref().is_none_or(is_better) {
                best = Some(found);
            }
            first += length;
        }
        best.map(|(_, length, _, first)| (first, length.min(count)))
    }

    /// The range to store when the session of `lanes` was ended; `None` if that is decided already,
    /// or the session has other lanes.
    pub(crate) fn close(&mut self, lanes: &Lanes, asker: SocketAddrV4) -> Option<Range> {
        let session = self.sessions.get_mut(&lanes.session)?;
        if session.range.lanes != *lanes || !session.opened {
            return None;
        }
        session.asker = Some(asker);
        if session.range.closed {
            return None;
        }
        session.range.closed = true;
        Some(session.range)
    }

    /// Takes that `range` is stored, and gives who waits for that; `None` if it was not decided.
    pub(crate) fn stored(&mut self, range: &Range) -> Option<Option<SocketAddrV4>> {
        let session = self.sessions.get_mut(&range.lanes.session)?;
        if session.range != *range || session.opened != range.closed {
            return None;
        }
        session.opened = true;
        let asker = session.asker.take();
        if range.closed {
            self.sessions.remove(&range.lanes.session);
            self.by_nonce.remove(&range.nonce);
            self.free(&range.lanes);
        }
        Some(asker)
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
