//! The world: nodes, links and what happens between them.

mod controller;
mod outputs;
mod power;
mod store;
mod switches;

use crate::chain::{self, Mappings, StoreNode};
use crate::clock::Clock;
use crate::device::{Device, Identity};
use crate::link::LinkQuality;
use crate::options::{Options, ProgramKind};
use crate::own::{Own, Released};
use crate::plan::{Misfortune, Node, Plan, REPLICAS, SWITCHES};
use crate::recorder::Recorder;
use crate::report::Coverage;
use crate::schedule::Schedule;
use crate::simulator::SimError;
use crate::traffic::Traffic;
use core::net::{Ipv4Addr, SocketAddrV4};
use rustc_hash::FxHasher;
use stateplane_apps::Random;
use stateplane_chains::Rows;
use stateplane_history::replication::{Direction, EventKind, History, Occupant, StateEvent};
use std::collections::{BTreeMap, VecDeque};
use std::hash::Hasher;

pub use controller::DETECTION;

use controller::ControllerNode;

/// Frames that wait before a switch; more are lost, as in a real ring.
const RING: usize = 512;
/// Least flows of an application.
const APPLICATION_FLOWS: u64 = 28;
/// Bursts of each flow of a user's program: an order of its packets is searched.
const OWN_BURSTS: u64 = 24;
/// Time in µs after the end of a run in which the replicas may finish their work.
const LONGEST_GRACE: u64 = 100_000;

/// Makes a switch that knows nothing yet.
pub(crate) type MakeDevice<'a> = &'a dyn Fn(Identity) -> Result<Box<dyn Device>, SimError>;

enum Happening {
    Send {
        connection: usize,
        direction: Direction,
    },
    /// A frame comes to a switch.
    ToSwitch {
        switch: usize,
        port: u16,
        frame: Vec<u8>,
    },
    /// A switch takes the next frame from its ring.
    Serve {
        switch: usize,
        incarnation: u32,
    },
    SwitchTimer {
        switch: usize,
        incarnation: u32,
    },
    Request {
        to: Ipv4Addr,
        from: SocketAddrV4,
        bytes: Vec<u8>,
    },
    /// A message comes to the chain port of a store server.
    ToStore {
        store: usize,
        from: Node,
        bytes: Vec<u8>,
    },
    StoreTimer {
        store: usize,
    },
    /// The disk of a store server has what was written, if the server has not died since.
    Synced {
        store: usize,
        deaths: u64,
    },
    ToController {
        from: SocketAddrV4,
        bytes: Vec<u8>,
    },
    ControllerTimer,
    /// A switch asks the controller where the heads are.
    Ask {
        switch: usize,
        incarnation: u32,
    },
    /// The controller's answer.
    Rows {
        switch: usize,
        bytes: Vec<u8>,
    },
    ToHost {
        number: u64,
        frame: Vec<u8>,
    },
    Misfortune(Misfortune),
    /// All links are whole from here on.
    Heal,
}

struct SwitchNode {
    device: Option<Box<dyn Device>>,
    identity: Identity,
    clock: Clock,
    ring: VecDeque<(u16, Vec<u8>)>,
    /// True if a `Serve` is scheduled.
    serving: bool,
    busy_until: u64,
    timer: Option<u64>,
    cut_until: u64,
    /// µs for one frame.
    service: u64,
    /// Its data ports were down when it was last looked at.
    aloof: bool,
    rows: Rows,
}

