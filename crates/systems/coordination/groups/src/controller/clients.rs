//! Messages from and to clients.

use core::net::SocketAddrV4;

use stateplane_wire::coordination::Address;
use stateplane_wire::coordination_control::{
    self, Chain, DOWN, END_OF_GROUPS, END_OF_SESSIONS, JOINS, Lanes, Learn, Message, Opened,
};

use super::{Controller, Group};
use crate::decision::{LaneBook, OpenSession};

impl Controller {
    pub(super) fn client_message(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        match Message::parse(bytes) {
            Ok(Message::Learn(learn)) => self.learn(from, &learn, bytes.len()),
            Ok(Message::Open { nonce, lanes }) if lanes > 0 => self.open(now, from, nonce, lanes),
            Ok(Message::Close(lanes)) => self.close(from, &lanes),
            Ok(Message::List { session, .. }) => self.list(now, from, session, bytes.len()),
            _ => self.counters.malformed += 1,
        }
    }

    /// Answers with the chains, from a group on, that are newer than what the client knows.
    fn learn(&mut self, from: SocketAddrV4, learn: &Learn, length: usize) {
        let after = if learn.controller == self.incarnation {
            learn.version
        } else {
            0
        };
        let newer = self.groups.range(learn.group..);
        let newer = newer.filter(|(_, group)| group.version > after);
        let mut newer = newer.filter_map(|(number, group)| Some((*number, group.row()?)));
        let room = coordination_control::chains_within(length);
        let chains = newer.by_ref().take(room).map(|(_, row)| row);
        let message = Message::Chains {
            chains: chains.collect(),
            next: newer.next().map_or(END_OF_GROUPS, |(number, _)| number),
            controller: self.incarnation,
            version: self.version,
            groups: self.settings.groups,
            slots: self.settings.slots,
        };
        self.send(from, message.to_vec());
    }

    /// Gives a session with lanes, or the same one again.
    fn open(&mut self, now: u64, from: SocketAddrV4, nonce: u64, lanes: u16) {
        if self.is_behind() {
            return;
        }
        if let Some(session) = self.lanes.of_nonce(nonce) {
            if session.is_open() {
                let open = session.open;
                self.answer_open(from, &open);
            } else {
                self.lanes.ask_again(nonce, from);
            }
            return;
        }
        if !self.lanes.open(now, nonce, lanes, from) {
            self.counters.refused += 1;
            let (session, first, count, incarnation) = (0, 0, 0, 0);
            let lanes = Lanes {
                session,
                first,
                count,
                incarnation,
            };
            self.answer_open(from, &OpenSession { lanes, nonce });
        }
    }

    fn answer_open(&mut self, to: SocketAddrV4, session: &OpenSession) {
        let opened = Opened {
            nonce: session.nonce,
            session: session.lanes.session,
            first_lane: session.lanes.first,
            count: session.lanes.count,
            lane_incarnation: session.lanes.incarnation,
            groups: self.settings.groups,
            lanes: self.settings.lanes,
            slots: self.settings.slots,
            ttl_ms: self.ttl_ms(),
        };
        self.send(to, Message::Opened(opened).to_vec());
    }

    fn ttl_ms(&self) -> u32 {
        milliseconds(self.settings.session_ttl)
    }

    /// Takes back the lanes of a session.
    fn close(&mut self, from: SocketAddrV4, lanes: &Lanes) {
        if self.is_behind() {
            return;
        }
        if self.lanes.close(lanes, from) {
            return;
        }
        if self.lanes.was_opened(lanes.session) {
            self.answer_close(from, lanes.session);
        } else {
            self.counters.malformed += 1;
        }
    }

    fn answer_close(&mut self, to: SocketAddrV4, session: u32) {
        self.send(to, Message::Ended { session }.to_vec());
    }

    pub(super) fn book_stored(&mut self, book: &LaneBook) -> bool {
        let Some(answers) = self.lanes.stored(book) else {
            return false;
        };
        for answer in answers {
            if answer.closed {
                self.counters.closed += 1;
            } else {
                self.counters.opened += 1;
            }
            match answer.to {
                Some(to) if answer.closed => self.answer_close(to, answer.session.lanes.session),
                Some(to) => self.answer_open(to, &answer.session),
                None => {}
            }
        }
        true
    }

    fn list(&mut self, now: u64, from: SocketAddrV4, first: u32, length: usize) {
        let sessions = self.lanes.sessions.range(first..);
        let mut sessions = sessions.filter(|(_, session)| session.is_open());
        let room = coordination_control::sessions_within(length);
        let rows = sessions.by_ref().take(room).map(|(number, session)| {
            let lanes = session.open.lanes;
            coordination_control::Session {
                session: *number,
                first_lane: lanes.first,
                count: lanes.count,
                lane_incarnation: lanes.incarnation,
                age_ms: milliseconds(now.saturating_sub(session.since)),
            }
        });
        let message = Message::Sessions {
            rows: rows.collect(),
            next: sessions
                .next()
                .map_or(END_OF_SESSIONS, |(number, _)| *number),
            controller: self.incarnation,
            // No more than there are lanes.
            sessions: self
                .lanes
                .sessions
                .values()
                .filter(|it| it.is_open())
                .count() as u16,
            free_lanes: self.lanes.free_lanes() as u32,
            ttl_ms: self.ttl_ms(),
        };
        self.send(from, message.to_vec());
    }
}

fn milliseconds(time: u64) -> u32 {
    u32::try_from(time / 1000).unwrap_or(u32::MAX)
}

impl Group {
    /// The group's chain, as clients learn it; `None` if it never had one.
    fn row(&self) -> Option<Chain> {
        let config = self.shown.as_ref()?;
        let joins = u8::from(config.joining.is_some()) * JOINS;
        let mut row = Chain {
            group: config.group,
            generation: config.generation,
            epoch: config.epoch,
            flags: joins | (u8::from(self.down) * DOWN),
            members: config.members.len() as u8,
            chain_1: Address::NONE,
            chain_2: Address::NONE,
            chain_3: Address::NONE,
            chain_4: Address::NONE,
        };
        row.set_switches(config.all().map(|member| member.address));
        Some(row)
    }
}
