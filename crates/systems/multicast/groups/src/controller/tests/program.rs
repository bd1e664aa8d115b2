//! A switch: its program as far as logs and leaders go (rules 3 to 9, 12), and its host.

use std::collections::BTreeMap;

use stateplane_wire::multicast::{Code, MessageType, Packet, Repr, flag};
use stateplane_wire::multicast_control::{self as control, LEADS, Row, Standing, role};

use crate::follower::Follower;

/// An entry of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: u64,
    pub(super) term: u32,
    /// Slot and incarnation of its session.
    pub(super) session: Option<(u16, u16)>,
}

/// A message between members.
#[derive(Debug, Clone)]
pub(super) enum Said {
    /// The log of a leader.
    Prop {
        group: u8,
        epoch: u32,
        incarnation: u32,
        leader: u32,
        base: usize,
        base_term: u32,
        entries: Vec<Entry>,
        commit: usize,
    },
    /// The member of that number matches up to an index.
    Ack {
        group: u8,
        epoch: u32,
        number: u8,
        index: usize,
    },
}

/// A group's state in a switch.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    pub(super) promised: u32,
    pub(super) led: u32,
    pub(super) base: usize,
    pub(super) base_term: u32,
    pub(super) entries: Vec<Entry>,
    pub(super) commit: usize,
    own: usize,
    members: u32,
    learner: u8,
    matches: [usize; 8],
    pub(super) list: u16,
    pub(super) receivers: u32,
    pub(super) received: [u32; 8],
}

impl Log {
    pub(super) fn leads(&self) -> bool {
        self.led == self.promised && self.led != 0
    }

    pub(super) fn end(&self) -> usize {
        self.base + self.entries.len()
    }

    fn term(&self, index: usize) -> u32 {
        match index.checked_sub(self.base + 1) {
            Some(at) => self.entries[at].term,
            None => self.base_term,
        }
    }

    /// Takes the list of receivers; who is new has nothing beyond the base.
    fn take_list(&mut self, all: bool, message: &Repr<'_>) {
        let before = if all { 0 } else { self.receivers };
        for number in 0..8 {
            if message.before & !before & (1 << number) != 0 {
                self.received[number] = self.base as u32;
            }
        }
        self.receivers = message.before;
        self.list = message.list_version;
        self.learner = message.learner;
    }

    /// Accepts what a leader has, behind what is committed here.
    fn accept(&mut self, base: usize, base_term: u32, entries: &[Entry]) {
        if base > self.end() || (base > self.base && self.term(base) != base_term) {
            // SKIP: all before is freed.
            (self.base, self.base_term) = (base, base_term);
            self.entries.clear();
            self.commit = self.commit.max(base);
        }
        for (index, entry) in (base + 1..).zip(entries) {
            if index <= self.base {
                continue;
            }
            let at = index - self.base - 1;
            if self.entries.get(at).is_some_and(|it| it.term != entry.term) {
                assert!(index > self.commit, "what is committed is cut off");
                self.entries.truncate(at);
            }
            if at == self.entries.len() {
                self.entries.push(*entry);
            }
        }
    }
}

/// A switch.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) switch: u32,
    pub(super) incarnation: u32,
    pub(super) down: bool,
    /// Its host does not reach the controller.
    pub(super) cut: bool,
    /// Its program reaches nobody.
    pub(super) deaf: bool,
    pub(super) logs: BTreeMap<u8, Log>,
    /// Rows that its host has put into tables.
    pub(super) tables: BTreeMap<u8, control::Group>,
    pub(super) sessions: BTreeMap<u16, control::Session>,
    follower: Follower,
}

impl Node {
    pub(super) fn new(switch: u32, incarnation: u32) -> Node {
        Node {
            switch,
            incarnation,
            down: false,
            cut: false,
            deaf: false,
            logs: BTreeMap::new(),
            tables: BTreeMap::new(),
            sessions: BTreeMap::new(),
            follower: Follower::new(switch, incarnation),
        }
    }

