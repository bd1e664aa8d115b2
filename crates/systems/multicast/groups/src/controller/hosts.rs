//! Messages of the hosts around switches: BEAT, and VIEW for them.

use std::collections::BTreeMap;

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_membership::Beat as Heard;
use stateplane_wire::multicast_control::{
    self as control, Beat, Message, ROOM_OF_BEAT, Row, Session, role, rows_within,
};

use super::epochs::is_newer;
use super::{Controller, Host};
use crate::decision::{GroupConfig, Member, SlotState};

/// Bytes that rows of a VIEW have which is sent without being asked for.
const PUSHED: usize = ROOM_OF_BEAT as usize;

impl Controller {
    pub(super) fn host_message(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        match Message::parse(bytes) {
            Ok(Message::Beat(beat)) => self.beat(now, from, &beat, bytes.len()),
            Ok(Message::Learn(learn)) => self.learn(now, from, &learn, bytes.len()),
            Ok(Message::Open { nonce, lanes }) if lanes > 0 => self.open(now, from, nonce, lanes),
            Ok(Message::Close { slot, incarnation }) => self.close(from, slot, incarnation),
            Ok(Message::Join {
                nonce,
                group,
                number,
                position,
                leaves,
            }) => {
                let member = (number, position);
                self.join(now, from, (nonce, group), member, leaves);
            }
            _ => self.counters.malformed += 1,
        }
    }

    fn beat(&mut self, now: u64, from: SocketAddrV4, beat: &Beat, length: usize) {
        let settings = self.settings.switches.iter();
        let mut named = settings.filter(|switch| switch.number == beat.switch);
        let Some(address) = named.next().map(|switch| switch.address) else {
            self.counters.foreign += 1;
            return;
        };
        if beat.incarnation == 0 {
            self.counters.malformed += 1;
            return;
        }
        self.counters.beats += 1;
        let start = Member {
            number: 0,
            switch: beat.switch,
            incarnation: beat.incarnation,
            address,
        };
        let detection = self.settings.detection;
        let known = self
            .servers
            .all
            .get(&beat.switch)
            .map(|known| known.start.number);
        // A start is remembered with its number in a group, which says nothing here.
        let start = Member {
            number: known.unwrap_or(0),
            ..start
        };
        let heard = self.servers.heard(now, from, start, beat.number, detection);
        if heard == Heard::Old {
            return;
        }
        let pushed = self.hosts.get(&beat.switch).map_or(0, |host| host.pushed);
        let standings = beat.standings.iter();
        let host = Host {
            incarnation: beat.incarnation,
            version: if beat.controller == self.incarnation {
                beat.version.min(self.version)
            } else {
                0
            },
            pushed,
            held: beat.held,
            standings: standings
                .map(|it| (it.group, *it))
                .collect::<BTreeMap<_, _>>(),
        };
        let followed = host.version;
        self.hosts.insert(beat.switch, host);
        if !self.ahead.is_empty() {
            self.ahead.heard(beat.switch);
            if self.ahead.is_empty() {
                self.stale.extend(0..self.settings.groups);
            }
        }
        for standing in &beat.standings {
            let epoch = self.groups.get(&standing.group).map(|it| it.config.epoch);
            if epoch.is_none_or(|epoch| is_newer(standing.promised, epoch))
                && standing.group < self.settings.groups
            {
                self.is_ahead(beat.switch, standing.group);
            }
            self.note_received(now, beat.switch, standing);
        }
        if heard == Heard::Changed {
            self.place_anew(now);
            for group in self.groups.values_mut() {
                group.resend_at = group.resend_at.min(now);
            }
        }
        let unfounded = (0..self.settings.groups).filter(|it| !self.groups.contains_key(it));
        self.stale.extend(unfounded);
        if followed < self.version {
            self.send_view(from, followed, rows_within(length));
        }
    }

