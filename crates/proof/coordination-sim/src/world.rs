//! The world: nodes, links and what happens between them.

mod observer;

use crate::authority::{ControllerNode, DETECTION};
use crate::client::{ClientNode, group_name, lanes_of};
use crate::device::Device;
use crate::options::Options;
use crate::places::{Party, Places, SWITCHES, client_address, switch_address};
use crate::plan::{Misfortune, Plan, Planned};
use crate::report::Coverage;
use crate::simulator::SimError;
use observer::Observer;
use stateplane_apps::datagram::{datagram, frame};
use stateplane_coordination::Lanes;
use stateplane_history::coordination::{
    Coordination, CoordinationEvent, Event, EventKind, History, Scanned, Told,
};
use stateplane_world::{Clock, Net, Node as _, NodePort, Random, Step};

/// Makes a switch that knows nothing yet: of its place and incarnation.
pub(crate) type MakeDevice<'a> =
    &'a dyn Fn(&Places, usize, u32) -> Result<Box<dyn Device>, SimError>;

/// Time from the loss of a group until an operator looks, and between looks, in µs.
const OPERATOR_LOOKS: u64 = 90_000;

/// Time in which a group serves again after faults, in µs.
pub(crate) const SERVES_WITHIN: u64 = 2_000_000;

enum Happening {
    Begin { number: u64, planned: Planned },
    Misfortune(Misfortune),
    Heal,
}

/// Results of a world that has ended.
pub(crate) struct Remains {
    pub(crate) history: History,
    pub(crate) coverage: Coverage,
    pub(crate) anomalies: Vec<String>,
    pub(crate) trace: u64,
    pub(crate) faults: Vec<(u64, String)>,
    pub(crate) planned: (usize, usize),
}

struct SwitchNode {
    device: Option<Box<dyn Device>>,
    incarnation: u32,
}

struct SwitchCore<'a>(&'a mut dyn Device);

impl stateplane_world::Node for SwitchCore<'_> {
    type Message = Vec<u8>;
    type Transmit = (u16, Vec<u8>);

    fn handle_message(&mut self, now: u64, port: u16, _: NodePort, frame: Vec<u8>) {
        self.0.handle_frame(now, port, &frame);
    }

    fn handle_timeout(&mut self, now: u64) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self, _: u64) -> Option<(u16, Vec<u8>)> {
        self.0.poll_transmit()
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.0.poll_timeout()
    }
}

pub(crate) struct World<'a> {
    options: &'a Options,
    make: MakeDevice<'a>,
    places: Places,
    net: Net<Vec<u8>, Happening>,
    switches: Vec<SwitchNode>,
    controller: ControllerNode,
    clients: Vec<Option<ClientNode>>,
    observer: Observer,
    /// Until when the controller may take each switch for dead, or leave it out, though nothing
    /// stands in its way.
    hindered: [u64; SWITCHES],
    /// Until when the controller may leave out members that no way joined.
    apart_until: u64,
    history: History,
    coverage: Coverage,
    anomalies: Vec<String>,
    faults: Vec<(u64, String)>,
    planned: (usize, usize),
    failure: Option<SimError>,
}

impl<'a> World<'a> {
    pub(crate) fn new(
        options: &'a Options,
        make: MakeDevice<'a>,
        seed: u64,
    ) -> Result<Self, SimError> {
        let scenario = &options.scenario;
        let mut random = Random::new(seed);
        let mut plan_random = random.split();
        let places = Places {
            // And the reaper.
            clients: usize::from(scenario.clients) + usize::from(scenario.ttl > 0),
        };
        let mut net = Net::new(&places.topology(scenario), random);
        let mut switches = Vec::new();
        for place in 0..SWITCHES {
            let incarnation = net.random.between(1, u32::MAX.into()) as u32;
            let clock = Clock::draw(&mut net.random, 0, scenario.drift);
            net.set_clock(place, clock);
            let device = Some(make(&places, place, incarnation)?);
            switches.push(SwitchNode {
                device,
                incarnation,
            });
        }
        let lives = switches.iter().map(|node| Some(node.incarnation));
        let draw = net.random.next();
        let controller = ControllerNode::new(scenario, options.without, lives.collect(), draw);
        let mut clients = Vec::new();
        for client in 0..places.clients {
            let clock = Clock::draw(&mut net.random, 0, scenario.drift.min(20_000));
            net.set_clock(Places::client(client), clock);
            let seed = net.random.next();
            let node = ClientNode::new(client, scenario, options.without, seed);
            clients.push(Some(node));
        }
        let groups = if scenario.serves {
            (0..scenario.groups)
                .map(|group| group_name(group.into()))
                .collect()
        } else {
            Vec::new()
        };
        let mut world = Self {
            options,
            make,
            places,
            net,
            switches,
            controller,
            clients,
            observer: Observer::new(scenario),
            hindered: [0; SWITCHES],
            apart_until: 0,
            history: History {
                system: Coordination {
                    groups,
                    serves_within: SERVES_WITHIN,
                },
                events: Vec::new(),
            },
            coverage: Coverage::default(),
            anomalies: Vec::new(),
            faults: Vec::new(),
            planned: (0, 0),
            failure: None,
        };
        world.start_controller();
        world.reroute();
        for switch in 0..SWITCHES {
            world.after_switch(switch);
        }
        for client in 0..places.clients {
            world.after_client(client);
        }
        world.plan(&mut plan_random);
        Ok(world)
    }