    /// Its number in a group.
    fn number(&self, group: u8) -> Option<u8> {
        let mut members = self.tables.get(&group)?.members.iter();
        let own =
            |it: &&control::Member| (it.switch, it.incarnation) == (self.switch, self.incarnation);
        members.find(own).map(|it| it.number)
    }

    /// The program's answer to PREPARE and LEAD.
    pub(super) fn control(
        &mut self,
        bytes: &[u8],
        leaders: &mut BTreeMap<(u8, u32), (u32, u32)>,
    ) -> Option<Vec<u8>> {
        let packet = Packet::new_checked(bytes).unwrap();
        let message = Repr::parse(&packet);
        let number = self.number(message.group)?;
        let log = self.logs.entry(message.group).or_default();
        let mut answer = message;
        answer.incarnation = self.incarnation;
        answer.origin = number;
        let prepares = message.message_type == MessageType::Prepare;
        let refused = if message.incarnation != self.incarnation {
            Some(Code::OtherIncarnation)
        } else if message.epoch < log.promised || (!prepares && message.epoch != log.promised) {
            Some(Code::Fenced)
        } else {
            None
        };
        if prepares && refused.is_none() {
            log.promised = message.epoch;
        }
        answer.epoch = log.promised;
        answer.index = log.end() as u32;
        answer.term = log.term(log.end());
        answer.timestamp = log.end() as u64;
        answer.commit = log.commit as u32;
        answer.base = log.base as u32;
        if let Some(code) = refused {
            answer.message_type = MessageType::Refused;
            answer.code = code as u8;
        } else if prepares {
            answer.message_type = MessageType::Promise;
        } else if !log.leads() {
            let start = (self.switch, self.incarnation);
            let before = leaders.insert((message.group, message.epoch), start);
            assert_eq!(before, None, "two leaders of one epoch");
            log.led = log.promised;
            log.own = log.end() + 1;
            log.members = message.destinations;
            log.matches = [0; 8];
            log.take_list(true, &message);
            log.entries.push(Entry {
                id: u64::from(message.epoch) << 32,
                term: log.promised,
                session: None,
            });
            return None;
        } else {
            if message.list_version.wrapping_sub(log.list).cast_signed() > 0 {
                log.take_list(false, &message);
            }
            answer.message_type = MessageType::Leading;
            answer.flags = 0;
            if log.commit >= log.own {
                answer.flags |= flag::ESTABLISHED;
            }
            let learner = log.matches.get(usize::from(message.learner));
            if learner.is_some_and(|it| *it >= log.own) {
                answer.flags |= flag::JOINED;
            }
            answer.index = log.own as u32;
            answer.timestamp = log.commit as u64;
        }
        Some(answer.to_vec().unwrap())
    }

    /// Takes the message of another member; the answer, and to whom.
    pub(super) fn take(&mut self, said: Said) -> Option<(u32, Said)> {
        match said {
            Said::Prop {
                group,
                epoch,
                incarnation,
                leader,
                base,
                base_term,
                entries,
                commit,
            } => {
                let number = self.number(group)?;
                let log = self.logs.entry(group).or_default();
                if incarnation != self.incarnation || epoch < log.promised {
                    return None;
                }
                log.promised = epoch;
                if log.leads() {
                    return None;
                }
                log.accept(base, base_term, &entries);
                let index = base + entries.len();
                log.commit = log.commit.max(commit.min(index));
                while log.base < base.min(log.commit) {
                    log.base_term = log.entries.remove(0).term;
                    log.base += 1;
                }
                let ack = Said::Ack {
                    group,
                    epoch,
                    number,
                    index,
                };
                Some((leader, ack))
            }
            Said::Ack {
                group,
                epoch,
                number,
                index,
            } => {
                let own = self.number(group);
                let log = self.logs.get_mut(&group)?;
                let counts = log.members & (1 << number) != 0 || number == log.learner;
                if !log.leads() || log.promised != epoch || !counts {
                    return None;
                }
                let known = &mut log.matches[usize::from(number)];
                *known = index.max(*known);
                let (members, matches) = (log.members, log.matches);
                let votes = |index: usize| {
                    let has = |it: &u8| Some(*it) == own || matches[usize::from(*it)] >= index;
                    (0..8)
                        .filter(|it| members & (1 << it) != 0)
                        .filter(has)
                        .count()
                };
                let needed = members.count_ones() as usize / 2 + 1;
                let matched = (log.commit.max(log.own - 1) + 1..=log.end()).rev();
                if let Some(commit) = matched.into_iter().find(|it| votes(*it) >= needed) {
                    log.commit = commit;
                }
                None
            }
        }
    }

