//! The authority that configures chains: the controller that ships, or an authority that does what the rules
//! allow (rules 9, 12, 15) and no controller would.

use crate::client::group_name;
use crate::options::Rule;
use crate::places::{
    CONTROLLER, Places, SWITCHES, client_address, switch_address, switch_at, switch_socket,
};
use crate::scenario::Scenario;
use core::net::SocketAddrV4;
use stateplane_apps::datagram::{datagram, frame};
use stateplane_groups::{Controller, Decision, Settings, Switch};
use stateplane_wire::coordination::{MessageType, Operand, Packet, Repr, flag};
use stateplane_wire::coordination_control::{self as control, Message};
use stateplane_world::{Node, NodePort, Random};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A switch, and which start of it.
pub(crate) type Start = (usize, u32);

/// A configuration of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) epoch: u32,
    pub(crate) members: Vec<Start>,
    pub(crate) joining: Option<Start>,
}

/// Time behind which the controller takes a silent switch for dead, in µs.
pub(crate) const DETECTION: u64 = 60_000;
/// Time between what the authority does, in µs.
const TICK: u64 = 4_000;
/// Founding of all groups.
const GENERATION: u16 = 1;

struct Group {
    config: Config,
    founds: bool,
    confirmed: BTreeSet<usize>,
    joined: bool,
}

/// The authority that changes chains at will.
pub(crate) struct Authority {
    groups: Vec<Group>,
    replicas: usize,
    random: Random,
    without: Option<Rule>,
    next: u64,
    outbox: VecDeque<(u16, Vec<u8>)>,
    version: u64,
}

impl Authority {
    fn new(scenario: &Scenario, without: Option<Rule>, lives: &[Option<u32>], seed: u64) -> Self {
        let replicas = usize::from(scenario.replicas);
        let starts: Vec<Start> = (0..SWITCHES)
            .filter_map(|switch| Some((switch, lives[switch]?)))
            .collect();
        let groups = (0..usize::from(scenario.groups)).map(|group| {
            let members = (0..replicas).map(|place| starts[(group + place) % starts.len()]);
            Group {
                config: Config {
                    epoch: 1,
                    members: members.collect(),
                    joining: None,
                },
                founds: true,
                confirmed: BTreeSet::new(),
                joined: false,
            }
        });
        Self {
            groups: groups.collect(),
            replicas,
            random: Random::new(seed),
            without,
            next: 0,
            outbox: VecDeque::new(),
            version: 1,
        }
    }

    fn decide(&mut self, group: usize, members: Vec<Start>, joining: Option<Start>) {
        let group = &mut self.groups[group];
        group.config = Config {
            epoch: group.config.epoch + 1,
            members,
            joining,
        };
        group.founds = false;
        group.confirmed.clear();
        group.joined = false;
        self.version += 1;
    }

    /// Changes a chain as `draw` says. `lives` has the starts of the switches that live.
    pub(crate) fn change(&mut self, lives: &[Option<u32>], draw: u64) {
        let mut random = Random::new(draw);
        let which = random.place(self.groups.len());
        let config = self.groups[which].config.clone();
        let alive = |start: &Start| lives[start.0] == Some(start.1);
        let stranger = |start: &Start| {
            !config.members.iter().any(|of| of.0 == start.0)
                && config.joining.is_none_or(|of| of.0 != start.0)
        };
        let others = (0..SWITCHES).filter_map(|switch| Some((switch, lives[switch]?)));
        let others: Vec<Start> = others.filter(stranger).collect();
        match random.place(10) {
            0..5 if config.members.len() > 1 => {
                let kept = config.members.iter().copied();
                let kept: Vec<Start> = kept.filter(|_| random.permille(600)).collect();
                let joining = config.joining.filter(|_| random.permille(500));
                if kept.iter().any(alive) && kept != config.members {
                    self.decide(which, kept, joining);
                }
            }
            5 if config.joining.is_some() => self.decide(which, config.members, None),
            _ if config.joining.is_none() && !others.is_empty() && config.members.len() < 4 => {
                let joining = others[random.place(others.len())];
                self.decide(which, config.members, Some(joining));
            }
            _ => {}
        }
    }

