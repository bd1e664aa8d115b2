//! The controller, and the faults of the controller and the store servers.

use super::{Happening, World};
use crate::places::Message;
use crate::plan::{Misfortune, Node};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_chains::{Controller, Rows, Settings, Transmit};
use stateplane_wire::control::ChainConfig;
use stateplane_world::{Clock, Node as _, NodePort};
use std::collections::BTreeMap;

use crate::chain::{SHARDS, link_address};

/// Silence in µs after which a server is taken for dead.
pub const DETECTION: u64 = 30_000;

/// The controller's address, by which nobody knows it: servers know it by the kind of its
/// messages, agents ask nobody else.
pub(super) const CONTROLLER: SocketAddrV4 =
    SocketAddrV4::new(Ipv4Addr::new(10, 255, 3, 0), stateplane_wire::control::PORT);

/// Address of a switch's agent.
fn switch_address(switch: usize) -> SocketAddrV4 {
    SocketAddrV4::new(
        Ipv4Addr::new(10, 255, 3, switch as u8 + 1),
        stateplane_wire::control::PORT,
    )
}

/// The controller and its disk.
#[derive(Default)]
pub(crate) struct ControllerNode {
    controller: Option<Controller>,
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

impl stateplane_world::Node for ControllerNode {
    type Message = Message;
    type Transmit = Transmit;

    fn handle_message(&mut self, now: u64, _: u16, _: NodePort, message: Message) {
        if let (Some(controller), Message::Datagram { from, bytes }) =
            (&mut self.controller, message)
        {
            controller.handle_message(now, from, &bytes);
        }
    }

    fn handle_timeout(&mut self, now: u64) {
        if let Some(controller) = &mut self.controller {
            controller.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, _: u64) -> Option<Transmit> {
        self.controller.as_mut()?.poll_transmit()
    }

    fn poll_timeout(&self) -> Option<u64> {
        Some(self.controller.as_ref()?.poll_timeout())
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
            ..Settings::new(SHARDS, self.options.scenario.replicas)
        };
        let incarnation = self.net.random.between(1, u32::MAX.into()) as u32;
        let local = self.net.local(self.places.controller());
        let node = &mut self.controller;
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

    pub(super) fn controller_takes(&mut self, from: NodePort, port: u16, message: Message) {
        let local = self.net.local(self.places.controller());
        self.controller.handle_message(local, port, from, message);
        self.after_controller();
    }

    pub(super) fn controller_timer(&mut self) {
        let local = self.net.local(self.places.controller());
        self.controller.handle_timeout(local);
        self.after_controller();
    }

    /// Stores what the controller decided, carries what it sends, and sees when it
    /// wants to be woken.
    fn after_controller(&mut self) {
        let place = self.places.controller();
        let local = self.net.local(place);
        let node = &mut self.controller;
        let Some(controller) = &mut node.controller else {
            return;
        };
        while let Some(config) = controller.poll_record() {
            self.recorder.coverage.configurations += 1;
            node.disk.push(config.clone());
            controller.handle_stored(local, &config);
            node.current.insert(config.chain, config);
        }
        for transmit in self.net.poll(place, node) {
            let store = (0..self.stores.len()).find(|&store| link_address(store) == transmit.to);
            let mut switches = 0..self.switches.len();
            if let Some(store) = store {
                self.between_nodes(Node::Controller, Node::Store(store), &transmit.bytes);
            } else if let Some(switch) = switches.find(|&s| switch_address(s) == transmit.to) {
                let from = self.places.cluster(Node::Controller);
                let rows = Message::Datagram {
                    from: CONTROLLER,
                    bytes: transmit.bytes,
                };
                self.net.send(from, self.places.rows(switch), &rows);
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
        self.net.plan(self.now + Rows::PERIOD, again);
    }

    fn ask_once(&mut self, switch: usize) {
        let question = self.switches[switch].rows.ask();
        let question = Message::Datagram {
            from: switch_address(switch),
            bytes: question,
        };
        let to = self.places.cluster(Node::Controller);
        self.net.send(self.places.rows(switch), to, &question);
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
        self.after_switch(switch);
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
    /// other servers can be reached. A member whose disk rotted is away until it has all that it
    /// had.
    pub(super) fn may_die(&self) -> bool {
        let members = usize::from(self.options.scenario.replicas);
        let whole = (0..SHARDS).all(|shard| self.sure_keepers(shard).len() >= members);
        let mut stores = 0..self.stores.len();
        let awake = stores.all(|store| self.net.stands_until(self.places.store(store)).is_none());
        whole && awake && !self.net.has_cuts()
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
                node.died_at = Some(now);
                self.net.die(self.places.store(store));
                self.recorder.coverage.store_deaths += 1;
                self.net.plan(
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
                let drift = self.options.scenario.drift;
                let clock = Clock::draw(&mut self.net.random, now, drift);
                let incarnation = self.net.random.between(1, u32::MAX.into()) as u32;
                let place = self.places.store(store);
                self.net.restart(place, clock);
                let local = self.net.local(place);
                let node = &mut self.stores[store];
                node.identity.incarnation = incarnation;
                let first = self.first_sequence;
                if let Err(error) = node.start(self.options, store, first, local) {
                    self.anomaly(error.to_string());
                }
                self.after_store(store);
            }
            Misfortune::StorePauses { .. } | Misfortune::CutNodes { .. } if self.mourns() => {}
            Misfortune::StorePauses { store, until } => {
                self.net.stall(self.places.store(store), until);
            }
            Misfortune::CutNodes { from, to, until } => {
                let (from, to) = (self.places.cluster(from), self.places.cluster(to));
                self.net.cut(from, to, until);
            }
            Misfortune::ControllerRestarts => {
                self.controller.controller = None;
                let place = self.places.controller();
                self.net.die(place);
                self.net.restart(place, *self.net.clock(place));
                self.start_controller();
            }
            Misfortune::Drain { store, drained } => {
                let server = self.stores[store].identity.server;
                self.controller.drained.insert(server, drained);
                let local = self.net.local(self.places.controller());
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
        for store in 0..self.stores.len() {
            self.net.rouse(self.places.store(store));
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
