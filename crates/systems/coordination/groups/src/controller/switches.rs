//! Messages from and to switches.

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_membership::Beat;
use stateplane_wire::coordination::{self, Address, MessageType, Operand, Packet, Repr, flag};

use super::Controller;
use crate::decision::{GroupConfig, Member};

/// PONGs of a switch that may come without its word of a configuration that this controller never
/// made, before that is taken for a damaged or forged message.
const PATIENCE: u32 = 16;

impl Controller {
    pub(super) fn switch_message(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        let Ok(packet) = Packet::new_checked(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        let kind = packet.message_type();
        if !matches!(
            kind,
            MessageType::Pong | MessageType::Configured | MessageType::Redirected
        ) {
            self.counters.malformed += 1;
            return;
        }
        let Some(switch) = self.by_address.get(from.ip()).copied() else {
            self.counters.foreign += 1;
            return;
        };
        let message = Repr::parse(&packet);
        match kind {
            MessageType::Pong => self.pong(now, from, switch, &message),
            MessageType::Configured => self.configured(now, switch, &message),
            _ => {
                let incarnation = message.handle;
                let address = message.chain_1.0;
                let place = message.slot;
                self.redirects.heard(switch, incarnation, place, address);
            }
        }
    }

    fn pong(&mut self, now: u64, from: SocketAddrV4, switch: u32, message: &Repr<'_>) {
        // An answer to a PING of another controller, whose numbers are others.
        if message.session != self.incarnation || message.handle == 0 {
            return;
        }
        self.counters.pongs += 1;
        let start = Member {
            switch,
            incarnation: message.handle,
            address: *from.ip(),
        };
        let known = self.servers.all.get(&switch);
        let former = known.map(|known| known.start.incarnation);
        let detection = self.settings.detection;
        let beat = self
            .servers
            .heard(now, from, start, message.request.into(), detection);
        if beat == Beat::Changed {
            if former.is_some_and(|former| former != start.incarnation) {
                // It began anew, and follows nothing.
                for group in self.groups.values_mut() {
                    group.former.remove(&switch);
                }
            }
            self.redirect_at = self.redirect_at.min(now.max(self.first_redirects()));
            self.place_anew(now);
            for group in self.groups.values_mut() {
                group.resend_at = group.resend_at.min(now);
            }
            for group in self.unfounded.values_mut() {
                group.resend_at = group.resend_at.min(now);
            }
        }
        if beat != Beat::Old && !self.ahead.is_empty() {
            self.ahead.heard(switch);
            if self.ahead.is_empty() {
                self.stale.extend(0..self.settings.groups);
            }
        }
    }

    fn configured(&mut self, now: u64, switch: u32, message: &Repr<'_>) {
        let number = message.group;
        let start = (switch, message.handle);
        let Some(group) = self.groups.get_mut(&number) else {
            match self.unfounded.get_mut(&number) {
                Some(group) if message.epoch == 0 => {
                    let known = self.servers.all.get(&switch);
                    // One entry for each switch.
                    if known.is_some_and(|known| known.start.incarnation == start.1) {
                        group.asked.retain(|(other, _)| *other != switch);
                        group.asked.insert(start);
                        self.stale.insert(number);
                    }
                }
                Some(_) => self.is_ahead(switch, message),
                None => self.counters.malformed += 1,
            }
            return;
        };
        let epoch = group.config.epoch;
        if message.epoch > epoch {
            self.is_ahead(switch, message);
            return;
        }
        if message.epoch < epoch
            || !group.is_stored()
            || message.generation != group.config.generation
        {
            return;
        }
        let is_named = group
            .config
            .all()
            .any(|member| (member.switch, member.incarnation) == start);
        if !is_named {
            group.former.remove(&switch);
            return;
        }
        group.confirmed.insert(start);
        group.pulse(now, switch, message);
        let newest = group.newest.entry(switch).or_default();
        *newest = message.newest.max(*newest);
        let joining = group.config.joining;
        let joins = joining.is_some_and(|it| (it.switch, it.incarnation) == start);
        if joins && message.flags & flag::JOINED != 0 {
            group.joined = true;
        }
        self.stale.insert(number);
    }

    /// A switch follows a configuration that this controller never made.
    fn is_ahead(&mut self, switch: u32, message: &Repr<'_>) {
        let seen = self.seen.entry(message.group).or_default();
        seen.0 = seen.0.max(message.generation);
        seen.1 = seen.1.max(message.epoch);
        self.ahead.note(switch, message.group, PATIENCE);
        self.counters.ahead += 1;
    }

    /// A message to a switch, which names where it answers to.
    fn message(&self, kind: MessageType, incarnation: u32) -> Repr<'static> {
        let mut message = Repr::new(kind);
        message.set_client(self.settings.address);
        message.handle = incarnation;
        message.session = self.incarnation;
        message
    }

    fn send_switch(&mut self, address: Ipv4Addr, message: &Repr<'_>) {
        // Nothing in these messages is too long.
        if let Ok(bytes) = message.to_vec() {
            self.send(SocketAddrV4::new(address, coordination::PORT), bytes);
        }
    }