    /// Leaves out who died, and makes chains whole again.
    fn repair(&mut self, lives: &[Option<u32>]) {
        for which in 0..self.groups.len() {
            let group = &self.groups[which];
            let config = group.config.clone();
            let alive = |start: &Start| lives[start.0] == Some(start.1);
            let living: Vec<Start> = config.members.iter().copied().filter(alive).collect();
            let joining = config.joining.filter(alive);
            let early = self.without == Some(Rule::Joined);
            if (living.len() < config.members.len() && !living.is_empty())
                || joining != config.joining
            {
                let members = if living.is_empty() {
                    config.members
                } else {
                    living
                };
                self.decide(which, members, joining);
            } else if let Some(joiner) = joining
                && (group.joined || (early && group.confirmed.contains(&joiner.0)))
                && self.random.permille(300)
            {
                let members = config.members.into_iter().chain([joiner]).collect();
                self.decide(which, members, None);
            } else if config.members.len() < self.replicas
                && joining.is_none()
                && self.random.permille(100)
            {
                let out = |start: &Start| !config.members.iter().any(|of| of.0 == start.0);
                let others = (0..SWITCHES).filter_map(|switch| Some((switch, lives[switch]?)));
                let others: Vec<Start> = others.filter(out).collect();
                if !others.is_empty() {
                    let joining = others[self.random.place(others.len())];
                    self.decide(which, config.members, Some(joining));
                }
            }
        }
    }

    fn send(&mut self) {
        for (number, group) in self.groups.iter().enumerate() {
            let config = &group.config;
            for (switch, incarnation) in config.members.iter().chain(&config.joining) {
                let joins = config.joining == Some((*switch, *incarnation)) && !group.joined;
                if group.confirmed.contains(switch) && !joins {
                    continue;
                }
                let mut message = Repr::new(MessageType::Configure);
                message.group = number as u16;
                message.generation = GENERATION;
                message.epoch = config.epoch;
                message.hops = config.members.len() as u8;
                message.flags = match config.joining {
                    Some(_) => flag::JOINS,
                    None => 0,
                } | if group.founds { flag::FOUNDS } else { 0 };
                let chain = config.members.iter().chain(&config.joining);
                message.set_chain(chain.map(|(switch, _)| switch_address(*switch)));
                message.set_client(CONTROLLER);
                message.handle = *incarnation;
                message.operand = Operand([number as u8 + 7; 16]);
                let bytes = message.to_vec().unwrap_or_default();
                let bytes = frame(CONTROLLER, switch_socket(*switch), &bytes);
                self.outbox.push_back((*switch as u16, bytes));
            }
        }
    }

    fn hear(&mut self, from: SocketAddrV4, bytes: &[u8]) {
        let Ok(packet) = Packet::new_checked(bytes) else {
            return;
        };
        let message = Repr::parse(&packet);
        let (Some(switch), MessageType::Configured) = (switch_at(*from.ip()), message.message_type)
        else {
            return;
        };
        let Some(group) = self.groups.get_mut(usize::from(message.group)) else {
            return;
        };
        let start = (switch, message.handle);
        if message.epoch == group.config.epoch {
            group.confirmed.insert(switch);
            let joined = message.flags & flag::JOINED != 0;
            group.joined |= joined && group.config.joining == Some(start);
        }
    }

    /// Answers a client who asks for chains.
    fn tell(&mut self, port: u16, client: SocketAddrV4) {
        let chains = self.groups.iter().enumerate().map(|(number, group)| {
            let config = &group.config;
            let mut chain = control::Chain {
                group: number as u16,
                generation: GENERATION,
                epoch: config.epoch,
                flags: match config.joining {
                    Some(_) => control::JOINS,
                    None => 0,
                },
                members: config.members.len() as u8,
                chain_1: Default::default(),
                chain_2: Default::default(),
                chain_3: Default::default(),
                chain_4: Default::default(),
            };
            let all = config.members.iter().chain(&config.joining);
            chain.set_switches(all.map(|(switch, _)| switch_address(*switch)));
            chain
        });
        let message = Message::Chains {
            controller: 1,
            version: self.version,
            groups: self.groups.len() as u16,
            slots: 8,
            next: control::END_OF_GROUPS,
            chains: chains.collect(),
        };
        let bytes = frame(CONTROLLER, client, &message.to_vec());
        self.outbox.push_back((port, bytes));
    }
}

