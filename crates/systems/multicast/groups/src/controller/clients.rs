//! Messages of senders: their sessions, and who leads.

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::multicast_control::{
    Leader, Learn, Message, NO_SLOT, Opened, leaders_within, reason,
};

use super::{Controller, Group};
use crate::decision::{SlotBook, SlotState};
use crate::slots::Asked;

fn leader_of(group: &Group) -> Leader {
    let leading = group.shown.leading();
    Leader {
        group: group.shown.group,
        epoch: group.shown.epoch,
        leader: leading.map_or(Ipv4Addr::UNSPECIFIED, |it| it.address),
    }
}

impl Controller {
    /// Answers with the leaders; who has a session keeps it so.
    pub(super) fn learn(&mut self, now: u64, from: SocketAddrV4, learn: &Learn, length: usize) {
        let open = self.slots.hear(now, learn.slot, learn.incarnation, from);
        let leaders = self.groups.values().map(leader_of);
        let message = Message::Leaders {
            controller: self.incarnation,
            slot: learn.slot,
            incarnation: learn.incarnation,
            open,
            leaders: leaders.take(leaders_within(length)).collect(),
        };
        self.send(from, message.to_vec());
    }

    /// Tells all sessions that a group has another leader, which leads: what they have under way need
    /// not wait to be repeated.
    pub(super) fn tell_senders(&mut self, group: u8) {
        let Some(leader) = self.groups.get(&group).map(leader_of) else {
            return;
        };
        let homes: Vec<_> = self.slots.homes().collect();
        for (slot, incarnation, home) in homes {
            let message = Message::Leaders {
                controller: self.incarnation,
                slot,
                incarnation,
                open: true,
                leaders: vec![leader],
            };
            self.send(home, message.to_vec());
        }
    }

    /// Gives a session, or the same one again; the answer follows when all switches know of it.
    pub(super) fn open(&mut self, now: u64, from: SocketAddrV4, nonce: u64, lanes: u8) {
        if self.is_behind() {
            return;
        }
        let reason = match self.slots.open(now, nonce, lanes, from) {
            Asked::Slot(_) => return,
            Asked::NoSlot => reason::NO_SLOT,
            Asked::NoLane => reason::NO_LANE,
        };
        self.counters.refused += 1;
        let refused = self.opened(nonce, NO_SLOT, 0, 0, reason);
        self.send(from, Message::Opened(refused).to_vec());
    }

    fn opened(&self, nonce: u64, slot: u16, incarnation: u16, lanes: u8, reason: u8) -> Opened {
        let groups = self.groups.keys();
        let ttl = u32::try_from(self.settings.session_ttl / 1000);
        Opened {
            nonce,
            slot,
            incarnation,
            lanes,
            groups: groups.fold(0, |map, group| map | (1 << group)),
            longest: self.settings.longest,
            ttl_ms: ttl.unwrap_or(u32::MAX),
            reason,
        }
    }

    /// Answers those whose session all switches that live know of: no leader refuses it.
    pub(super) fn answer_openers(&mut self) {
        let mut answers = Vec::new();
        for (slot, entry) in self.slots.all() {
            let stored = entry.slot();
            if let SlotState::Open { lanes, nonce } = stored.state
                && entry.is_settled()
                && entry.asker().is_some()
                && self.all_follow(entry.row)
            {
                let opened = self.opened(nonce, slot, stored.incarnation, lanes, reason::OPENED);
                answers.push((slot, opened));
            }
        }
        for (slot, opened) in answers {
            let asker = self.slots.get_mut(slot).and_then(|it| it.take_asker());
            if let Some(to) = asker {
                self.send(to, Message::Opened(opened).to_vec());
            }
        }
    }

    /// Ends a session.
    pub(super) fn close(&mut self, from: SocketAddrV4, slot: u16, incarnation: u16) {
        if !self.is_behind() && self.slots.close(slot, incarnation, from) {
            self.answer_close(from, slot, incarnation);
        }
    }

    fn answer_close(&mut self, to: SocketAddrV4, slot: u16, incarnation: u16) {
        self.send(to, Message::Closed { slot, incarnation }.to_vec());
    }

    pub(super) fn book_stored(&mut self, book: &SlotBook) -> bool {
        let Some(changed) = self.slots.stored(book) else {
            return false;
        };
        for (slot, before) in changed {
            self.publish_slot(slot);
            let Some(entry) = self.slots.get_mut(slot) else {
                continue;
            };
            match entry.slot().state {
                SlotState::Open { .. } => self.counters.opened += 1,
                SlotState::Ended { .. } => {
                    self.counters.ended += 1;
                    if let Some(to) = entry.take_asker() {
                        self.answer_close(to, slot, before.incarnation);
                    }
                }
                SlotState::Free => self.counters.freed += 1,
            }
        }
        true
    }

    /// Passes on slots of ended sessions of which no log holds an entry.
    pub(super) fn free_slots(&mut self) {
        if self.is_behind() {
            return;
        }
        let ended = self.slots.all().filter(|(_, entry)| {
            let state = entry.slot().state;
            matches!(state, SlotState::Ended { .. })
        });
        let clear = ended.filter(|(slot, entry)| self.is_clear(*slot, entry.row));
        let clear: Vec<(u16, u64)> = clear.map(|(slot, entry)| (slot, entry.row)).collect();
        if !clear.is_empty() {
            self.slots.free(|slot, row| clear.contains(&(slot, row)));
        }
    }
}
