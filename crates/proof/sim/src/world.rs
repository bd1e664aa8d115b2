//! The world: nodes, links and what happens between them.

mod controller;
mod outputs;
mod power;
mod store;
mod switches;

use crate::chain::{self, Mappings, StoreNode};
use crate::device::{Device, Identity};
use crate::frame::{OUTSIDE_PORT, STORE_PORT};
use crate::options::{Options, ProgramKind};
use crate::own::{Own, Released};
use crate::places::{Message, Party, Places, host_ports};
use crate::plan::{Misfortune, Node, Plan};
use crate::recorder::Recorder;
use crate::report::Coverage;
use crate::simulator::SimError;
use crate::traffic::Traffic;
use stateplane_chains::Rows;
use stateplane_history::replication::{Direction, EventKind, History, StateEvent};
use stateplane_world::{Clock, Net, NodePort, Random, Step};
use std::collections::BTreeMap;

pub use controller::DETECTION;

use controller::ControllerNode;
use switches::SwitchNode;

/// Least flows of an application.
const APPLICATION_FLOWS: u64 = 28;
/// Bursts of each flow of a user's program: an order of its packets is searched.
const OWN_BURSTS: u64 = 24;
/// Time in µs after the end of a run in which the replicas may finish their work.
const LONGEST_GRACE: u64 = 100_000;

/// Makes a switch that knows nothing yet.
pub(crate) type MakeDevice<'a> = &'a dyn Fn(Identity) -> Result<Box<dyn Device>, SimError>;

/// Planned events, but for the arrival of messages and timeouts, which the net knows.
enum Happening {
    Send {
        connection: usize,
        direction: Direction,
    },
    /// The disk of a store server has what was written, if the server has not died since.
    Synced {
        store: usize,
        deaths: u64,
    },
    /// A switch asks the controller where the heads are.
    Ask {
        switch: usize,
        incarnation: u32,
    },
    Misfortune(Misfortune),
    /// All links are whole from here on.
    Heal,
}

/// Results of a world that has ended.
pub(crate) struct Remains {
    pub(crate) history: History,
    pub(crate) coverage: Coverage,
    pub(crate) anomalies: Vec<String>,
    pub(crate) trace: u64,
    /// Faults and their times.
    pub(crate) faults: Vec<(u64, String)>,
    /// Numbers of planned packets and faults.
    pub(crate) planned: (usize, usize),
    /// Packets that a user's program released.
    pub(crate) released: Released,
}

pub(crate) struct World<'a> {
    options: &'a Options,
    make_device: MakeDevice<'a>,
    places: Places,
    net: Net<Message, Happening>,
    /// True time.
    now: u64,
    switches: Vec<SwitchNode>,
    stores: Vec<StoreNode>,
    controller: ControllerNode,
    /// Known mappings, by replica and chain.
    mappings: BTreeMap<(u8, u16), Mappings>,
    traffic: Traffic<'a>,
    recorder: Recorder,
    anomalies: Vec<String>,
    faults: Vec<(u64, String)>,
    planned: (usize, usize),
    first_sequence: u32,
    /// A switch that returned could not be made.
    failure: Option<SimError>,
}

