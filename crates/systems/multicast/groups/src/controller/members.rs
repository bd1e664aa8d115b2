//! Messages to and from the members' programs: PREPARE and PROMISE, LEAD and LEADING.

use core::net::SocketAddrV4;

use stateplane_wire::multicast::{Code, MessageType, NO_LEARNER, PORT, Packet, Repr, flag};

use super::Controller;
use super::epochs::{Promise, is_newer};
use crate::decision::Member;

/// BEATs of a switch that may come without its word of an epoch that this controller never began,
/// before that is taken for a damaged or forged message.
pub(super) const PATIENCE: u32 = 16;

/// Map of the numbers of `numbers`.
fn map(numbers: impl Iterator<Item = u8>) -> u32 {
    numbers.fold(0, |map, number| map | (1 << number))
}

impl Controller {
    pub(super) fn member_message(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        let Ok(packet) = Packet::new_checked(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        let message = Repr::parse(&packet);
        if !self.by_address.contains_key(from.ip()) {
            self.counters.foreign += 1;
            return;
        }
        let Some(group) = self.groups.get(&message.group) else {
            self.counters.malformed += 1;
            return;
        };
        let of_sender = |member: &Member| {
            member.address == *from.ip() && member.incarnation == message.incarnation
        };
        match message.message_type {
            MessageType::Promise => {
                let voters = group.config.voters();
                let mut voters = voters.iter().filter(|it| it.number == message.origin);
                if message.epoch == group.config.epoch && group.stored && voters.any(of_sender) {
                    let promise = Promise {
                        term: message.term,
                        index: message.index,
                    };
                    if let Some(group) = self.groups.get_mut(&message.group) {
                        group.promise(now, message.origin, promise);
                    }
                    self.stale.insert(message.group);
                }
            }
            MessageType::Leading => {
                let leader = group.shown.leading();
                if message.epoch == group.shown.epoch && leader.as_ref().is_some_and(of_sender) {
                    self.leading(now, &message);
                }
            }
            MessageType::Refused => {
                let fenced = message.code == Code::Fenced as u8;
                let mut holders = group.config.holders().into_iter();
                let holder = holders.find(of_sender);
                if let Some(holder) = holder
                    && fenced
                    && is_newer(message.epoch, group.config.epoch)
                {
                    self.is_ahead(holder.switch, message.group);
                }
            }
            _ => self.counters.malformed += 1,
        }
    }

    /// A leader's report about itself.
    fn leading(&mut self, now: u64, message: &Repr<'_>) {
        let Some(group) = self.groups.get_mut(&message.group) else {
            return;
        };
        let led = &mut group.led;
        let begins = led.list.is_none();
        led.heard = now;
        led.established |= message.flags & flag::ESTABLISHED != 0;
        led.base = message.base;
        led.commit = message.commit;
        led.time = message.timestamp;
        // It answers to the version that it was asked with; one that is older changed nothing.
        let newer = led
            .list
            .is_none_or(|known| message.list_version.wrapping_sub(known).cast_signed() > 0);
        if newer {
            led.list = Some(message.list_version);
        }
        if led.list == Some(group.shown.list) {
            group.cooling.clear();
        }
        let learner = group.shown.learner;
        let asked = learner.is_some_and(|it| it.number == message.learner);
        if asked && led.established && message.flags & flag::JOINED != 0 {
            group.joined = group.config.learner == learner;
        }
        self.listed_at_leader(message.group);
        self.stale.insert(message.group);
        if begins {
            self.tell_senders(message.group);
        }
    }

    /// A switch promised an epoch that this controller never began.
    pub(super) fn is_ahead(&mut self, switch: u32, group: u8) {
        self.ahead.note(switch, group.into(), PATIENCE);
        self.counters.ahead += 1;
    }

    /// Sends what a group waits for: PREPARE to who did not promise, LEAD to its leader.
    pub(super) fn speak(&mut self, now: u64, number: u8) {
        if self.is_behind() {
            return;
        }
        let Some(group) = self.groups.get_mut(&number) else {
            return;
        };
        if !group.own || !group.stored {
            group.resend_at = u64::MAX;
            return;
        }
        let config = &group.shown;
        let mut message = Repr::new(MessageType::Prepare);
        message.group = number;
        message.epoch = config.epoch;
        message.learner = NO_LEARNER;
        let mut to = Vec::new();
        let mut again = self.settings.resend;
        if let Some(leader) = config.leading() {
            message.message_type = MessageType::Lead;
            message.destinations = map(config.members().iter().map(|it| it.number));
            message.before = map(config.receivers.iter().map(|it| it.number));
            message.list_version = config.list;
            message.learner = config.learner.map_or(NO_LEARNER, |it| it.number);
            let knows = group.led.established && group.led.list == Some(config.list);
            if knows && (config.learner.is_none() || group.joined) {
                again = self.settings.watch;
            }
            to.push(leader);
        } else {
            let promises = &group.promises;
            let lacks = |member: &Member| !promises.contains_key(&member.number);
            to.extend(config.voters().into_iter().filter(lacks));
        }
        group.resend_at = now.saturating_add(again);
        for member in to {
            message.incarnation = member.incarnation;
            // Nothing in these messages is too long.
            if let Ok(bytes) = message.to_vec() {
                self.send(SocketAddrV4::new(member.address, PORT), bytes);
            }
        }
    }
}
