//! Switches with programs and hosts, a net between them and the controller, and what may never
//! happen to a log.

use std::collections::{BTreeMap, BTreeSet};

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::multicast_control::{Message, Opened};

use super::program::{Entry, Node, Said};
use super::*;
use crate::settings::Switch;

pub(super) const GROUPS: u8 = 3;

pub(super) const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 9, 9), 5000);

/// µs between the BEATs of a host.
pub(super) const BEAT: u64 = 10_000;

/// Steele, Lea and Flood's SplitMix64.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A message on its way.
#[derive(Debug, Clone)]
pub(super) enum Parcel {
    Controller(SocketAddrV4, Vec<u8>),
    Program(u32, Vec<u8>),
    Host(u32, Vec<u8>),
    Member(u32, Said),
}

pub(super) struct World {
    pub(super) controller: Controller,
    pub(super) settings: Settings,
    pub(super) starts: u32,
    pub(super) now: u64,
    pub(super) chance: Chance,
    pub(super) nodes: BTreeMap<u32, Node>,
    transit: BTreeMap<(u64, u64), Parcel>,
    sent: u64,
    /// Messages are lost, late and doubled, and the controller dies between storing and acting.
    pub(super) faults: bool,
    /// Leaders append entries.
    pub(super) load: bool,
    /// An operator founds groups anew.
    pub(super) refounds: bool,
    /// Receivers take what is committed.
    pub(super) receives: bool,
    pub(super) log: Vec<Decision>,
    /// Answers to clients.
    pub(super) answers: Vec<Message>,
    /// Committed entries of each group, by index from 1.
    pub(super) committed: BTreeMap<u8, Vec<u64>>,
    /// The leader in each epoch of each group.
    leaders: BTreeMap<(u8, u32), (u32, u32)>,
    next_entry: u64,
    next_tick: u64,
}

/// Address of a switch's program.
pub(super) fn address(switch: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, switch as u8)
}

/// Address of a switch's host.
pub(super) fn host(switch: u32) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, switch as u8), 6000)
}

pub(super) fn settings(switches: u32) -> Settings {
    let switches = (1..=switches).map(|number| Switch {
        number,
        address: address(number),
        domain: number,
    });
    let own = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 20), 4795);
    Settings {
        slots: 4,
        window: 64,
        ..Settings::new(own, switches.collect(), GROUPS, 3)
    }
}

impl World {
    pub(super) fn new(switches: u32) -> World {
        World::with(settings(switches), 1)
    }

    pub(super) fn with(settings: Settings, seed: u64) -> World {
        let switches = settings.switches.iter();
        World {
            controller: Controller::new(settings.clone(), 1, [], 0).unwrap(),
            starts: 1,
            now: 0,
            chance: Chance(seed),
            nodes: switches
                .map(|it| (it.number, Node::new(it.number, it.number * 1000)))
                .collect(),
            settings,
            transit: BTreeMap::new(),
            sent: 0,
            faults: false,
            load: false,
            refounds: false,
            receives: true,
            log: Vec::new(),
            answers: Vec::new(),
            committed: BTreeMap::new(),
            leaders: BTreeMap::new(),
            next_entry: 1,
            next_tick: 0,
        }
    }

    /// Another start of the controller finds what is stored.
    pub(super) fn restart(&mut self) {
        self.starts += 1;
        let settings = self.settings.clone();
        let stored = self.log.clone();
        self.controller = Controller::new(settings, self.starts, stored, self.now).unwrap();
    }

    pub(super) fn post(&mut self, parcel: Parcel) {
        let copies = if self.faults && self.chance.percent(10) {
            0
        } else if self.faults && self.chance.percent(5) {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let late = self.faults && self.chance.percent(5);
            let delay = self.chance.below(if late { 200_000 } else { 500 });
            self.sent += 1;
            let at = (self.now + 50 + delay, self.sent);
            self.transit.insert(at, parcel.clone());
        }
    }

    /// Stores what is decided, and puts on its way what is to be sent.
    fn take_out(&mut self) {
        while let Some(decision) = self.controller.poll_record() {
            self.check_decision(&decision);
            self.log.push(decision.clone());
            if self.faults && self.chance.percent(1) {
                // Stored, and the controller never learns it.
                self.restart();
                continue;
            }
            self.controller.handle_stored(self.now, &decision);
        }
        while let Some(Transmit { to, bytes }) = self.controller.poll_transmit() {
            let [_, _, net, number] = to.ip().octets();
            match net {
                1 => self.post(Parcel::Program(number.into(), bytes)),
                2 => self.post(Parcel::Host(number.into(), bytes)),
                _ => self.answers.push(Message::parse(&bytes).unwrap()),
            }
        }
    }

    fn last_of(&self, group: u8) -> Option<&GroupConfig> {
        self.log.iter().rev().find_map(|decision| match decision {
            Decision::Group(config) if config.group == group => Some(config),
            _ => None,
        })
    }