impl<'a> World<'a> {
    pub(crate) fn new(
        options: &'a Options,
        make_device: MakeDevice<'a>,
        own: Option<&'a Own>,
        seed: u64,
    ) -> Result<Self, SimError> {
        let scenario = &options.scenario;
        let mut random = Random::new(seed);
        let before_wrap = random.between(0, scenario.before_wrap) as u32;
        let first_sequence = u32::MAX - before_wrap;
        let mut traffic_random = random.split();
        // An order of their packets is searched, for which flows must not be long.
        let flows = match (options.program.machine(), own) {
            (_, Some(own)) => own.connections() as u64,
            (Some(_), None) => scenario.flows.max(APPLICATION_FLOWS),
            (None, None) => scenario.flows,
        };
        let traffic = Traffic::new(
            options.program,
            scenario.switches.into(),
            flows,
            scenario.alternate,
            own,
            traffic_random.split(),
        );
        let places = Places::of(scenario);
        let mut ports = host_ports();
        ports.extend(own.into_iter().flat_map(Own::ports));
        let mut net = Net::new(&places.topology(scenario, &ports), random);
        let mut stores = Vec::new();
        for store in 0..places.stores {
            let incarnation = net.random.between(1, u32::MAX.into()) as u32;
            let clock = Clock::draw(&mut net.random, 0, scenario.drift);
            let place = places.store(store);
            net.set_clock(place, clock);
            let mut node = StoreNode::new(store, incarnation);
            node.start(options, store, first_sequence, net.local(place))?;
            stores.push(node);
        }
        if scenario.cluster.is_some() {
            let clock = Clock::draw(&mut net.random, 0, scenario.drift);
            net.set_clock(places.controller(), clock);
        }
        let mut world = Self {
            options,
            make_device,
            places,
            net,
            now: 0,
            switches: Vec::new(),
            stores,
            controller: ControllerNode::default(),
            mappings: BTreeMap::new(),
            traffic,
            recorder: Recorder::new(
                options.program,
                match options.program.mapped_class() {
                    Some(_) => chain::pools(),
                    None => Vec::new(),
                },
                first_sequence,
            ),
            anomalies: Vec::new(),
            faults: Vec::new(),
            planned: (0, 0),
            first_sequence,
            failure: None,
        };
        for place in 0..places.switches {
            let identity = Identity {
                switch: place as u32 + 1,
                incarnation: world.net.random.between(1, u32::MAX.into()) as u32,
            };
            let clock = Clock::draw(&mut world.net.random, 0, scenario.drift);
            let service = world.net.random.between(0, scenario.service);
            world.net.set_clock(places.switch(place), clock);
            world.net.set_service(places.switch(place), service);
            world.switches.push(SwitchNode {
                device: Some(make_device(identity)?),
                identity,
                aloof: false,
                rows: Rows::new(identity.switch),
            });
            world.after_switch(place);
            world.begin_asking(place);
        }
        world.start_controller();
        for store in 0..places.stores {
            world.after_store(store);
        }
        world.plan(&mut traffic_random);
        Ok(world)
    }

    fn plan(&mut self, random: &mut Random) {
        let scenario = &self.options.scenario;
        let bursts = match self.options.program {
            ProgramKind::Own(_) => {
                let flows = self.traffic.connections() as u64;
                scenario.bursts.min(flows * OWN_BURSTS)
            }
            _ => scenario.bursts,
        };
        let plan = Plan::draw(
            scenario,
            self.places,
            bursts,
            self.traffic.connections(),
            random,
        );
        let chosen = &self.options.chosen;
        for (number, &(at, connection)) in plan.packets.iter().enumerate() {
            if chosen.has_packet(number) {
                let direction = Direction::Outbound;
                let send = Happening::Send {
                    connection,
                    direction,
                };
                self.net.plan(at, send);
            }
        }
        for (number, fault) in plan.faults.iter().enumerate() {
            if chosen.has_fault(number) {
                for &(at, misfortune) in fault {
                    self.net.plan(at, Happening::Misfortune(misfortune));
                    self.faults.push((at, misfortune.to_string()));
                }
            }
        }
        self.planned = (plan.packets.len(), plan.faults.len());
        self.faults.sort_by_key(|(at, _)| *at);
        self.net.plan(scenario.traffic, Happening::Heal);
    }

    /// Lets everything happen.
    pub(crate) fn run(mut self) -> Result<Remains, SimError> {
        let end = self.options.scenario.traffic + self.options.scenario.settle;
        while let Some(step) = self.net.next_before(end) {
            self.take(step);
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
        }
        // Probes never end; what they are about to do to the chain does.
        while self.chain_is_busy()
            && let Some(step) = self.net.next_before(end + LONGEST_GRACE)
        {
            self.take(step);
        }
        self.now = self.net.now();
        self.finish();
        Ok(Remains {
            history: self.recorder.history,
            coverage: self.recorder.coverage,
            anomalies: self.anomalies,
            trace: self.net.trace(),
            faults: self.faults,
            planned: self.planned,
            released: self.traffic.into_released(),
        })
    }