/// The authority, and what it needs to outlive a restart.
pub(crate) enum Configures {
    Authority(Authority),
    Controller {
        controller: Option<Box<Controller>>,
        disk: Vec<Decision>,
        replicas: u8,
        groups: u16,
        slots: u16,
        /// µs after which a group that stands still changes; 0: never.
        standstill: u64,
    },
}

/// The node of whoever configures.
pub(crate) struct ControllerNode {
    pub(crate) configures: Configures,
    lives: Vec<Option<u32>>,
    /// Configurations made.
    pub(crate) made: u64,
}

impl ControllerNode {
    pub(crate) fn new(
        scenario: &Scenario,
        without: Option<Rule>,
        lives: Vec<Option<u32>>,
        seed: u64,
    ) -> Self {
        let configures = if scenario.changes > 0 || without == Some(Rule::Joined) {
            Configures::Authority(Authority::new(scenario, without, &lives, seed))
        } else {
            Configures::Controller {
                controller: None,
                disk: Vec::new(),
                replicas: scenario.replicas,
                groups: scenario.groups.into(),
                slots: scenario.slots as u16,
                standstill: match without {
                    Some(Rule::Standstill) => 0,
                    _ => 200_000,
                },
            }
        };
        Self {
            configures,
            lives,
            made: 0,
        }
    }

    /// Which start of each switch lives: the authority sees it.
    pub(crate) fn sees(&mut self, lives: Vec<Option<u32>>) {
        self.lives = lives;
    }

    /// Starts the controller with what it stored.
    pub(crate) fn start(&mut self, now: u64, incarnation: u32) -> Result<(), String> {
        let Configures::Controller {
            controller,
            disk,
            replicas,
            groups,
            slots,
            standstill,
        } = &mut self.configures
        else {
            return Ok(());
        };
        let switches = (0..SWITCHES).map(|switch| Switch {
            number: switch as u32 + 1,
            address: switch_address(switch),
            domain: switch as u32 + 1,
        });
        let settings = Settings {
            lanes: crate::simulator::LANES as u16,
            slots: *slots,
            ping: 10_000,
            detection: DETECTION,
            found_after: 40_000,
            replace_after: 100_000,
            resend: 5_000,
            join_timeout: 400_000,
            retry_after: 100_000,
            standstill: *standstill,
            ..Settings::new(CONTROLLER, switches.collect(), *groups, *replicas)
        };
        let begun = Controller::new(settings, incarnation, [7; 32], disk.clone(), now);
        *controller = Some(Box::new(begun.map_err(|error| error.to_string())?));
        self.record(now);
        Ok(())
    }

    fn record(&mut self, now: u64) {
        if let Configures::Controller {
            controller: Some(controller),
            disk,
            ..
        } = &mut self.configures
        {
            while let Some(decision) = controller.poll_record() {
                disk.push(decision.clone());
                controller.handle_stored(now, &decision);
                self.made += 1;
            }
        }
    }

    /// A broken invariant, if there is one.
    pub(crate) fn broken(&self) -> Option<String> {
        match &self.configures {
            Configures::Controller {
                controller: Some(controller),
                ..
            } => controller.silenced().map(|broken| format!("{broken:?}")),
            _ => None,
        }
    }

    pub(crate) fn change(&mut self, draw: u64) {
        if let Configures::Authority(authority) = &mut self.configures {
            authority.change(&self.lives, draw);
        }
    }

