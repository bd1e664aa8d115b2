//! A member of a group in a protocol like PrimCast (Pacheco, Coelho and Pedone, Middleware 2023), for
//! runs in which nothing is lost and nothing fails, without IO.
//!
//! The leader of each group that a message addresses proposes a timestamp to all members of all these
//! groups (its own members get the payload with it), each member of its group acknowledges to all of
//! them, and a message is decided when a majority of each group has acknowledged its group's
//! proposal; a proposal is its leader's acknowledgement. Its final timestamp is the greatest. A member
//! delivers in the order of final timestamps, once no smaller one can come: its leader, who alone
//! proposes for the group, has said a clock that is not below (by a proposal, or by a BUMP where
//! another group's proposal moved the clock), and what it proposed before lies behind or is decided.

use super::frame::{Buffers, Header, kind};
use super::system::Shape;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Messages that are remembered as delivered, by the low bits of their ids: acknowledgements of a
/// minority come later.
const OVER: usize = 1 << 16;

/// Addressee of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The member in this place.
    Place(u8),
    /// The receiver that belongs to the member.
    Receiver,
}

/// A message under way.
#[derive(Debug, Default)]
struct Pending {
    destinations: u8,
    /// Places that acknowledged each group's proposal.
    votes: [u8; 2],
    /// Greatest proposal, and its group.
    greatest: (u64, u8),
    /// The own leader's proposal; 0 before it comes.
    local: u64,
    decided: bool,
    /// The datagram with the payload.
    datagram: Arc<Vec<u8>>,
}

/// A member.
#[derive(Debug)]
pub struct Member {
    shape: Shape,
    place: u8,
    group: u8,
    clock: u64,
    /// Clock that the own group's leader has said.
    heard: u64,
    pending: FxHashMap<u32, Pending>,
    /// Messages that the own leader proposed, by final timestamp and its group, or by the proposal
    /// where that is not known.
    order: BTreeMap<(u64, u8), u32>,
    over: Vec<u32>,
    buffers: Buffers,
}

impl Member {
    /// A member that has heard nothing.
    pub fn new(shape: Shape, place: u8) -> Self {
        Self {
            shape,
            place,
            group: shape.group_of(place),
            clock: 0,
            heard: 0,
            pending: FxHashMap::default(),
            order: BTreeMap::new(),
            over: vec![0; OVER],
            buffers: Buffers::default(),
        }
    }

    fn leads(&self) -> bool {
        self.shape.leader(self.group) == self.place
    }

    /// Other places of the groups in the map `groups`.
    fn others(&self, groups: u8) -> impl Iterator<Item = u8> + use<> {
        let (shape, own) = (self.shape, self.place);
        let places = 0..shape.places();
        places.filter(move |place| *place != own && groups >> shape.group_of(*place) & 1 == 1)
    }

    /// Takes a datagram, and gives `send` what is to leave, in this order.
    pub fn handle(&mut self, datagram: &[u8], send: &mut impl FnMut(To, Arc<Vec<u8>>)) {
        let Some((header, payload)) = Header::parse(datagram) else {
            return;
        };
        match header.kind {
            kind::START if self.leads() => self.propose(&header, payload, send),
            kind::PROP if header.group == self.group => self.accept(&header, payload, send),
            kind::PROP => self.learn(&header, send),
            kind::ACK => {
                self.vote(&header, header.origin);
                self.advance(header.timestamp, send);
            }
            kind::BUMP => self.heard = self.heard.max(header.timestamp),
            _ => return,
        }
        self.settle(header.id);
        self.deliver(send);
    }

    /// The leader's proposal.
    fn propose(&mut self, start: &Header, payload: &[u8], send: &mut impl FnMut(To, Arc<Vec<u8>>)) {
        if self.over[start.id as usize % OVER] == start.id {
            return;
        }
        self.clock += 1;
        self.heard = self.clock;
        let header = Header {
            kind: kind::PROP,
            group: self.group,
            origin: self.place,
            timestamp: self.clock,
            ..*start
        };
        let whole = self.buffers.kept(&header, payload);
        let own = 1 << self.group;
        for place in self.others(own) {
            send(To::Place(place), Arc::clone(&whole));
        }
        if header.destinations != own {
            // Their members have the payload from their leaders.
            let bare = self.buffers.datagram(&header, &[]);
            for place in self.others(header.destinations & !own) {
                send(To::Place(place), Arc::clone(&bare));
            }
        }
        self.vote(&header, self.place);
        self.enter(&header, whole);
    }