    /// Checks a decision against the one before it (rules 6, 11, 12).
    fn check_decision(&self, decision: &Decision) {
        let Decision::Group(config) = decision else {
            return;
        };
        let numbers: BTreeSet<u8> = config.holders().iter().map(|it| it.number).collect();
        assert_eq!(numbers.len(), config.holders().len(), "{config:?}");
        assert!(numbers.iter().all(|number| *number < 8));
        let Some(before) = self.last_of(config.group) else {
            assert_eq!((config.epoch, config.record, config.leader), (1, 1, None));
            return;
        };
        assert_eq!(config.record, before.record + 1);
        if config.epoch == before.epoch {
            // One leader, appointed once.
            assert!(before.leader.is_none() || config.leader == before.leader);
            assert_eq!(config.members(), before.members());
        } else {
            assert_eq!((config.epoch, config.leader), (before.epoch + 1, None));
        }
        let (old, new) = (before.members(), config.members());
        let added = new.iter().filter(|it| !old.contains(it)).count();
        let left = old.iter().filter(|it| !new.contains(it)).count();
        assert!(
            added + left <= 1 || self.refounds,
            "{before:?} to {config:?}"
        );
    }

    pub(super) fn run(&mut self, time: u64) {
        let end = self.now + time;
        while self.now < end {
            let arrival = self.transit.first_key_value().map(|((at, _), _)| *at);
            let due = self.controller.poll_timeout().max(self.now + 1);
            let next = due.min(self.next_tick.max(self.now + 1));
            self.now = arrival
                .map_or(next, |at| at.min(next))
                .min(end)
                .max(self.now);
            if let Some(entry) = self.transit.first_entry()
                && entry.key().0 <= self.now
            {
                let parcel = entry.remove();
                self.arrives(parcel);
            } else if self.now >= self.next_tick {
                self.next_tick = self.now + BEAT / 2;
                self.tick();
            } else {
                self.controller.handle_timeout(self.now);
            }
            self.take_out();
        }
    }

    fn arrives(&mut self, parcel: Parcel) {
        match parcel {
            Parcel::Controller(from, bytes) => {
                self.controller.handle_message(self.now, from, &bytes);
            }
            Parcel::Program(switch, bytes) => {
                let node = self.nodes.get_mut(&switch).unwrap();
                if node.down || node.deaf {
                    return;
                }
                if let Some(answer) = node.control(&bytes, &mut self.leaders) {
                    let from = SocketAddrV4::new(address(switch), 4799);
                    self.post(Parcel::Controller(from, answer));
                }
            }
            Parcel::Host(switch, bytes) => {
                let node = self.nodes.get_mut(&switch).unwrap();
                if !node.down && !node.cut {
                    node.follow(&bytes);
                }
            }
            Parcel::Member(switch, said) => {
                let node = self.nodes.get_mut(&switch).unwrap();
                if node.down || node.deaf {
                    return;
                }
                let answer = node.take(said);
                self.note_committed(switch);
                if let Some((to, said)) = answer {
                    self.post(Parcel::Member(to, said));
                }
            }
        }
    }

    /// Hosts beat; leaders append, send and free.
    fn tick(&mut self) {
        let switches: Vec<u32> = self.nodes.keys().copied().collect();
        for switch in switches {
            let node = self.nodes.get_mut(&switch).unwrap();
            if node.down {
                continue;
            }
            if !node.cut {
                let beat = node.beat();
                self.post(Parcel::Controller(host(switch), beat));
            }
            let node = self.nodes.get_mut(&switch).unwrap();
            if self.receives {
                for log in node.logs.values_mut() {
                    log.received = [log.commit as u32; 8];
                }
            }
            if self.load {
                for group in 0..GROUPS {
                    let entry = Entry {
                        id: self.next_entry,
                        term: 0,
                        session: None,
                    };
                    self.next_entry += u64::from(node.append(group, entry));
                    if self.chance.percent(50) {
                        node.free(group);
                    }
                }
            }
            if node.deaf {
                continue;
            }
            for (to, said) in node.props() {
                self.post(Parcel::Member(to, said));
            }
        }
    }

    /// An entry that a leader committed is committed by every leader at that index, ever.
    fn note_committed(&mut self, switch: u32) {
        for (group, log) in &self.nodes[&switch].logs {
            let known = self.committed.entry(*group).or_default();
            if !log.leads() {
                continue;
            }
            for index in log.base + 1..=log.commit {
                let id = log.entries[index - log.base - 1].id;
                match known.get(index - 1) {
                    Some(known) => assert_eq!(*known, id, "group {group}, index {index}"),
                    None => {
                        assert_eq!(known.len(), index - 1);
                        known.push(id);
                    }
                }
            }
        }
    }

    /// A client's message, and the answers.
    pub(super) fn client(&mut self, message: &Message) -> Vec<Message> {
        self.client_at(CLIENT, message)
    }

    pub(super) fn client_at(&mut self, from: SocketAddrV4, message: &Message) -> Vec<Message> {
        let bytes = message.to_vec();
        self.controller.handle_message(self.now, from, &bytes);
        self.take_out();
        core::mem::take(&mut self.answers)
    }

    /// The answer to an OPEN, which is repeated until it comes.
    pub(super) fn open(&mut self, nonce: u64, lanes: u8) -> Opened {
        for _ in 0..100 {
            let mut answers = self.client(&Message::Open { nonce, lanes });
            self.run(5_000);
            answers.append(&mut self.answers);
            if let Some(Message::Opened(opened)) = answers.pop() {
                return opened;
            }
        }
        panic!("no session");
    }

    pub(super) fn config(&self, group: u8) -> GroupConfig {
        self.controller.group(group).unwrap().config
    }

    /// The switch that leads a group.
    pub(super) fn leader(&self, group: u8) -> u32 {
        self.config(group).leading().unwrap().switch
    }

    /// A switch begins anew, with nothing.
    pub(super) fn reset(&mut self, switch: u32) {
        let node = self.nodes.get_mut(&switch).unwrap();
        *node = Node::new(switch, node.incarnation + 1);
    }
}