    /// A leader's log, for each whom its tables name.
    pub(super) fn props(&self) -> Vec<(u32, Said)> {
        let mut props = Vec::new();
        for (group, log) in self.logs.iter().filter(|(_, log)| log.leads()) {
            let members = self.tables.get(group).map(|row| row.members.as_slice());
            for member in members.unwrap_or(&[]) {
                if member.role == role::FORMER || member.switch == self.switch {
                    continue;
                }
                props.push((
                    member.switch,
                    Said::Prop {
                        group: *group,
                        epoch: log.promised,
                        incarnation: member.incarnation,
                        leader: self.switch,
                        base: log.base,
                        base_term: log.base_term,
                        entries: log.entries.clone(),
                        commit: log.commit,
                    },
                ));
            }
        }
        props
    }

    /// Appends an entry, if it leads; false if it does not, or refuses the session.
    pub(super) fn append(&mut self, group: u8, entry: Entry) -> bool {
        let granted = |(slot, _): (u16, u16)| {
            let session = self.sessions.get(&slot);
            session.is_some_and(|session| session.lanes > 0)
        };
        if entry.session.is_some_and(|session| !granted(session)) {
            return false;
        }
        let Some(log) = self.logs.get_mut(&group).filter(|log| log.leads()) else {
            return false;
        };
        let term = log.promised;
        log.entries.push(Entry { term, ..entry });
        true
    }

    /// A leader frees what is committed.
    pub(super) fn free(&mut self, group: u8) {
        if let Some(log) = self.logs.get_mut(&group).filter(|log| log.leads()) {
            while log.base < log.commit {
                log.base_term = log.entries.remove(0).term;
                log.base += 1;
            }
        }
    }

    /// The host takes a VIEW.
    pub(super) fn follow(&mut self, bytes: &[u8]) {
        for row in self.follower.handle_message(bytes) {
            match row {
                Row::Group(row) => {
                    self.tables.insert(row.group, row);
                }
                Row::Session(row) => {
                    self.sessions.insert(row.slot, row);
                }
            }
        }
    }

    /// The host's next BEAT.
    pub(super) fn beat(&mut self) -> Vec<u8> {
        let logs = self.logs.values();
        let sessions = logs.flat_map(|log| log.entries.iter().filter_map(|it| it.session));
        let held: Vec<u16> = sessions.map(|(slot, _)| slot).collect();
        let ended = self.follower.ended().iter().copied();
        let held: Vec<u16> = ended.filter(|slot| held.contains(slot)).collect();
        let logs = self.logs.iter().filter(|(_, log)| log.promised != 0);
        let standings = logs.map(|(group, log)| {
            let mut standing = Standing {
                group: *group,
                flags: u8::from(log.leads()) * LEADS,
                promised: log.promised,
                base: log.base as u32,
                end: log.end() as u32,
                commit: log.commit as u32,
                lacks_members: 0,
                lacks_receivers: 0,
                lacks_decided: 0,
                lacks_done: 0,
                received: [0; 32],
            };
            standing.set_received_by(log.received);
            standing
        });
        self.follower.beat(standings.collect(), held)
    }
}