    fn take(&mut self, step: Step<Message, Happening>) {
        self.now = self.net.now();
        match step {
            Step::Message { from, to, message } => self.deliver(from, to, message),
            Step::Timeout { node } => match self.places.party(node) {
                Party::Switch(switch) => self.switch_timer(switch),
                Party::Store(store) => self.store_timer(store),
                Party::Controller => self.controller_timer(),
                Party::Agent(_) | Party::Hosts => {}
            },
            Step::Lost { to, .. } => {
                let of_switch = matches!(self.places.party(to.node), Party::Switch(_));
                self.recorder.coverage.lost += u64::from(of_switch && to.port == STORE_PORT);
            }
            Step::Event(what) => self.happen(what),
        }
    }

    fn deliver(&mut self, from: NodePort, to: NodePort, message: Message) {
        match (self.places.party(to.node), message) {
            (Party::Switch(switch), Message::Frame(frame)) => {
                self.switch_takes(switch, from, to.port, frame);
            }
            (Party::Store(store), message) => self.store_takes(store, from, to.port, message),
            (Party::Controller, message) => self.controller_takes(from, to.port, message),
            (Party::Agent(switch), Message::Datagram { bytes, .. }) => self.rows(switch, &bytes),
            (Party::Hosts, Message::Packet { number, frame }) => self.host_takes(number, &frame),
            (party, message) => self.anomaly(format!("{party:?} takes no {message:?}")),
        }
    }

    fn host_takes(&mut self, number: u64, frame: &[u8]) {
        let answers = self.traffic.arrived_outside(number, frame);
        let over = self.now >= self.options.scenario.traffic;
        if let Some(connection) = answers.filter(|_| !over) {
            let at = self.now + self.net.random.between(0, 3_000);
            let direction = Direction::Inbound;
            self.net.plan(
                at,
                Happening::Send {
                    connection,
                    direction,
                },
            );
        }
    }

