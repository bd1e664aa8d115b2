//! The world: nodes, links and what happens between them.

mod joining;
mod misfortune;
mod observer;
mod store;

use crate::authority::Authority;
use crate::device::{Device, SwitchCore};
use crate::options::{Options, Rule};
use crate::parcel::{Parcel, Told};
use crate::places::{NETWORK_PORT, Party, Places, SWITCHES, port};
use crate::plan::{Misfortune, Plan, Planned};
use crate::receiver::{ReceiverNode, receiver_number};
use crate::report::Coverage;
use crate::sender::{SenderNode, Waiting};
use crate::simulator::SimError;
use observer::Observer;
use stateplane_apps::datagram::datagram;
use stateplane_apps::multicast_store::{keys, operation};
use stateplane_history::multicast::{Event, EventKind, Final, History, Multicast, MulticastEvent};
use stateplane_multicast::MessageId;
use stateplane_multicast_store::Key;
use stateplane_world::{Net, Node, NodePort, Random, Step};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Frames of a run at most; ordinary ones send some ten thousand.
const MOST_FRAMES: u64 = 300_000;

/// Makes a switch that knows nothing yet: of its place, its incarnation, and whether its groups
/// begin with it.
pub(crate) type MakeDevice<'a> = &'a dyn Fn(usize, u32, bool) -> Result<Box<dyn Device>, SimError>;

enum Happening {
    Give { number: u64, planned: Planned },
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
    /// Version of the rows that it has.
    rows: u64,
}