    /// An operator's word that all switches of a group are stopped; true if it is founded anew.
    pub(crate) fn refound(&mut self, now: u64, group: u16) -> bool {
        let Configures::Controller {
            controller: Some(controller),
            ..
        } = &mut self.configures
        else {
            return false;
        };
        let founded = controller.refound(now, group).is_ok();
        self.record(now);
        founded
    }

    /// Groups none of whose members lives.
    pub(crate) fn lost(&self) -> Vec<u16> {
        let lost = self.configs().into_iter().filter(|(_, config)| {
            let mut members = config.members.iter();
            !members.any(|(switch, incarnation)| self.lives[*switch] == Some(*incarnation))
        });
        lost.map(|(group, _)| group).collect()
    }

    /// The present configuration of each group, as decided last.
    pub(crate) fn configs(&self) -> BTreeMap<u16, Config> {
        let mut configs = BTreeMap::new();
        match &self.configures {
            Configures::Authority(authority) => {
                for (number, group) in authority.groups.iter().enumerate() {
                    configs.insert(number as u16, group.config.clone());
                }
            }
            Configures::Controller { disk, .. } => {
                for decision in disk {
                    if let Decision::Group(config) = decision {
                        let start = |member: &stateplane_groups::Member| {
                            (member.switch as usize - 1, member.incarnation)
                        };
                        let newer = Config {
                            epoch: config.epoch,
                            members: config.members.iter().map(start).collect(),
                            joining: config.joining.as_ref().map(start),
                        };
                        configs.insert(config.group, newer);
                    }
                }
            }
        }
        configs
    }

    /// Groups of which no living member besides `without` has the state.
    pub(crate) fn lost_without(&self, without: &[usize]) -> Vec<stateplane_history::Object> {
        let lost = self.configs().into_iter().filter(|(_, config)| {
            let mut members = config.members.iter();
            !members.any(|(switch, incarnation)| {
                !without.contains(switch) && self.lives[*switch] == Some(*incarnation)
            })
        });
        lost.map(|(group, _)| group_name(group)).collect()
    }
}

impl Node for ControllerNode {
    type Message = Vec<u8>;
    type Transmit = (u16, Vec<u8>);

    fn handle_message(&mut self, now: u64, port: u16, _: NodePort, bytes: Vec<u8>) {
        let Some((from, _, bytes)) = datagram(&bytes) else {
            return;
        };
        match &mut self.configures {
            Configures::Authority(authority) => match Message::parse(bytes) {
                Ok(Message::Learn(_)) => authority.tell(port, from),
                _ => authority.hear(from, bytes),
            },
            Configures::Controller { controller, .. } => {
                if let Some(controller) = controller {
                    controller.handle_message(now, from, bytes);
                }
            }
        }
        self.record(now);
    }

    fn handle_timeout(&mut self, now: u64) {
        match &mut self.configures {
            Configures::Authority(authority) => {
                if now >= authority.next {
                    authority.next = now + TICK;
                    let before = authority.version;
                    authority.repair(&self.lives);
                    self.made += authority.version - before;
                    authority.send();
                }
            }
            Configures::Controller { controller, .. } => {
                if let Some(controller) = controller {
                    controller.handle_timeout(now);
                }
            }
        }
        self.record(now);
    }

    fn poll_transmit(&mut self, _: u64) -> Option<(u16, Vec<u8>)> {
        match &mut self.configures {
            Configures::Authority(authority) => authority.outbox.pop_front(),
            Configures::Controller { controller, .. } => {
                let transmit = controller.as_mut()?.poll_transmit()?;
                let port = match switch_at(*transmit.to.ip()) {
                    Some(switch) => switch as u16,
                    None => {
                        let mut clients = 0..=u8::MAX as usize;
                        let client =
                            clients.find(|client| client_address(*client) == transmit.to)?;
                        Places::client_port(client)
                    }
                };
                Some((port, frame(CONTROLLER, transmit.to, &transmit.bytes)))
            }
        }
    }

    fn poll_timeout(&self) -> Option<u64> {
        match &self.configures {
            Configures::Authority(authority) => Some(authority.next),
            Configures::Controller { controller, .. } => Some(controller.as_ref()?.poll_timeout()),
        }
    }
}
