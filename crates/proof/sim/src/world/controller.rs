//! The controller, and the faults of the controller and the store servers.

use super::{Happening, World};
use crate::clock::Clock;
use crate::plan::{Misfortune, Node};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_chains::{Controller, Rows, Settings};
use stateplane_wire::control::ChainConfig;
use std::collections::BTreeMap;

use crate::chain::{SHARDS, link_address};
use crate::scenario::Scenario;
use stateplane_apps::Random;

/// Silence in µs after which a server is taken for dead.
pub const DETECTION: u64 = 30_000;

/// Members of a whole chain.
const MEMBERS: u8 = 3;

/// The controller's address as switches see it does not matter; theirs do.
fn switch_address(switch: usize) -> SocketAddrV4 {
    SocketAddrV4::new(
        Ipv4Addr::new(10, 255, 3, switch as u8 + 1),
        stateplane_wire::control::PORT,
    )
}

/// The controller and its disk.
pub(crate) struct ControllerNode {
    controller: Option<Controller>,
    clock: Clock,
    timer: Option<u64>,
    /// Stored configurations, in order; they outlive the controller.
    disk: Vec<ChainConfig>,
    /// The newest configuration of each chain that was stored.
    pub(crate) current: BTreeMap<u16, ChainConfig>,
    /// Servers that are to lose their shards.
    drained: BTreeMap<u32, bool>,
    /// Since when, and since which configuration, shards wait for an answer because
    /// a server died.
    waiting: BTreeMap<u16, (u64, u32)>,
}

impl ControllerNode {
    /// Servers and controller before their start.
    pub(crate) fn new(random: &mut Random, scenario: &Scenario) -> ControllerNode {
        ControllerNode {
            controller: None,
            clock: match scenario.cluster {
                Some(_) => Clock::draw(random, 0, scenario.drift),
                None => Clock {
                    began: 0,
                    offset: 0,
                    drift_ppm: 0,
                },
            },
            timer: None,
            disk: Vec::new(),
            current: BTreeMap::new(),
            drained: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }
}

impl World<'_> {
    /// Starts the controller with what it has stored.
    pub(super) fn start_controller(&mut self) {
        let Some(cluster) = &self.options.scenario.cluster else {
            return;
        };
        let settings = Settings {
            founders: cluster.stores.into(),
            detection: DETECTION,
            replace_after: 300_000,
            retry_after: 50_000,
            resend: 3_000,
            joins: 2,
            ..Settings::new(SHARDS, MEMBERS)
        };
        let incarnation = self.random.between(1, u32::MAX.into()) as u32;
        let node = &mut self.controller;
        let local = node.clock.local(self.now);
        let controller = Controller::new(settings, incarnation, node.disk.clone(), local);
        match controller {
            Ok(mut controller) => {
                for (server, drained) in &node.drained {
                    controller.drain(local, *server, *drained);
                }
                node.controller = Some(controller);
                self.after_controller();
            }
            Err(error) => self.anomaly(error.to_string()),
        }
    }

    pub(super) fn controller_message(&mut self, from: SocketAddrV4, bytes: &[u8]) {
        let local = self.controller.clock.local(self.now);
        if let Some(controller) = &mut self.controller.controller {
            controller.handle_message(local, from, bytes);
            self.after_controller();
        }
    }

    pub(super) fn controller_timer(&mut self) {
        if self.controller.timer != Some(self.now) {
            return;
        }
        self.controller.timer = None;
        let local = self.controller.clock.local(self.now);
        if let Some(controller) = &mut self.controller.controller {
            controller.handle_timeout(local);
            self.after_controller();
        }
    }

    /// Stores what the controller decided, carries what it sends, and sees when it
    /// wants to be woken.
    fn after_controller(&mut self) {
        let now = self.now;
        let node = &mut self.controller;
        let Some(controller) = &mut node.controller else {
            return;
        };
        let local = node.clock.local(now);
        while let Some(config) = controller.poll_record() {
            self.recorder.coverage.configurations += 1;
            node.disk.push(config.clone());
            controller.handle_stored(local, &config);
            node.current.insert(config.chain, config);
        }
        let mut sent = Vec::new();
        while let Some(transmit) = controller.poll_transmit() {
            sent.push(transmit);
        }
        let due = node.clock.time_of(controller.poll_timeout()).max(now + 1);
        if node.timer != Some(due) {
            node.timer = Some(due);
            self.schedule.add(due, Happening::ControllerTimer);
        }
        for transmit in sent {
            let store = (0..self.stores.len()).find(|&store| link_address(store) == transmit.to);
            let mut switches = 0..self.switches.len();
            if let Some(store) = store {
                self.between_nodes(Node::Controller, Node::Store(store), &transmit.bytes);
            } else if let Some(switch) = switches.find(|&s| switch_address(s) == transmit.to) {
                let link = self.quality(|options| options.scenario.chain_link);
                for delay in link.carry(&mut self.random) {
                    let bytes = transmit.bytes.clone();
                    self.schedule
                        .add(now + delay, Happening::Rows { switch, bytes });
                }
            }
        }
    }

    /// A switch asks where the heads are, and will ask again.
    pub(super) fn ask(&mut self, switch: usize, incarnation: u32) {
        let node = &self.switches[switch];
        if node.identity.incarnation != incarnation || node.device.is_none() {
            return;
        }
        self.ask_once(switch);
        let again = Happening::Ask {
            switch,
            incarnation,
        };
        self.schedule.add(self.now + Rows::PERIOD, again);
    }