    /// Carries a packet that left a switch to the hosts outside.
    fn send_to_host(&mut self, switch: usize, number: u64, frame: &[u8]) {
        let from = self.places.port(switch, OUTSIDE_PORT);
        let to = self.places.outside();
        let frame = frame.to_vec();
        self.net.send(from, to, &Message::Packet { number, frame });
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Send {
                connection,
                direction,
            } => self.send(connection, direction),
            Happening::Synced { store, deaths } => self.synced(store, deaths),
            Happening::Ask {
                switch,
                incarnation,
            } => self.ask(switch, incarnation),
            Happening::Misfortune(misfortune) => self.befall(misfortune),
            Happening::Heal => {
                self.net.heal();
                self.mend_disks();
                if self.options.scenario.cluster.is_some() {
                    self.heal_stores();
                }
                self.restore_power();
            }
        }
    }

    fn chain_is_busy(&self) -> bool {
        let mut servers = self.stores.iter().filter_map(|node| node.server.as_ref());
        servers.any(|server| {
            let mut replicas = server.replicas();
            replicas.any(|(_, replica)| replica.unacknowledged() > 0)
        })
    }

    /// A switch that was just started learns from the controller where heads are.
    fn begin_asking(&mut self, switch: usize) {
        if self.options.scenario.cluster.is_some() {
            let incarnation = self.switches[switch].identity.incarnation;
            let ask = Happening::Ask {
                switch,
                incarnation,
            };
            self.net.plan(self.now, ask);
        }
    }

    fn anomaly(&mut self, what: String) {
        if self.anomalies.len() < 10 {
            self.anomalies.push(format!("{} µs: {what}", self.now));
        }
    }

    fn count_copies(&mut self, copies: u32) {
        match copies {
            0 => self.recorder.coverage.lost += 1,
            1 => {}
            _ => self.recorder.coverage.duplicated += 1,
        }
    }

    fn befall(&mut self, misfortune: Misfortune) {
        let now = self.now;
        match misfortune {
            Misfortune::Die { switch } => {
                let node = &mut self.switches[switch];
                let Some(device) = node.device.take() else {
                    return;
                };
                let of = node.occupant();
                self.net.die(self.places.switch(switch));
                self.recorder.coverage.table_full += device.table_full();
                self.recorder.died(now, of);
            }
            Misfortune::Return { switch } => {
                if self.switches[switch].device.is_some() {
                    return;
                }
                let drift = self.options.scenario.drift;
                let clock = Clock::draw(&mut self.net.random, now, drift);
                let incarnation = self.net.random.between(1, u32::MAX.into()) as u32;
                self.net.restart(self.places.switch(switch), clock);
                let node = &mut self.switches[switch];
                node.identity.incarnation = incarnation;
                match (self.make_device)(node.identity) {
                    Ok(device) => node.device = Some(device),
                    Err(error) => self.failure = Some(error),
                }
                self.switches[switch].rows = Rows::new(switch as u32 + 1);
                self.after_switch(switch);
                self.begin_asking(switch);
                self.notice(switch);
            }
            Misfortune::Look { switch } => {
                let device = &self.switches[switch].device;
                let useless = device.as_ref().is_none_or(|device| device.is_aloof());
                self.traffic.know(switch, useless);
            }
            Misfortune::Cut { switch, until } => {
                let port = self.places.port(switch, STORE_PORT);
                self.net.take_down(port, until);
            }
            Misfortune::Sever {
                switch,
                store,
                back,
                until,
            } => {
                let (port, requests) = (
                    self.places.port(switch, STORE_PORT),
                    self.places.requests(store),
                );
                if back {
                    self.net.cut(requests, port, until);
                } else {
                    self.net.cut(port, requests, until);
                }
            }
            Misfortune::Secede {
                switch,
                store,
                until,
            } => {
                let port = self.places.port(switch, STORE_PORT);
                let others = (0..self.places.stores).filter(|other| *other != store);
                for other in others {
                    let requests = self.places.requests(other);
                    self.net.cut(port, requests, until);
                    self.net.cut(requests, port, until);
                }
                let others = (0..self.switches.len()).filter(|other| *other != switch);
                for other in others {
                    let port = self.places.port(other, STORE_PORT);
                    let requests = self.places.requests(store);
                    self.net.cut(port, requests, until);
                    self.net.cut(requests, port, until);
                }
                let (agent, controller) = (
                    self.places.rows(switch),
                    self.places.cluster(Node::Controller),
                );
                self.net.cut(agent, controller, until);
                self.net.cut(controller, agent, until);
            }
            Misfortune::StallSwitch { switch, until } => {
                self.net.stall(self.places.switch(switch), until);
            }
            Misfortune::StallReplica { replica, until } => {
                self.net.stall(self.places.store(replica), until);
            }
            Misfortune::Reroute { chance } => self.traffic.reroute(chance),
            of_stores if self.options.scenario.disks.is_some() => self.befall_disks(of_stores),
            of_stores => self.befall_stores(of_stores),
        }
    }

    /// Writes down how everything is left.
    fn finish(&mut self) {
        let now = self.now;
        for node in &self.switches {
            let Some(device) = &node.device else { continue };
            self.recorder.coverage.table_full += device.table_full();
            let acknowledges = !self.traffic.writes_for_ever();
            for (key, slot) in device.slots() {
                if slot.granted && acknowledges {
                    let flow = self.recorder.name(&key);
                    let kept = EventKind::Of(StateEvent::Kept {
                        switch: node.identity.switch,
                        flow,
                        sequence: slot.sequence,
                        acknowledged: slot.acknowledged,
                    });
                    self.recorder.note(now, kept);
                }
            }
        }
        self.recorder.coverage.opened = self.traffic.opened();
        self.finish_stores();
        self.finish_controller();
    }
}