    /// The own leader's proposal, at a follower.
    fn accept(&mut self, prop: &Header, payload: &[u8], send: &mut impl FnMut(To, Arc<Vec<u8>>)) {
        self.clock = self.clock.max(prop.timestamp);
        self.heard = self.heard.max(prop.timestamp);
        let ack = Header {
            kind: kind::ACK,
            origin: self.place,
            ..*prop
        };
        let bytes = self.buffers.datagram(&ack, &[]);
        for place in self.others(prop.destinations) {
            send(To::Place(place), Arc::clone(&bytes));
        }
        self.vote(prop, prop.origin);
        self.vote(prop, self.place);
        let whole = self.buffers.kept(prop, payload);
        self.enter(prop, whole);
    }

    /// Another group's proposal.
    fn learn(&mut self, prop: &Header, send: &mut impl FnMut(To, Arc<Vec<u8>>)) {
        self.vote(prop, prop.origin);
        self.advance(prop.timestamp, send);
    }

    /// The clock is not behind a proposal; a leader that goes forward tells its group.
    fn advance(&mut self, timestamp: u64, send: &mut impl FnMut(To, Arc<Vec<u8>>)) {
        if timestamp <= self.clock {
            return;
        }
        self.clock = timestamp;
        if self.leads() {
            self.heard = timestamp;
            let bump = Header {
                kind: kind::BUMP,
                origin: self.place,
                group: self.group,
                timestamp,
                ..Header::default()
            };
            let bytes = self.buffers.datagram(&bump, &[]);
            for place in self.others(1 << self.group) {
                send(To::Place(place), Arc::clone(&bytes));
            }
        }
    }

    fn vote(&mut self, header: &Header, place: u8) {
        if self.over[header.id as usize % OVER] == header.id {
            return;
        }
        let pending = self.pending.entry(header.id).or_default();
        pending.destinations = header.destinations;
        pending.votes[usize::from(header.group & 1)] |= 1 << place;
        pending.greatest = pending.greatest.max((header.timestamp, header.group));
    }

    /// The own leader's proposal has its place in the order.
    fn enter(&mut self, prop: &Header, datagram: Arc<Vec<u8>>) {
        if let Some(pending) = self.pending.get_mut(&prop.id) {
            pending.local = prop.timestamp;
            pending.datagram = datagram;
            self.order.insert((prop.timestamp, self.group), prop.id);
        }
    }

    /// Decides a message that a majority of each group has acknowledged.
    fn settle(&mut self, id: u32) {
        let Some(pending) = self.pending.get_mut(&id) else {
            return;
        };
        let majority = u32::from(self.shape.majority());
        let lacks = |group: usize| {
            pending.destinations >> group & 1 == 1 && pending.votes[group].count_ones() < majority
        };
        if pending.decided || pending.local == 0 || lacks(0) || lacks(1) {
            return;
        }
        pending.decided = true;
        let place = (pending.local, self.group);
        if pending.greatest != place {
            self.order.remove(&place);
            self.order.insert(pending.greatest, id);
        }
    }

    fn deliver(&mut self, send: &mut impl FnMut(To, Arc<Vec<u8>>)) {
        while let Some(first) = self.order.first_entry() {
            let ((time, _), id) = (*first.key(), *first.get());
            let decided = self.pending.get(&id).is_some_and(|pending| pending.decided);
            if !decided || time > self.heard {
                return;
            }
            first.remove();
            self.over[id as usize % OVER] = id;
            let Some(pending) = self.pending.remove(&id) else {
                continue;
            };
            if self.shape.receiver_of(self.place).is_none() {
                continue;
            }
            let header = Header {
                kind: kind::DELIVER,
                destinations: pending.destinations,
                group: self.group,
                origin: self.place,
                id,
                timestamp: time,
                ..Header::default()
            };
            let datagram = self.buffers.leaving(pending.datagram, &header);
            send(To::Receiver, datagram);
        }
    }
}

#[cfg(test)]
mod tests;