    fn plan(&mut self, random: &mut Random) {
        let plan = Plan::draw(&self.options.scenario, &self.places, random);
        let chosen = &self.options.chosen;
        for (number, planned) in plan.operations.iter().enumerate() {
            if chosen.has_packet(number) {
                let begin = Happening::Begin {
                    number: number as u64 + 1,
                    planned: *planned,
                };
                self.net.plan(planned.at, begin);
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
        self.planned = (plan.operations.len(), plan.faults.len());
        self.faults.sort_by_key(|(at, _)| *at);
        self.net
            .plan(self.options.scenario.traffic, Happening::Heal);
    }

    pub(crate) fn run(mut self) -> Result<Remains, SimError> {
        let scenario = &self.options.scenario;
        // The last operations end, and members get what they lack.
        let end = scenario.traffic + scenario.settle + 2 * scenario.deadline;
        while let Some(step) = self.net.next_before(end) {
            self.take(step);
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
        }
        self.finish();
        Ok(Remains {
            history: self.history,
            coverage: self.coverage,
            anomalies: self.anomalies,
            trace: self.net.trace(),
            faults: self.faults,
            planned: self.planned,
        })
    }

    fn take(&mut self, step: Step<Vec<u8>, Happening>) {
        match step {
            Step::Message { from, to, message } => self.deliver(from, to, message),
            Step::Timeout { node } => {
                let local = self.net.local(node);
                match Places::party(node) {
                    Party::Switch(switch) => {
                        if let Some(device) = &mut self.switches[switch].device {
                            device.handle_timeout(local);
                        }
                        self.after_switch(switch);
                    }
                    Party::Controller => {
                        self.controller.handle_timeout(local);
                        self.after_controller();
                    }
                    Party::Client(client) => {
                        if let Some(node) = &mut self.clients[client] {
                            node.handle_timeout(local);
                        }
                        self.after_client(client);
                    }
                }
            }
            Step::Lost { .. } => self.coverage.lost += 1,
            Step::Event(Happening::Begin { number, planned }) => self.begin(number, planned),
            Step::Event(Happening::Misfortune(misfortune)) => self.befall(misfortune),
            Step::Event(Happening::Heal) => self.heal(),
        }
    }

    fn deliver(&mut self, from: NodePort, to: NodePort, message: Vec<u8>) {
        let local = self.net.local(to.node);
        match Places::party(to.node) {
            Party::Switch(switch) => {
                if let Some(device) = &mut self.switches[switch].device {
                    device.handle_frame(local, to.port, &message);
                }
                self.after_switch(switch);
            }
            Party::Controller => {
                self.controller
                    .handle_message(local, to.port, from, message);
                self.after_controller();
            }
            Party::Client(client) => {
                if let (Some(node), Some((_, _, bytes))) =
                    (&mut self.clients[client], datagram(&message))
                {
                    match to.port {
                        0 => node.handle_message(local, 0, from, bytes.to_vec()),
                        _ => node.chains(local, bytes),
                    }
                }
                self.after_client(client);
            }
        }
    }

    fn send(&mut self, from: NodePort, frame: &Vec<u8>) {
        if let Some(to) = self.net.peer(from) {
            self.net.send(from, to, frame);
        }
    }

    fn after_switch(&mut self, switch: usize) {
        let now = self.net.now();
        let node = &mut self.switches[switch];
        let Some(device) = &mut node.device else {
            return;
        };
        self.observer
            .observe(now, switch, &mut **device, &mut self.history.events);
        if let Some(error) = device.failed() {
            self.failure = Some(SimError::Setup(error.into()));
        }
        let sent = self.net.poll(switch, &mut SwitchCore(&mut **device));
        for (port, frame) in sent {
            self.send(NodePort::new(switch, port), &frame);
        }
    }

    fn after_controller(&mut self) {
        if let Some(broken) = self.controller.broken() {
            self.anomaly(format!("the controller's invariant is broken: {broken}"));
        }
        let sent = self.net.poll(Places::CONTROLLER, &mut self.controller);
        for (port, frame) in sent {
            self.send(NodePort::new(Places::CONTROLLER, port), &frame);
        }
    }

    /// Writes down what a client noted.
    fn record(&mut self, client: usize) {
        let at = self.net.now();
        let Some(node) = &mut self.clients[client] else {
            return;
        };
        for kind in core::mem::take(&mut node.notes) {
            match &kind {
                EventKind::Return { .. } => self.coverage.answered += 1,
                EventKind::Of(CoordinationEvent::Unknown { .. }) => self.coverage.unknown += 1,
                EventKind::Of(CoordinationEvent::Told { told, .. }) => match told {
                    Told::Put | Told::Deleted => self.coverage.told += 1,
                    Told::Compacted => self.coverage.compacted += 1,
                    Told::Begin | Told::End => {}
                },
                EventKind::Of(CoordinationEvent::Scanned {
                    scanned: Scanned::End,
                    ..
                }) => {
                    self.coverage.listed += 1;
                    self.coverage.answered += 1;
                }
                _ => {}
            }
            self.history.events.push(Event { at, kind });
        }
    }

    fn after_client(&mut self, client: usize) {
        let local = self.net.local(Places::client(client));
        if let Some(node) = &mut self.clients[client] {
            node.listen(local);
        }
        self.record(client);
        self.see_ended(client);
        let Some(node) = &mut self.clients[client] else {
            return;
        };
        let question = node.wants_chains().then(|| node.question());
        let place = Places::client(client);
        let sent = self.net.poll(place, node);
        // The reaper notes what it sends.
        self.record(client);
        for (to, bytes) in sent {
            let frame = frame(client_address(client), to, &bytes);
            self.send(NodePort::new(place, 0), &frame);
        }
        if let Some(question) = question {
            self.send(NodePort::new(place, 1), &question);
        }
    }

    fn begin(&mut self, number: u64, planned: Planned) {
        let scenario = &self.options.scenario;
        let client = planned.client;
        let place = Places::client(client);
        if self.net.stands_until(place).is_some() {
            return;
        }
        let (now, local) = (self.net.now(), self.net.local(place));
        let clock = self.net.clock(place);
        // A timer may be a little late.
        let until = clock.time_of(local + scenario.deadline) + 10;
        if let Some(node) = &mut self.clients[client] {
            self.coverage.asked += 1;
            node.begin(local, scenario, number, planned.draw, until.max(now));
        }
        self.after_client(client);
    }

    fn lives(&self) -> Vec<Option<u32>> {
        let nodes = self.switches.iter();
        let lives = nodes.map(|node| node.device.as_ref().map(|_| node.incarnation));
        lives.collect()
    }

    fn start_controller(&mut self) {
        let incarnation = self.net.random.between(1, u32::MAX.into()) as u32;
        let local = self.net.local(Places::CONTROLLER);
        if let Err(error) = self.controller.start(local, incarnation) {
            self.anomaly(error);
        }
        self.after_controller();
    }

    fn reroute(&mut self) {
        let lives: Vec<bool> = self.lives().iter().map(Option::is_some).collect();
        for (switch, node) in self.switches.iter_mut().enumerate() {
            if let Some(device) = &mut node.device {
                for (to, port) in self.places.routes(switch, &lives) {
                    device.route(to, port);
                }
            }
        }
    }

    fn befall(&mut self, misfortune: Misfortune) {
        let now = self.net.now();
        match misfortune {
            Misfortune::Dies { switch, until } => {
                if self.switches[switch].device.is_some() && self.may_die(switch) {
                    self.die_until(switch, until);
                }
            }
            Misfortune::GroupDies { draw, until } => {
                let configs: Vec<_> = self.controller.configs().into_values().collect();
                let Some(config) = configs.get(draw as usize % configs.len().max(1)) else {
                    return;
                };
                for (switch, _) in config.members.iter().chain(&config.joining) {
                    if self.switches[*switch].device.is_some() {
                        self.die_until(*switch, until);
                    }
                }
                let looks = Happening::Misfortune(Misfortune::Refounds);
                self.net.plan(now + OPERATOR_LOOKS, looks);
            }
            Misfortune::Refounds => {
                let local = self.net.local(Places::CONTROLLER);
                for group in self.controller.lost() {
                    self.coverage.refounded += u64::from(self.controller.refound(local, group));
                }
                self.after_controller();
                if !self.controller.lost().is_empty() {
                    let looks = Happening::Misfortune(Misfortune::Refounds);
                    self.net.plan(now + OPERATOR_LOOKS, looks);
                }
            }
            Misfortune::Returns { switch } => self.restart(switch),
            Misfortune::Reroutes => self.reroute(),
            Misfortune::Cut { from, to, until } => {
                let hidden = [(from, to), (to, from)]
                    .into_iter()
                    .find(|(_, peer)| peer.node == Places::CONTROLLER);
                let hidden = hidden.filter(|(own, _)| own.node < SWITCHES);
                if hidden.is_none_or(|(own, _)| self.may_seem_dead(own.node)) {
                    self.net.cut(from, to, until);
                    if let Some((own, _)) = hidden {
                        self.hinder(own.node, until);
                    } else if from.node < SWITCHES && to.node < SWITCHES {
                        // One of the two may be left out of a group that stands still.
                        self.hinder(from.node, until);
                        self.hinder(to.node, until);
                    }
                }
            }
            Misfortune::Stalls { switch, until } => {
                if self.may_seem_dead(switch) {
                    self.net.stall(switch, until);
                    self.hinder(switch, until);
                }
            }
            Misfortune::ClientDies { client } => {
                if self.clients[client].take().is_some() {
                    let node = ClientNode::node(client);
                    self.net.die(Places::client(client));
                    self.note(EventKind::Died { node });
                }
            }
            Misfortune::ClientStalls { client, until } => {
                self.net.stall(Places::client(client), until);
            }
            Misfortune::WatchesPause { client, until } => {
                let local = self.net.local(Places::client(client));
                if let Some(node) = &mut self.clients[client] {
                    node.pause_watches(local);
                    let on = Misfortune::WatchesGoOn { client };
                    self.net.plan(until, Happening::Misfortune(on));
                }
                self.after_client(client);
            }
            Misfortune::WatchesGoOn { client } => {
                if let Some(node) = &mut self.clients[client] {
                    node.resume_watches();
                }
                self.after_client(client);
            }
            Misfortune::ControllerRestarts => self.start_controller(),
            Misfortune::Changes { draw } => self.controller.change(draw),
        }
    }

    /// True if the controller may take the switch for dead, and leave it out of chains, without the
    /// loss of a group whose other members died.
    fn may_seem_dead(&self, switch: usize) -> bool {
        self.options.scenario.changes > 0 || self.may_die(switch)
    }

    /// Something stands between a switch and the controller until then, which believes for as long
    /// as it takes to notice a death that the switch is dead.
    fn hinder(&mut self, switch: usize, until: u64) {
        let until = until + 2 * DETECTION;
        self.hindered[switch] = self.hindered[switch].max(until);
    }

    /// True if every group keeps a member that lives and that nothing stands in the way of.
    fn may_die(&self, switch: usize) -> bool {
        let hindered = (0..SWITCHES).filter(|&other| {
            let way = NodePort::new(other, crate::places::CONTROLLER_PORT);
            let peer = NodePort::new(Places::CONTROLLER, other as u16);
            self.net.is_cut(way, peer)
                || self.net.is_cut(peer, way)
                || self.net.stands_until(other).is_some()
                || self.hindered[other] > self.net.now()
        });
        let without: Vec<usize> = hindered.chain([switch]).collect();
        let configs = self.controller.configs();
        configs.len() == usize::from(self.options.scenario.groups)
            && self.controller.lost_without(&without).is_empty()
            && self.net.now() >= self.apart_until
            && !self.are_apart()
    }

    /// True if no way leads from one member of a group to another over switches that live: the
    /// controller is about to leave one of them out, and the other is then the last.
    fn are_apart(&self) -> bool {
        if self.options.scenario.changes > 0 {
            return false;
        }
        let lives: Vec<bool> = self.lives().iter().map(Option::is_some).collect();
        self.controller.configs().values().any(|config| {
            let members = config.members.iter().map(|(switch, _)| *switch);
            let members: Vec<usize> = members.filter(|switch| lives[*switch]).collect();
            members.windows(2).any(|pair| {
                let ways = self.places.routes(pair[0], &lives);
                let mut ways = ways.into_iter();
                !ways.any(|(to, _)| to == switch_address(pair[1]))
            })
        })
    }

    /// A switch dies, routing sees it soon, and the switch returns at `until`.
    fn die_until(&mut self, switch: usize, until: u64) {
        self.coverage.deaths += 1;
        self.die(switch);
        let soon = self.net.now() + self.net.random.between(500, 15_000);
        for (at, misfortune) in [
            (soon, Misfortune::Reroutes),
            (until, Misfortune::Returns { switch }),
        ] {
            self.net.plan(at, Happening::Misfortune(misfortune));
        }
    }

    fn die(&mut self, switch: usize) {
        if let Some(device) = self.switches[switch].device.take() {
            self.count(&*device);
            self.net.die(switch);
            self.observer.died(switch);
            self.note(EventKind::Died {
                node: switch as u32 + 1,
            });
            self.controller.sees(self.lives());
        }
    }

    fn restart(&mut self, switch: usize) {
        if self.switches[switch].device.is_some() {
            return;
        }
        if self.are_apart() {
            self.apart_until = self.net.now() + 4 * DETECTION;
        }
        let incarnation = self.net.random.between(1, u32::MAX.into()) as u32;
        let drift = self.options.scenario.drift;
        let now = self.net.now();
        let clock = Clock::draw(&mut self.net.random, now, drift);
        self.net.restart(switch, clock);
        match (self.make)(&self.places, switch, incarnation) {
            Ok(device) => {
                self.switches[switch] = SwitchNode {
                    device: Some(device),
                    incarnation,
                };
            }
            Err(error) => self.failure = Some(error),
        }
        self.controller.sees(self.lives());
        self.reroute();
        self.after_switch(switch);
    }

    /// When the load and the faults end, chains are whole, and no group stands still.
    fn recovered(&mut self) {
        let scenario = &self.options.scenario;
        let (replicas, from) = (usize::from(scenario.replicas), scenario.traffic / 2);
        if scenario.recovers {
            for (group, config) in self.controller.configs() {
                if config.members.len() < replicas {
                    let members = config.members.len();
                    self.anomaly(format!("g{group} has {members} members when the load ends"));
                }
            }
        }
        if self.options.scenario.lasting_cuts > 0 {
            for group in 0..u16::from(self.options.scenario.groups) {
                let name = group_name(group);
                let served = self.history.events.iter().any(|event| {
                    event.at >= from
                        && matches!(
                            &event.kind,
                            EventKind::Return { object, response, .. }
                                if *object == name && response.number > 0
                        )
                });
                if !served {
                    self.anomaly(format!("g{group} stands still while a link is cut"));
                }
            }
        }
    }

    fn heal(&mut self) {
        self.recovered();
        self.net.heal();
        for switch in 0..SWITCHES {
            self.net.rouse(switch);
            self.restart(switch);
        }
        self.reroute();
        self.note(EventKind::Of(CoordinationEvent::Whole));
    }

    fn note(&mut self, kind: EventKind) {
        let at = self.net.now();
        self.history.events.push(Event { at, kind });
    }

    fn anomaly(&mut self, what: String) {
        if self.anomalies.len() < 10 {
            self.anomalies
                .push(format!("{} µs: {what}", self.net.now()));
        }
    }

    fn count(&mut self, device: &dyn Device) {
        for (index, count) in self.coverage.events.iter_mut().enumerate() {
            *count += device.events(index as u64);
        }
    }

    /// No session is ended whose client believes that nobody may.
    fn see_ended(&mut self, client: usize) {
        let node = self.clients[client].as_ref();
        let Some(reaping) = node.and_then(|node| node.reaping.as_ref()) else {
            return;
        };
        let seen = self.coverage.ended as usize;
        let ended: Vec<Lanes> = reaping.ended[seen..].to_vec();
        for lanes in ended {
            self.coverage.ended += 1;
            let client = lanes.session as usize - 1;
            let place = Places::client(client);
            let local = self.net.local(place);
            let stands = self.net.stands_until(place).is_some();
            let node = self.clients[client].as_ref().filter(|_| !stands);
            if node.is_some_and(|node| node.is_safe(local)) {
                let client = client + 1;
                self.anomaly(format!("the session of client {client} is ended too early"));
            }
        }
    }

    /// Sessions of dead clients have ended, and nothing is left of those that have.
    fn end_sessions(&mut self) {
        let scenario = &self.options.scenario;
        if scenario.ttl == 0 || !scenario.serves {
            return;
        }
        let reaper = self.clients.last().and_then(Option::as_ref);
        let reaping = reaper.and_then(|node| node.reaping.as_ref());
        let ended: Vec<Lanes> = reaping.map_or(Vec::new(), |reaping| reaping.ended.clone());
        for client in 0..usize::from(scenario.clients) {
            let is_ended = ended.contains(&lanes_of(client));
            if self.clients[client].is_none() && !is_ended {
                let client = client + 1;
                self.anomaly(format!("client {client} died, and its session goes on"));
            }
        }
        for (group, config) in self.controller.configs() {
            for (switch, _) in config.members {
                let Some(device) = &self.switches[switch].device else {
                    continue;
                };
                let left = self.observer.left(&**device, group, &ended);
                if let Some(left) = left {
                    let switch = switch + 1;
                    self.anomaly(format!("g{group} at switch {switch}: {left}"));
                }
            }
        }
    }

    /// Ends the watches of the clients that live, which have told all that members hold.
    fn end_watches(&mut self) {
        let configs = self.controller.configs();
        for group in 0..u16::from(self.options.scenario.groups) {
            let members = configs.get(&group).map(|config| config.members.iter());
            let members = members.into_iter().flatten();
            let newest = members.filter_map(|(switch, _)| {
                let device = self.switches[*switch].device.as_ref()?;
                Some(device.word("group_applied", group.into()) as u64)
            });
            let newest = newest.max().filter(|_| self.options.scenario.serves);
            for client in 0..self.clients.len() {
                let ended = match &mut self.clients[client] {
                    Some(node) => node.end_watch(group, newest),
                    None => continue,
                };
                if !ended && self.options.scenario.serves {
                    let client = client + 1;
                    self.anomaly(format!(
                        "the watch of g{group} by client {client} never begins"
                    ));
                }
                self.record(client);
            }
        }
    }

    /// Members of one configuration hold the same at the end.
    fn finish(&mut self) {
        self.coverage.configurations = self.controller.made;
        for switch in 0..SWITCHES {
            if let Some(device) = self.switches[switch].device.take() {
                self.count(&*device);
                self.switches[switch].device = Some(device);
            }
        }
        self.end_watches();
        self.end_sessions();
        if !self.options.scenario.serves {
            return;
        }
        for client in 0..self.clients.len() {
            let local = self.net.local(Places::client(client));
            let node = self.clients[client].as_ref();
            let unresolved = node.and_then(|node| node.unresolved(local.saturating_sub(1_500_000)));
            if let Some(operation) = unresolved {
                let client = client + 1;
                self.anomaly(format!(
                    "client {client} never learns what became of operation {operation}"
                ));
            }
        }
        for (group, config) in self.controller.configs() {
            let mut states = Vec::new();
            for (switch, incarnation) in &config.members {
                let node = &self.switches[*switch];
                let Some(device) = node
                    .device
                    .as_ref()
                    .filter(|_| node.incarnation == *incarnation)
                else {
                    self.anomaly(format!(
                        "switch {} is a member of g{group} and dead",
                        switch + 1
                    ));
                    continue;
                };
                states.push((*switch, self.observer.state(&**device, group)));
            }
            for pair in states.windows(2) {
                let [(one, first), (other, second)] = pair else {
                    continue;
                };
                if first != second {
                    let what = first.difference(second);
                    self.anomaly(format!(
                        "switches {} and {} differ in g{group} at the end: {what}",
                        one + 1,
                        other + 1
                    ));
                }
            }
        }
    }
}