pub(crate) struct World<'a> {
    options: &'a Options,
    make: MakeDevice<'a>,
    places: Places,
    net: Net<Parcel, Happening>,
    switches: Vec<SwitchNode>,
    authority: Authority,
    receivers: Vec<Option<ReceiverNode>>,
    senders: Vec<Option<SenderNode>>,
    observer: Observer,
    /// Numbers of messages by their ids.
    messages: BTreeMap<MessageId, u64>,
    /// Final timestamps with which messages were delivered first.
    finals: BTreeMap<u64, Final>,
    /// Keys of the store.
    keys: Vec<Key>,
    history: History,
    coverage: Coverage,
    anomalies: Vec<String>,
    /// Frames that nodes sent.
    frames: u64,
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
        let places = Places::new(scenario);
        let mut net = Net::new(&places.topology(scenario), random);
        let mut switches = Vec::new();
        for place in 0..SWITCHES {
            let incarnation = net.random.between(1, u32::MAX.into()) as u32;
            switches.push(SwitchNode {
                device: Some(make(place, incarnation, true)?),
                incarnation,
                rows: 0,
            });
        }
        let lives = switches.iter().map(|node| Some(node.incarnation));
        let draw = net.random.next();
        let authority = Authority::new(scenario, options.without, lives.collect(), draw);
        let without = options.without;
        let receivers = (0..places.receivers)
            .map(|place| ReceiverNode::new(place, places.group_of(place), scenario, without));
        let senders = (0..places.senders).map(|place| SenderNode::new(place, scenario, without));
        let mut world = Self {
            options,
            make,
            places,
            net,
            switches,
            receivers: receivers.map(Some).collect(),
            senders: senders.map(Some).collect(),
            observer: Observer::new(scenario),
            messages: BTreeMap::new(),
            finals: BTreeMap::new(),
            keys: keys(scenario.groups, scenario.keys),
            history: History {
                system: Multicast {
                    within: scenario.within,
                    queue: scenario.queue.into(),
                    window: scenario.window.into(),
                },
                events: Vec::new(),
            },
            coverage: Coverage::default(),
            anomalies: Vec::new(),
            frames: 0,
            faults: Vec::new(),
            planned: (0, 0),
            failure: None,
            authority,
        };
        for (receiver, number, version) in world.authority.founders() {
            if let Some(node) = &mut world.receivers[receiver] {
                node.found(number, version);
            }
        }
        world.after_authority();
        for switch in 0..SWITCHES {
            world.after_switch(switch);
        }
        for receiver in 0..world.receivers.len() {
            world.after_receiver(receiver);
        }
        world.plan(&mut plan_random);
        Ok(world)
    }

    fn plan(&mut self, random: &mut Random) {
        let plan = Plan::draw(&self.options.scenario, &self.places, random);
        let chosen = &self.options.chosen;
        for (number, planned) in plan.messages.iter().enumerate() {
            if chosen.has_packet(number) {
                let give = Happening::Give {
                    number: number as u64 + 1,
                    planned: *planned,
                };
                self.net.plan(planned.at, give);
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
        self.planned = (plan.messages.len(), plan.faults.len());
        self.faults.sort_by_key(|(at, _)| *at);
        self.net
            .plan(self.options.scenario.traffic, Happening::Heal);
    }

    pub(crate) fn run(mut self) -> Result<Remains, SimError> {
        let scenario = &self.options.scenario;
        let end = scenario.traffic + scenario.within;
        while let Some(step) = self.net.next_before(end) {
            self.take(step);
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            if self.frames > MOST_FRAMES {
                self.anomaly(format!(
                    "{MOST_FRAMES} frames: nodes answer each other without end"
                ));
                break;
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

    fn take(&mut self, step: Step<Parcel, Happening>) {
        match step {
            Step::Message { from, to, message } => self.deliver(from, to, message),
            Step::Timeout { node } => {
                let local = self.net.local(node);
                match self.places.party(node) {
                    Party::Switch(switch) => {
                        if let Some(device) = &mut self.switches[switch].device {
                            device.handle_timeout(local);
                        }
                        self.after_switch(switch);
                    }
                    Party::Authority => {
                        self.authority.handle_timeout(local);
                        self.after_authority();
                    }
                    Party::Receiver(receiver) => {
                        if let Some(node) = &mut self.receivers[receiver] {
                            node.handle_timeout(local);
                        }
                        self.after_receiver(receiver);
                    }
                    Party::Sender(sender) => {
                        if let Some(node) = &mut self.senders[sender] {
                            node.handle_timeout(local);
                        }
                        self.after_sender(sender);
                    }
                }
            }
            Step::Lost { .. } => self.coverage.lost += 1,
            Step::Event(Happening::Give { number, planned }) => self.give(number, planned),
            Step::Event(Happening::Misfortune(misfortune)) => self.befall(misfortune),
            Step::Event(Happening::Heal) => self.heal(),
        }
    }

    fn deliver(&mut self, from: NodePort, to: NodePort, parcel: Parcel) {
        let local = self.net.local(to.node);
        match (self.places.party(to.node), parcel) {
            (Party::Switch(switch), Parcel::Frame(frame)) => {
                self.observer
                    .frame(switch, &frame, &self.messages, &mut self.history.events);
                if let Some(device) = &mut self.switches[switch].device {
                    device.handle_frame(local, &frame);
                }
                self.after_switch(switch);
            }
            (Party::Switch(switch), Parcel::Told(told)) => self.set_rows(switch, &told),
            (Party::Authority, parcel) => {
                self.authority.handle_message(local, to.port, from, parcel);
                self.after_authority();
            }
            (Party::Switch(_), Parcel::Store(_)) => {}
            (Party::Receiver(receiver), parcel) => {
                let peer = self.places.party(from.node);
                if let Some(node) = &mut self.receivers[receiver] {
                    match parcel {
                        Parcel::Frame(frame) => node.handle_message(local, to.port, from, frame),
                        Parcel::Told(told) => node.hear(&told),
                        Parcel::Store(bytes) => {
                            if let Party::Receiver(peer) = peer {
                                node.handle_store(local, peer, &bytes);
                            }
                        }
                    }
                }
                self.after_receiver(receiver);
            }
            (Party::Sender(sender), parcel) => {
                if let Some(node) = &mut self.senders[sender] {
                    match parcel {
                        Parcel::Frame(frame) => node.handle_message(local, to.port, from, frame),
                        Parcel::Told(told) => node.hear(&told),
                        Parcel::Store(bytes) => node.handle_store(local, &bytes),
                    }
                }
                self.after_sender(sender);
            }
        }
    }

    /// A switch takes newer rows that are for this start of it, and says that it has them.
    fn set_rows(&mut self, switch: usize, told: &Told) {
        let Told::Rows {
            incarnation,
            version,
            rows,
        } = told
        else {
            return;
        };
        let node = &mut self.switches[switch];
        let Some(device) = &mut node.device else {
            return;
        };
        if node.incarnation != *incarnation {
            return;
        }
        if *version > node.rows {
            node.rows = *version;
            device.set_rows(rows);
        }
        let set = Told::Set {
            switch,
            incarnation: node.incarnation,
            version: node.rows,
        };
        let parcel = Parcel::Told(Arc::new(set));
        self.net
            .send(port(switch), port(Places::AUTHORITY), &parcel);
        self.after_switch(switch);
    }

    fn send_frame(&mut self, node: usize, frame: Vec<u8>) {
        let to = datagram(&frame).and_then(|(_, to, _)| self.places.at(*to.ip()));
        match to {
            Some(to) if to != node => {
                self.frames += 1;
                self.net.send(port(node), port(to), &Parcel::Frame(frame));
            }
            _ => self.anomaly(format!("node {node} sends a frame to nobody: {frame:02x?}")),
        }
    }

    fn after_switch(&mut self, switch: usize) {
        let now = self.net.now();
        let node = &mut self.switches[switch];
        let Some(device) = &mut node.device else {
            return;
        };
        self.observer.observe(
            now,
            switch,
            &**device,
            &self.messages,
            &mut self.history.events,
        );
        if let Some(error) = device.failed() {
            self.failure = Some(SimError::Setup(error));
        }
        let sent = self.net.poll(switch, &mut SwitchCore(&mut **device));
        for (out, frame) in sent {
            if out == NETWORK_PORT {
                self.send_frame(switch, frame);
            } else {
                self.anomaly(format!("switch {} sends by port {out}", switch + 1));
            }
        }
    }

    fn after_authority(&mut self) {
        let sent = self.net.poll(Places::AUTHORITY, &mut self.authority);
        for (to, parcel) in sent {
            self.net.send(port(Places::AUTHORITY), port(to), &parcel);
        }
    }

    fn after_receiver(&mut self, receiver: usize) {
        self.join(receiver);
        let node_number = receiver_number(receiver);
        let group = self.places.group_of(receiver);
        let Some(node) = &mut self.receivers[receiver] else {
            return;
        };
        let after = node.after();
        let notes = core::mem::take(&mut node.notes);
        let delivered = core::mem::take(&mut node.delivered);
        let sent = self.net.poll(Places::receiver(receiver), node);
        for note in notes {
            self.note(note);
        }
        for (id, at, digest) in delivered {
            let message = self.messages.get(&id).copied().unwrap_or(0);
            let first = *self.finals.entry(message).or_insert(at);
            if first != at && after.is_some_and(|after| first.time <= after) {
                // A receiver that began at a place does not know what was delivered before it.
                continue;
            }
            self.coverage.delivered += 1;
            self.note(MulticastEvent::Delivered {
                node: node_number,
                group,
                message,
                at,
                digest,
            });
        }
        for frame in sent {
            self.send_frame(Places::receiver(receiver), frame);
        }
        self.send_of_replica(receiver);
        if let Some(node) = self.receivers[receiver].as_mut()
            && core::mem::take(&mut node.lost)
        {
            self.authority.forget(receiver);
            self.authority.enlist(receiver);
        }
    }

    fn after_sender(&mut self, sender: usize) {
        let place = self.places.sender(sender);
        let Some(node) = &mut self.senders[sender] else {
            return;
        };
        let notes = core::mem::take(&mut node.notes);
        for (id, sent) in core::mem::take(&mut node.sent) {
            self.messages.insert(id, sent.message);
        }
        let sent = self.net.poll(place, node);
        for note in notes {
            match note {
                EventKind::Of(MulticastEvent::Sent { .. }) => self.coverage.sent += 1,
                EventKind::Of(MulticastEvent::Completed { .. }) => self.coverage.completed += 1,
                EventKind::Return { .. } => self.coverage.answered += 1,
                _ => {}
            }
            self.event(note);
        }
        for frame in sent {
            self.send_frame(place, frame);
        }
    }

    fn give(&mut self, number: u64, planned: Planned) {
        let local = self.net.local(self.places.sender(planned.sender));
        let scenario = &self.options.scenario;
        let operation = operation(&self.keys, scenario.several, planned.draw);
        if let (Some(node), Some(operation)) = (&mut self.senders[planned.sender], operation) {
            node.call(local, scenario, operation);
        } else if let Some(node) = &mut self.senders[planned.sender] {
            let mut payload = number.to_be_bytes().to_vec();
            payload.resize(usize::from(planned.length), 0xa5);
            let waiting = Waiting {
                message: number,
                to: planned.to,
                payload,
            };
            node.send(local, waiting);
        }
        self.after_sender(planned.sender);
    }

    fn event(&mut self, kind: EventKind) {
        let at = self.net.now();
        self.history.events.push(Event { at, kind });
    }

    fn note(&mut self, event: MulticastEvent) {
        self.event(EventKind::Of(event));
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

    fn finish(&mut self) {
        self.coverage.appointed = self.authority.appointed;
        for switch in 0..SWITCHES {
            if let Some(device) = self.switches[switch].device.take() {
                self.count(&*device);
                self.switches[switch].device = Some(device);
            }
        }
        for what in self.authority.unsettled() {
            self.anomaly(what);
        }
        for receiver in 0..self.receivers.len() {
            let node = self.receivers[receiver].as_ref();
            if node.is_some_and(|node| node.waits_for().is_some()) {
                self.anomaly(format!("receiver {receiver} is listed and never joins"));
            }
        }
        self.finish_store();
        if self.options.without != Some(Rule::Memory) {
            let left = self.observer.left(&self.switches_that_lead());
            for what in left {
                self.anomaly(what);
            }
        }
    }

    /// Devices of the groups' leaders.
    fn switches_that_lead(&self) -> Vec<(u8, &dyn Device)> {
        let leads = (0..).zip(self.authority.leaders_by_group());
        let leads = leads.filter_map(|(group, switch)| {
            let device = self.switches[switch?].device.as_ref()?;
            Some((group, &**device))
        });
        leads.collect()
    }
}