    pub(super) fn ping(&mut self, now: u64) {
        if now < self.ping_at {
            return;
        }
        self.ping_at = now.saturating_add(self.settings.ping);
        self.ping_number = self.ping_number.wrapping_add(1);
        for at in 0..self.settings.switches.len() {
            let switch = self.settings.switches[at];
            let known = self.servers.all.get(&switch.number);
            let incarnation = known.map_or(0, |known| known.start.incarnation);
            let mut message = self.message(MessageType::Ping, incarnation);
            message.request = self.ping_number;
            self.send_switch(switch.address, &message);
        }
    }

    /// Asks the switches that live what they follow of groups that were never founded. Only when
    /// all say that they follow nothing, this controller founds the group: otherwise its decisions
    /// are lost, and the group is another's.
    pub(super) fn ask_unfounded(&mut self, now: u64) {
        let due = self.unfounded.iter();
        let due = due.filter(|(_, group)| group.resend_at <= now);
        let due: Vec<u16> = due.map(|(number, _)| *number).collect();
        for number in due {
            let alive = self.servers.all.values().filter(|it| it.alive);
            let alive: Vec<Member> = alive.map(|it| it.start).collect();
            let resend_at = now.saturating_add(self.settings.resend);
            let Some(group) = self.unfounded.get_mut(&number) else {
                continue;
            };
            let asked = |it: &Member| group.asked.contains(&(it.switch, it.incarnation));
            let missing: Vec<Member> = alive.into_iter().filter(|it| !asked(it)).collect();
            group.resend_at = if missing.is_empty() {
                u64::MAX
            } else {
                resend_at
            };
            for member in missing {
                let mut message = self.message(MessageType::Configure, member.incarnation);
                message.group = number;
                self.send_switch(member.address, &message);
            }
        }
    }

    /// Sends the configuration of a group to all that must follow it, or may follow an earlier one,
    /// and have not reported that they follow it; and to the one that joins until it has joined.
    pub(super) fn send_configs(&mut self, now: u64, number: u16, again: bool) {
        let resend = now.saturating_add(self.settings.resend);
        let Some(group) = self.groups.get_mut(&number) else {
            return;
        };
        let mut waiting: Vec<Member> = group.needs().copied().collect();
        if let Some(joining) = group.config.joining
            && !group.joined
            && !waiting.contains(&joining)
        {
            waiting.push(joining);
        }
        let former = group.former.iter();
        let former = former.filter_map(|switch| self.servers.all.get(switch));
        waiting.extend(former.map(|it| it.start));
        waiting.retain(|member| self.servers.is_alive(member));
        group.resend_at = if waiting.is_empty() { u64::MAX } else { resend };
        let config = group.config.clone();
        for member in waiting {
            self.counters.resent += u64::from(again);
            self.send_config(&config, &member);
        }
    }

    pub(super) fn send_config(&mut self, config: &GroupConfig, to: &Member) {
        let mut message = self.message(MessageType::Configure, to.incarnation);
        message.group = config.group;
        message.generation = config.generation;
        message.epoch = config.epoch;
        message.hops = config.members.len() as u8;
        message.set_chain(config.all().map(|member| member.address));
        if config.joining.is_some() {
            message.flags |= flag::JOINS;
        }
        if config.founds {
            message.flags |= flag::FOUNDS;
        }
        message.operand = Operand(config.hash_key);
        self.send_switch(to.address, &message);
    }

    /// Time from which failed switches are known.
    fn first_redirects(&self) -> u64 {
        let settings = &self.settings;
        self.began
            .saturating_add(settings.detection + settings.ping)
    }

    pub(super) fn send_redirects(&mut self, now: u64) {
        if now < self.redirect_at {
            return;
        }
        self.redirect_at = u64::MAX;
        let alive = self.servers.all.values().filter(|it| it.alive);
        let alive: Vec<Member> = alive.map(|it| it.start).collect();
        for member in alive {
            for (place, address) in self.redirects.missing(member.switch, member.incarnation) {
                let mut message = self.message(MessageType::Redirect, member.incarnation);
                message.slot = place;
                message.chain_1 = Address(address);
                self.send_switch(member.address, &message);
                self.redirect_at = now.saturating_add(self.settings.resend);
            }
        }
    }

    /// Tells all switches that live which of the others failed; those that this controller never
    /// heard may have failed before it began, and get places that are left.
    pub(super) fn place_redirects(&mut self, now: u64) {
        let places = usize::from(self.settings.redirects);
        let dead = self.servers.all.values().filter(|it| !it.alive);
        let dead = dead.map(|it| (it.start.switch, it.start.address));
        let mut failed: Vec<(u32, Ipv4Addr)> = dead.collect();
        let without = failed.len().saturating_sub(places);
        let unheard = self.settings.switches.iter();
        let unheard = unheard.filter(|it| !self.servers.all.contains_key(&it.number));
        failed.extend(unheard.map(|it| (it.number, it.address)));
        failed.truncate(places);
        let before: Vec<Ipv4Addr> = self.redirects.addresses().collect();
        self.redirects.place(&failed.into_iter().collect());
        let more = without.saturating_sub(self.without_place);
        self.counters.not_redirected += more as u64;
        self.without_place = without;
        if !self.redirects.addresses().eq(before) {
            self.redirect_at = now.max(self.first_redirects());
        }
    }
}