    /// Sends the rows that changed after version `after`, as many as `room` bytes take.
    fn send_view(&mut self, to: SocketAddrV4, after: u64, room: usize) {
        let mut changed: Vec<(u64, Row)> = Vec::new();
        let groups = self.groups.values().filter(|group| group.row > after);
        changed.extend(groups.map(|group| (group.row, Row::Group(row_of(&group.shown)))));
        let slots = self.slots.all().filter(|(_, entry)| entry.row > after);
        changed.extend(slots.map(|(slot, entry)| {
            let (lanes, state) = match entry.slot().state {
                SlotState::Free => (0, control::slot::FREE),
                SlotState::Open { lanes, .. } => (lanes, control::slot::OPEN),
                SlotState::Ended { .. } => (0, control::slot::ENDED),
            };
            (entry.row, Row::Session(Session { slot, lanes, state }))
        }));
        changed.sort_by_key(|(version, _)| *version);
        let (mut rows, mut length, mut version) = (Vec::new(), 0, after);
        let mut all = true;
        for (of, row) in changed {
            length += row.length();
            if length > room || rows.len() >= usize::from(u8::MAX) {
                all = false;
                break;
            }
            version = of;
            rows.push(row);
        }
        let message = Message::View {
            controller: self.incarnation,
            after,
            version: if all { self.version } else { version },
            rows,
        };
        self.send(to, message.to_vec());
    }

    /// Tells the hosts of switches that live what changed, once; who does not get it asks.
    pub(super) fn push_views(&mut self) {
        let mut lacking = Vec::new();
        for (switch, host) in &mut self.hosts {
            let health = self.servers.all.get(switch).filter(|health| health.alive);
            let Some(control) = health.and_then(|health| health.control) else {
                continue;
            };
            if host.pushed.max(host.version) < self.version {
                host.pushed = self.version;
                lacking.push((control, host.version));
            }
        }
        for (to, after) in lacking {
            self.send_view(to, after, PUSHED);
        }
    }

    /// The row of a slot changed.
    pub(super) fn publish_slot(&mut self, slot: u16) {
        self.version += 1;
        let version = self.version;
        if let Some(entry) = self.slots.get_mut(slot) {
            entry.row = version;
        }
    }

    /// True if the host of every switch that lives follows version `version` of the view.
    pub(super) fn all_follow(&self, version: u64) -> bool {
        let mut alive = self.servers.all.values().filter(|it| it.alive).peekable();
        alive.peek().is_some()
            && alive.all(|health| {
                let host = self.hosts.get(&health.start.switch);
                let host = host.filter(|it| it.incarnation == health.start.incarnation);
                host.is_some_and(|host| host.version >= version)
            })
    }

    /// True if no log holds an entry of `slot`, whose row of version `row` says that its session is
    /// ended (rule 21).
    pub(super) fn is_clear(&self, slot: u16, row: u64) -> bool {
        let holders = self.groups.values().flat_map(|group| {
            let shown = group.shown.holders();
            group.config.holders().into_iter().chain(shown)
        });
        let mut holders = holders.filter(|it| self.domains.contains_key(&it.switch));
        let says_so = |switch: u32, incarnation: u32| {
            let host = self.hosts.get(&switch);
            let host = host.filter(|host| host.incarnation == incarnation);
            host.is_some_and(|host| {
                let holds = host.held[usize::from(slot / 8)] & (0x80 >> (slot % 8)) != 0;
                host.version >= row && !holds
            })
        };
        holders.all(|member| {
            let known = self.servers.all.get(&member.switch);
            let other = known.is_some_and(|it| it.start.incarnation != member.incarnation);
            other || says_so(member.switch, member.incarnation)
        }) && self.all_follow(row)
    }
}

/// The row of a group.
fn row_of(config: &GroupConfig) -> control::Group {
    let present = config.members();
    let member = |of: &Member, role: u8| control::Member {
        number: of.number,
        role,
        switch: of.switch,
        incarnation: of.incarnation,
        address: of.address,
    };
    let voters = config.voters().into_iter().map(|it| {
        if present.contains(&it) {
            member(&it, role::MEMBER)
        } else {
            member(&it, role::FORMER)
        }
    });
    let learner = config.learner.iter().map(|it| member(it, role::LEARNER));
    let leader = config.leading().map(|leader| leader.address);
    control::Group {
        group: config.group,
        record: config.record,
        epoch: config.epoch,
        leader: leader.unwrap_or(Ipv4Addr::UNSPECIFIED),
        list: config.list,
        members: voters.chain(learner).collect(),
        receivers: config
            .receivers
            .iter()
            .map(|it| control::Receiver {
                number: it.number,
                address: it.address,
            })
            .collect(),
    }
}
