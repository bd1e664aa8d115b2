//! Switches that follow what they are told.

use std::collections::{BTreeMap, BTreeSet};

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::coordination::{MessageType, PORT, Packet, Repr, flag};
use stateplane_wire::coordination_control::Message;

use crate::controller::Controller;
use crate::decision::{Decision, GroupConfig};
use crate::settings::{Settings, Switch};

pub(super) const GROUPS: u16 = 8;

pub(super) const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 9, 9), 5000);

/// A switch as its program is: it takes newer configurations that name its incarnation.
#[derive(Debug, Clone, Default)]
pub(super) struct SwitchModel {
    pub(super) incarnation: u32,
    /// Generation, epoch and whether it joins, by group.
    pub(super) follows: BTreeMap<u16, (u16, u32, bool)>,
    /// Addresses of failed switches, by place.
    pub(super) redirects: BTreeMap<u16, Ipv4Addr>,
    /// Groups of which it gets no rounds of promises.
    pub(super) standing: BTreeSet<u16>,
    /// Its newest number, by group.
    pub(super) newest: BTreeMap<u16, u64>,
}

impl SwitchModel {
    pub(super) fn new(incarnation: u32) -> SwitchModel {
        SwitchModel {
            incarnation,
            ..SwitchModel::default()
        }
    }

    /// The answer of the switch at `own` to a message of the controller.
    pub(super) fn answer(&mut self, own: Ipv4Addr, message: &Repr<'_>, joins: bool) -> Vec<u8> {
        let mut answer = *message;
        match message.message_type {
            MessageType::Ping => {
                answer.message_type = MessageType::Pong;
                answer.handle = self.incarnation;
            }
            MessageType::Redirect => {
                self.redirects.insert(message.slot, message.chain_1.0);
                answer.message_type = MessageType::Redirected;
            }
            _ => {
                let known = self.follows.entry(message.group).or_default();
                if message.handle == self.incarnation && message.epoch > known.1 {
                    let last = message.chain().last() == Some(own);
                    let is_joiner = message.flags & flag::JOINS != 0 && last;
                    *known = (message.generation, message.epoch, is_joiner);
                }
                answer.message_type = MessageType::Configured;
                (answer.generation, answer.epoch) = (known.0, known.1);
                answer.flags = u8::from(known.2 && joins) * flag::JOINED;
                answer.flags |= u8::from(!self.standing.contains(&message.group)) * flag::LEASED;
                answer.newest = self.newest.get(&message.group).copied().unwrap_or_default();
            }
        }
        answer.to_vec().unwrap()
    }
}

/// Switches that follow each message at once, apart from those that are silent.
pub(super) struct World {
    pub(super) controller: Controller,
    pub(super) settings: Settings,
    pub(super) now: u64,
    pub(super) switches: BTreeMap<u32, SwitchModel>,
    pub(super) silent: BTreeSet<u32>,
    /// True if who joins is done when it is asked.
    pub(super) joins: bool,
    pub(super) log: Vec<Decision>,
    /// Answers to clients.
    pub(super) answers: Vec<Message>,
}

pub(super) fn address(switch: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, switch as u8)
}

pub(super) fn settings(switches: u32) -> Settings {
    let switches = (1..=switches).map(|number| Switch {
        number,
        address: address(number),
        domain: number,
    });
    let own = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 20), 4795);
    Settings {
        lanes: 16,
        ..Settings::new(own, switches.collect(), GROUPS, 3)
    }
}

impl World {
    pub(super) fn new(switches: u32) -> World {
        World::with(settings(switches))
    }

    pub(super) fn with(settings: Settings) -> World {
        let switches = settings.switches.iter();
        World {
            controller: Controller::new(settings.clone(), 7, [3; 32], [], 0).unwrap(),
            now: 0,
            switches: switches
                .map(|it| (it.number, SwitchModel::new(it.number * 100)))
                .collect(),
            settings,
            silent: BTreeSet::new(),
            joins: true,
            log: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Takes what the controller sends, to switches parsed.
    pub(super) fn sent(&mut self) -> Vec<(u32, Repr<'static>)> {
        let mut sent = Vec::new();
        while let Some(transmit) = self.controller.poll_transmit() {
            if let Ok(message) = Message::parse(&transmit.bytes) {
                assert_eq!(transmit.to, CLIENT);
                self.answers.push(message);
                continue;
            }
            let packet = Packet::new_checked(&transmit.bytes).unwrap();
            let message = Repr {
                value: &[],
                ..Repr::parse(&packet)
            };
            assert_eq!(transmit.to.port(), PORT);
            let numbers = self.switches.keys();
            let to = numbers
                .copied()
                .find(|it| address(*it) == *transmit.to.ip());
            sent.push((to.unwrap(), message));
        }
        sent
    }

    /// Stores what is decided.
    pub(super) fn store(&mut self) {
        while let Some(decision) = self.controller.poll_record() {
            self.log.push(decision.clone());
            self.controller.handle_stored(self.now, &decision);
        }
    }

    /// Stores what is decided, and lets switches follow, until nothing happens.
    pub(super) fn act(&mut self) {
        loop {
            self.store();
            let sent = self.sent();
            if sent.is_empty() {
                break;
            }
            for (to, message) in sent {
                if !self.silent.contains(&to) {
                    self.deliver(to, &message);
                }
            }
        }
    }

    /// The switch `to` gets a message, and the controller its answer.
    pub(super) fn deliver(&mut self, to: u32, message: &Repr<'_>) {
        let (own, joins) = (address(to), self.joins);
        if let Some(model) = self.switches.get_mut(&to) {
            let answer = model.answer(own, message, joins);
            let from = SocketAddrV4::new(own, PORT);
            self.controller.handle_message(self.now, from, &answer);
        }
    }

    /// Time passes.
    pub(super) fn pass(&mut self, time: u64) {
        let end = self.now + time;
        while self.now < end {
            self.now = self.controller.poll_timeout().clamp(self.now + 1, end);
            self.controller.handle_timeout(self.now);
            self.act();
        }
    }

    pub(super) fn client(&mut self, message: &Message) -> Vec<Message> {
        let bytes = message.to_vec();
        self.controller.handle_message(self.now, CLIENT, &bytes);
        self.act();
        core::mem::take(&mut self.answers)
    }

    pub(super) fn config(&self, group: u16) -> &GroupConfig {
        self.controller.configuration(group).unwrap()
    }
}