    fn ask_once(&mut self, switch: usize) {
        let question = self.switches[switch].rows.ask();
        let link = self.quality(|options| options.scenario.chain_link);
        for delay in link.carry(&mut self.random) {
            let arrival = Happening::ToController {
                from: switch_address(switch),
                bytes: question.clone(),
            };
            self.schedule.add(self.now + delay, arrival);
        }
    }

    /// A switch hears where heads are.
    pub(super) fn rows(&mut self, switch: usize, bytes: &[u8]) {
        let node = &mut self.switches[switch];
        let Some(device) = &mut node.device else {
            return;
        };
        let news = node.rows.handle_message(bytes);
        for row in &news {
            device.set_chain(row.shard, *row.head.ip(), row.epoch);
        }
        if !news.is_empty() {
            self.ask_once(switch);
        }
    }

    /// The store answers for `shard` in configuration `epoch`.
    pub(super) fn resumed(&mut self, shard: u16, epoch: u32) {
        if let Some(&(since, before)) = self.controller.waiting.get(&shard)
            && epoch > before
        {
            self.controller.waiting.remove(&shard);
            let coverage = &mut self.recorder.coverage;
            coverage.longest_resumption = coverage.longest_resumption.max(self.now - since);
        }
    }

    /// True if a server may die without too many failures at once: every chain is complete, and all
    /// other servers can be reached.
    pub(super) fn may_die(&self) -> bool {
        let now = self.now;
        let whole = (0..SHARDS).all(|shard| self.keepers(shard).len() >= MEMBERS.into());
        let awake = self.stores.iter().all(|node| node.busy_until <= now);
        whole && awake && self.cuts.values().all(|until| *until <= now)
    }

    /// True if the last death is so recent that the others are spared.
    fn mourns(&self) -> bool {
        let deaths = self.stores.iter().map(|node| node.died_at);
        let latest = deaths.max().flatten();
        latest.is_some_and(|died| self.now < died + 4 * DETECTION)
    }

    pub(super) fn befall_stores(&mut self, misfortune: Misfortune) {
        let now = self.now;
        match misfortune {
            Misfortune::StoreDies { store, until } => {
                if self.stores[store].server.is_none() || !self.may_die() {
                    return;
                }
                for shard in 0..SHARDS {
                    let epoch = self.controller.current.get(&shard).map_or(0, |c| c.epoch);
                    if self.keepers(shard).contains(&store) {
                        self.controller.waiting.entry(shard).or_insert((now, epoch));
                    }
                }
                let node = &mut self.stores[store];
                node.server = None;
                node.timer = None;
                node.died_at = Some(now);
                self.recorder.coverage.store_deaths += 1;
                self.schedule.add(
                    until,
                    Happening::Misfortune(Misfortune::StoreReturns { store }),
                );
            }
            Misfortune::StoreReturns { store } => {
                if self.options.scenario.disks.is_some() {
                    self.store_returns(store);
                }
                if self.stores[store].server.is_some() {
                    return;
                }
                let clock = Clock::draw(&mut self.random, now, self.options.scenario.drift);
                let incarnation = self.random.between(1, u32::MAX.into()) as u32;
                let node = &mut self.stores[store];
                node.clock = clock;
                node.busy_until = now;
                node.identity.incarnation = incarnation;
                let first = self.first_sequence;
                if let Err(error) = node.start(self.options, store, first, now) {
                    self.anomaly(error.to_string());
                }
                self.after_store(store);
            }
            Misfortune::StorePauses { .. } | Misfortune::CutNodes { .. } if self.mourns() => {}
            Misfortune::StorePauses { store, until } => {
                let node = &mut self.stores[store];
                node.busy_until = node.busy_until.max(until);
            }
            Misfortune::CutNodes { from, to, until } => {
                let present = self.cuts.entry((from, to)).or_default();
                *present = (*present).max(until);
            }
            Misfortune::ControllerRestarts => {
                self.controller.controller = None;
                self.controller.timer = None;
                self.start_controller();
            }
            Misfortune::Drain { store, drained } => {
                let server = self.stores[store].identity.server;
                self.controller.drained.insert(server, drained);
                let local = self.controller.clock.local(now);
                if let Some(controller) = &mut self.controller.controller {
                    controller.drain(local, server, drained);
                    self.after_controller();
                }
            }
            _ => {}
        }
    }

    /// Ends the faults of servers and controller.
    pub(super) fn heal_stores(&mut self) {
        self.cuts.clear();
        for store in 0..self.stores.len() {
            let now = self.now;
            let node = &mut self.stores[store];
            if node.busy_until > now {
                node.busy_until = now;
            }
            self.befall_stores(Misfortune::StoreReturns { store });
        }
    }

    /// Records errors in the configurations at the end.
    pub(super) fn finish_controller(&mut self) {
        let Some(controller) = &self.controller.controller else {
            return;
        };
        let (settled, behind) = (controller.is_settled(), controller.is_behind());
        let configurations: Vec<String> = controller
            .configurations()
            .map(|config| {
                let members: Vec<u32> = config.members.iter().map(|m| m.server).collect();
                let joining = config.joining.map(|member| member.server);
                format!(
                    "{}@{}: {members:?} + {joining:?}",
                    config.chain, config.epoch
                )
            })
            .collect();
        if !settled {
            self.anomaly(format!("not every chain is whole: {configurations:?}"));
        }
        if behind {
            self.anomaly("a server follows a configuration that was never stored".into());
        }
    }
}