impl SwitchNode {
    fn occupant(&self) -> Occupant {
        Occupant {
            switch: self.identity.switch,
            incarnation: self.identity.incarnation,
        }
    }
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
    random: Random,
    schedule: Schedule<Happening>,
    now: u64,
    switches: Vec<SwitchNode>,
    stores: Vec<StoreNode>,
    controller: ControllerNode,
    /// End times of one-way partitions between two nodes.
    cuts: BTreeMap<(Node, Node), u64>,
    /// Known mappings, by replica and chain.
    mappings: BTreeMap<(u8, u16), Mappings>,
    traffic: Traffic<'a>,
    recorder: Recorder,
    trace: FxHasher,
    anomalies: Vec<String>,
    faults: Vec<(u64, String)>,
    planned: (usize, usize),
    first_sequence: u32,
    whole: bool,
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
            flows,
            scenario.alternate,
            own,
            traffic_random.split(),
        );
        let mut stores = Vec::new();
        let count = scenario.cluster.map_or(REPLICAS, |c| c.stores.into());
        for store in 0..count {
            let incarnation = random.between(1, u32::MAX.into()) as u32;
            let clock = Clock::draw(&mut random, 0, scenario.drift);
            let mut node = StoreNode::new(store, incarnation, clock);
            node.start(options, store, first_sequence, 0)?;
            stores.push(node);
        }
        let controller = ControllerNode::new(&mut random, scenario);
        let mut world = Self {
            options,
            make_device,
            schedule: Schedule::new(),
            now: 0,
            switches: Vec::new(),
            stores,
            controller,
            cuts: BTreeMap::new(),
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
            trace: FxHasher::default(),
            anomalies: Vec::new(),
            faults: Vec::new(),
            planned: (0, 0),
            first_sequence,
            whole: false,
            failure: None,
            random,
        };
        for place in 0..SWITCHES {
            let identity = Identity {
                switch: place as u32 + 1,
                incarnation: world.random.between(1, u32::MAX.into()) as u32,
            };
            let clock = Clock::draw(&mut world.random, 0, scenario.drift);
            let service = world.random.between(0, scenario.service);
            world.switches.push(SwitchNode {
                device: Some(make_device(identity)?),
                identity,
                clock,
                ring: VecDeque::new(),
                serving: false,
                busy_until: 0,
                timer: None,
                cut_until: 0,
                service,
                aloof: false,
                rows: Rows::new(identity.switch),
            });
            world.after_switch(place, None);
            world.begin_asking(place);
        }
        world.start_controller();
        for store in 0..count {
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
        let plan = Plan::draw(scenario, bursts, self.traffic.connections(), random);
        let chosen = &self.options.chosen;
        for (number, &(at, connection)) in plan.packets.iter().enumerate() {
            if chosen.has_packet(number) {
                let direction = Direction::Outbound;
                let send = Happening::Send {
                    connection,
                    direction,
                };
                self.schedule.add(at, send);
            }
        }
        for (number, fault) in plan.faults.iter().enumerate() {
            if chosen.has_fault(number) {
                for &(at, misfortune) in fault {
                    self.schedule.add(at, Happening::Misfortune(misfortune));
                    self.faults.push((at, misfortune.to_string()));
                }
            }
        }
        self.planned = (plan.packets.len(), plan.faults.len());
        self.faults.sort_by_key(|(at, _)| *at);
        self.schedule.add(scenario.traffic, Happening::Heal);
    }

    /// Lets everything happen.
    pub(crate) fn run(mut self) -> Result<Remains, SimError> {
        let end = self.options.scenario.traffic + self.options.scenario.settle;
        while let Some((at, what)) = self.schedule.pop_before(end) {
            self.now = at;
            self.happen(what);
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
        }
        // Probes never end; what they are about to do to the chain does.
        while self.chain_is_busy()
            && let Some((at, what)) = self.schedule.pop_before(end + LONGEST_GRACE)
        {
            self.now = at;
            self.happen(what);
        }
        self.finish();
        Ok(Remains {
            history: self.recorder.history,
            coverage: self.recorder.coverage,
            anomalies: self.anomalies,
            trace: self.trace.finish(),
            faults: self.faults,
            planned: self.planned,
            released: self.traffic.into_released(),
        })
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Send {
                connection,
                direction,
            } => self.send(connection, direction),
            Happening::ToSwitch {
                switch,
                port,
                frame,
            } => self.arrive(switch, port, frame),
            Happening::Serve {
                switch,
                incarnation,
            } => self.serve(switch, incarnation),
            Happening::SwitchTimer {
                switch,
                incarnation,
            } => self.switch_timer(switch, incarnation),
            Happening::Request { to, from, bytes } => self.request(to, from, bytes),
            Happening::ToStore { store, from, bytes } => self.link_message(store, from, bytes),
            Happening::StoreTimer { store } => self.store_timer(store),
            Happening::Synced { store, deaths } => self.synced(store, deaths),
            Happening::ToController { from, bytes } => self.controller_message(from, &bytes),
            Happening::ControllerTimer => self.controller_timer(),
            Happening::Ask {
                switch,
                incarnation,
            } => self.ask(switch, incarnation),
            Happening::Rows { switch, bytes } => self.rows(switch, &bytes),
            Happening::ToHost { number, frame } => {
                let answers = self.traffic.arrived_outside(number, &frame);
                let over = self.now >= self.options.scenario.traffic;
                if let Some(connection) = answers.filter(|_| !over) {
                    let at = self.now + self.random.between(0, 3_000);
                    let direction = Direction::Inbound;
                    self.schedule.add(
                        at,
                        Happening::Send {
                            connection,
                            direction,
                        },
                    );
                }
            }
            Happening::Misfortune(misfortune) => self.befall(misfortune),
            Happening::Heal => {
                self.whole = true;
                for switch in &mut self.switches {
                    switch.cut_until = self.now;
                }
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
            self.schedule.add(self.now, ask);
        }
    }

    /// Adds to the trace that a node takes `bytes`: switches count first, then
    /// store servers.
    fn witness(&mut self, node: usize, bytes: &[u8]) {
        self.trace.write_u64(self.now);
        self.trace.write_usize(node);
        self.trace.write(bytes);
    }

    fn quality(&self, link: impl Fn(&Options) -> LinkQuality) -> LinkQuality {
        let quality = link(self.options);
        if self.whole {
            LinkQuality::whole(quality.delay)
        } else {
            quality
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
                node.ring.clear();
                node.serving = false;
                node.timer = None;
                let of = node.occupant();
                self.recorder.coverage.table_full += device.table_full();
                self.recorder.died(now, of);
            }
            Misfortune::Return { switch } => {
                if self.switches[switch].device.is_some() {
                    return;
                }
                let clock = Clock::draw(&mut self.random, now, self.options.scenario.drift);
                let incarnation = self.random.between(1, u32::MAX.into()) as u32;
                let node = &mut self.switches[switch];
                node.clock = clock;
                node.busy_until = now;
                node.identity.incarnation = incarnation;
                match (self.make_device)(node.identity) {
                    Ok(device) => node.device = Some(device),
                    Err(error) => self.failure = Some(error),
                }
                self.switches[switch].rows = Rows::new(switch as u32 + 1);
                self.after_switch(switch, None);
                self.begin_asking(switch);
                self.notice(switch);
            }
            Misfortune::Look { switch } => {
                let device = &self.switches[switch].device;
                let useless = device.as_ref().is_none_or(|device| device.is_aloof());
                self.traffic.know(switch, useless);
            }
            Misfortune::Cut { switch, until } => {
                let node = &mut self.switches[switch];
                node.cut_until = node.cut_until.max(until);
            }
            Misfortune::StallSwitch { switch, until } => {
                let node = &mut self.switches[switch];
                node.busy_until = node.busy_until.max(until);
            }
            Misfortune::StallReplica { replica, until } => {
                let node = &mut self.stores[replica];
                node.busy_until = node.busy_until.max(until);
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
        self.finish_stores();
        self.finish_controller();
    }
}
