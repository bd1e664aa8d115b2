//! The world: nodes, links and what happens between them.

use crate::chain::{self, ReplicaNode};
use crate::clock::{Clock, MAX_DRIFT_PPM};
use crate::device::{Device, Identity};
use crate::frame::{
    HostPacket, INSIDE_PORT, OUTSIDE_PORT, STORE_PORT, checked_message_in, message_in,
    message_to_switch,
};
use crate::link::LinkQuality;
use crate::options::Options;
use crate::plan::{Misfortune, REPLICAS, SWITCHES, misfortunes};
use crate::random::Random;
use crate::recorder::Recorder;
use crate::report::Coverage;
use crate::schedule::Schedule;
use crate::traffic::{Sent, Traffic};
use rustc_hash::FxHasher;
use stateplane_history::{Direction, Durability, EventKind, History, Occupant};
use stateplane_store::{ConfigError, Destination};
use stateplane_wire::replication::{Key, Packet};
use std::collections::VecDeque;
use std::hash::Hasher;
use std::net::SocketAddrV4;

/// Frames that wait before a switch; more are lost, as in a real ring.
const RING: usize = 512;
/// Greatest reading of a clock at the start of a run.
const LATEST_OFFSET: u64 = 1 << 44;

/// Makes a switch that knows nothing yet.
pub(crate) type MakeDevice<'a> = &'a dyn Fn(Identity) -> Box<dyn Device>;

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
        from: SocketAddrV4,
        bytes: Vec<u8>,
    },
    ToReplica {
        replica: usize,
        from: u8,
        bytes: Vec<u8>,
    },
    ReplicaTimer {
        replica: usize,
    },
    ToHost {
        packet: HostPacket,
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
    /// A `Serve` is on its way.
    serving: bool,
    busy_until: u64,
    timer: Option<u64>,
    cut_until: u64,
    /// µs for one frame.
    service: u64,
}

impl SwitchNode {
    fn occupant(&self) -> Occupant {
        Occupant {
            switch: self.identity.switch,
            incarnation: self.identity.incarnation,
        }
    }
}

/// What is left of a world when it has ended.
pub(crate) struct Remains {
    pub(crate) history: History,
    pub(crate) coverage: Coverage,
    pub(crate) anomalies: Vec<String>,
    pub(crate) trace: u64,
}

pub(crate) struct World<'a> {
    options: &'a Options,
    make_device: MakeDevice<'a>,
    random: Random,
    schedule: Schedule<Happening>,
    now: u64,
    switches: Vec<SwitchNode>,
    replicas: Vec<ReplicaNode>,
    traffic: Traffic,
    recorder: Recorder,
    trace: FxHasher,
    anomalies: Vec<String>,
    first_sequence: u32,
    whole: bool,
}

impl<'a> World<'a> {
    pub(crate) fn new(
        options: &'a Options,
        make_device: MakeDevice<'a>,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        let scenario = &options.scenario;
        let mut random = Random::new(seed);
        let before_wrap = random.between(0, scenario.before_wrap) as u32;
        let first_sequence = u32::MAX - before_wrap;
        let mut traffic_random = random.split();
        let traffic = Traffic::new(
            options.program,
            scenario.flows,
            scenario.alternate,
            traffic_random.split(),
        );
        let mut replicas = Vec::new();
        for position in 0..REPLICAS {
            let incarnation = random.between(1, u32::MAX.into()) as u32;
            let clock = draw_clock(&mut random, 0);
            let node = ReplicaNode::new(options, position, first_sequence, incarnation, clock)?;
            replicas.push(node);
        }
        let mut world = Self {
            options,
            make_device,
            schedule: Schedule::new(),
            now: 0,
            switches: Vec::new(),
            replicas,
            traffic,
            recorder: Recorder::new(
                if options.program.counts() {
                    Vec::new()
                } else {
                    chain::pools()
                },
                first_sequence,
            ),
            trace: FxHasher::default(),
            anomalies: Vec::new(),
            first_sequence,
            whole: false,
            random,
        };
        for place in 0..SWITCHES {
            let identity = Identity {
                switch: place as u32 + 1,
                incarnation: world.random.between(1, u32::MAX.into()) as u32,
            };
            let clock = draw_clock(&mut world.random, 0);
            let service = world.random.between(0, scenario.service);
            world.switches.push(SwitchNode {
                device: Some(make_device(identity)),
                identity,
                clock,
                ring: VecDeque::new(),
                serving: false,
                busy_until: 0,
                timer: None,
                cut_until: 0,
                service,
            });
        }
        world.plan(&mut traffic_random);
        Ok(world)
    }

    fn plan(&mut self, random: &mut Random) {
        let scenario = &self.options.scenario;
        for _ in 0..scenario.bursts {
            let mut at = random.between(0, scenario.traffic);
            let connection = random.place(self.traffic.connections());
            for _ in 0..random.between(1, scenario.burst_length) {
                let direction = Direction::Outbound;
                self.schedule.add(
                    at,
                    Happening::Send {
                        connection,
                        direction,
                    },
                );
                at += random.between(0, scenario.burst_gap);
            }
        }
        for (at, misfortune) in misfortunes(scenario, random) {
            self.schedule.add(at, Happening::Misfortune(misfortune));
        }
        self.schedule.add(scenario.traffic, Happening::Heal);
    }

    /// Lets everything happen.
    pub(crate) fn run(mut self) -> Remains {
        let end = self.options.scenario.traffic + self.options.scenario.settle;
        while let Some((at, what)) = self.schedule.pop_before(end) {
            self.now = at;
            self.happen(what);
        }
        self.now = end;
        self.finish();
        Remains {
            history: self.recorder.history,
            coverage: self.recorder.coverage,
            anomalies: self.anomalies,
            trace: self.trace.finish(),
        }
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
            Happening::Request { from, bytes } => {
                let head = &mut self.replicas[0];
                if self.now < head.busy_until {
                    let until = head.busy_until;
                    self.schedule.add(until, Happening::Request { from, bytes });
                } else {
                    self.witness(3, &bytes);
                    let head = &mut self.replicas[0];
                    let local = head.clock.local(self.now);
                    head.replica.handle_request(local, from, &bytes);
                    self.after_replica(0);
                }
            }
            Happening::ToReplica {
                replica,
                from,
                bytes,
            } => {
                let node = &mut self.replicas[replica];
                if self.now < node.busy_until {
                    let until = node.busy_until;
                    let again = Happening::ToReplica {
                        replica,
                        from,
                        bytes,
                    };
                    self.schedule.add(until, again);
                } else {
                    self.witness(4, &bytes);
                    let node = &mut self.replicas[replica];
                    let local = node.clock.local(self.now);
                    node.replica.handle_chain(local, from, &bytes);
                    self.after_replica(replica);
                }
            }
            Happening::ReplicaTimer { replica } => self.replica_timer(replica),
            Happening::ToHost { packet } => {
                let answers = self.traffic.arrived_outside(&packet);
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
            }
        }
    }

    /// Adds to the trace.
    fn witness(&mut self, what: u8, bytes: &[u8]) {
        self.trace.write_u64(self.now);
        self.trace.write_u8(what);
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

    fn send(&mut self, connection: usize, direction: Direction) {
        let Some((switch, sent)) = self.traffic.send(connection, direction) else {
            return;
        };
        let port = match direction {
            Direction::Outbound => INSIDE_PORT,
            Direction::Inbound => OUTSIDE_PORT,
        };
        let frame = sent.packet.to_frame(self.switches[switch].identity.switch);
        let link = self.quality(|options| options.scenario.host_link);
        for delay in link.carry(&mut self.random) {
            let arrival = Happening::ToSwitch {
                switch,
                port,
                frame: frame.clone(),
            };
            self.schedule.add(self.now + delay, arrival);
        }
    }

    fn arrive(&mut self, switch: usize, port: u16, frame: Vec<u8>) {
        let now = self.now;
        let node = &mut self.switches[switch];
        let cut = port == STORE_PORT && now < node.cut_until;
        if node.device.is_none() || node.ring.len() >= RING || cut {
            if port == STORE_PORT {
                self.recorder.coverage.lost += 1;
            }
            return;
        }
        node.ring.push_back((port, frame));
        if !node.serving {
            node.serving = true;
            let incarnation = node.identity.incarnation;
            let at = now.max(node.busy_until);
            self.schedule.add(
                at,
                Happening::Serve {
                    switch,
                    incarnation,
                },
            );
        }
    }

    fn serve(&mut self, switch: usize, incarnation: u32) {
        let now = self.now;
        let node = &mut self.switches[switch];
        let again = Happening::Serve {
            switch,
            incarnation,
        };
        if node.identity.incarnation != incarnation || node.device.is_none() {
            return;
        }
        if now < node.busy_until {
            self.schedule.add(node.busy_until, again);
            return;
        }
        let Some((port, frame)) = node.ring.pop_front() else {
            node.serving = false;
            return;
        };
        self.witness(switch as u8, &frame);
        let mut replied = None;
        if port == STORE_PORT {
            replied = checked_message_in(&frame).map(|(_, message)| message.key());
        } else if let Some(packet) = HostPacket::read(&frame)
            && let Some(sent) = self.traffic.sent(packet.number)
        {
            let input = EventKind::Input {
                switch: self.switches[switch].identity.switch,
                flow: sent.flow.clone(),
                packet: packet.number,
            };
            self.recorder.coverage.inputs += 1;
            self.recorder.note(now, input);
        }
        let node = &mut self.switches[switch];
        let local = node.clock.local(now);
        if let Some(device) = &mut node.device {
            device.handle_frame(local, port, &frame);
        }
        node.busy_until = now + node.service;
        self.schedule.add(node.busy_until, again);
        self.after_switch(switch, replied);
    }

    fn switch_timer(&mut self, switch: usize, incarnation: u32) {
        let now = self.now;
        let node = &mut self.switches[switch];
        if node.identity.incarnation != incarnation || node.timer != Some(now) {
            return;
        }
        if now < node.busy_until {
            node.timer = Some(node.busy_until);
            let again = Happening::SwitchTimer {
                switch,
                incarnation,
            };
            self.schedule.add(node.busy_until, again);
            return;
        }
        node.timer = None;
        let local = node.clock.local(now);
        if let Some(device) = &mut node.device {
            device.handle_timeout(local);
        }
        self.after_switch(switch, None);
    }

    /// Notes what the switch believes after a reply about `replied`, takes its
    /// frames, and sees when it wants to be woken.
    fn after_switch(&mut self, switch: usize, replied: Option<Key>) {
        let now = self.now;
        let node = &mut self.switches[switch];
        let by = node.occupant();
        let Some(device) = &mut node.device else {
            return;
        };
        if let Some(key) = replied {
            let slot = device.slot(&key).filter(|slot| slot.granted);
            let lease =
                slot.map(|slot| (slot.epoch, slot.shared, node.clock.time_of(slot.deadline)));
            self.recorder.lease(now, by, &key, lease);
        }
        let mut frames = Vec::new();
        while let Some(transmit) = device.poll_transmit() {
            frames.push(transmit);
        }
        let due = device.poll_timeout();
        let due = due.map(|due| node.clock.time_of(due).max(now + 1));
        if let Some(due) = due
            && node.timer != Some(due)
        {
            node.timer = Some(due);
            let incarnation = node.identity.incarnation;
            self.schedule.add(
                due,
                Happening::SwitchTimer {
                    switch,
                    incarnation,
                },
            );
        }
        for (port, frame) in frames {
            self.transmitted(switch, port, &frame);
        }
    }

    fn transmitted(&mut self, switch: usize, port: u16, frame: &[u8]) {
        match port {
            STORE_PORT => self.to_store(switch, frame),
            INSIDE_PORT | OUTSIDE_PORT => self.output(switch, port, frame),
            _ => self.anomaly(format!("a frame left by port {port}, which no link faces")),
        }
    }

    fn anomaly(&mut self, what: String) {
        if self.anomalies.len() < 10 {
            self.anomalies.push(format!("{} µs: {what}", self.now));
        }
    }

    fn to_store(&mut self, switch: usize, frame: &[u8]) {
        let now = self.now;
        let Some((from, bytes)) = message_in(frame) else {
            self.anomaly("a switch sent the store a frame without a message".into());
            return;
        };
        match Packet::new_checked(bytes) {
            Ok(request) => {
                let packet = request.packet().and_then(HostPacket::read);
                self.recorder
                    .request(now, &request, packet.map(|packet| packet.number));
            }
            Err(error) => self.anomaly(format!("a switch sent the store this: {error}")),
        }
        let link = self.quality(|options| options.scenario.protocol_link);
        let cut = now < self.switches[switch].cut_until;
        let mut copies = 0;
        for delay in link.carry(&mut self.random).filter(|_| !cut) {
            copies += 1;
            let bytes = bytes.to_vec();
            self.schedule
                .add(now + delay, Happening::Request { from, bytes });
        }
        self.count_copies(copies);
    }

    fn count_copies(&mut self, copies: u32) {
        match copies {
            0 => self.recorder.coverage.lost += 1,
            1 => {}
            _ => self.recorder.coverage.duplicated += 1,
        }
    }

    fn output(&mut self, switch: usize, port: u16, frame: &[u8]) {
        let now = self.now;
        let packet = HostPacket::read(frame);
        let sent = packet.and_then(|packet| self.traffic.sent(packet.number));
        let (Some(packet), Some(sent)) = (packet, sent.cloned()) else {
            self.anomaly(format!("no host would take this frame: {frame:02x?}"));
            return;
        };
        let expected = match sent.direction {
            Direction::Outbound => OUTSIDE_PORT,
            Direction::Inbound => INSIDE_PORT,
        };
        if port != expected || packet.protocol != sent.packet.protocol {
            self.anomaly(format!("{sent:?} left as {packet:?} by port {port}"));
            return;
        }
        self.recorder.coverage.outputs += 1;
        let number = self.switches[switch].identity.switch;
        if self.options.program.counts() {
            self.counted(number, &sent, &packet);
        } else {
            self.translated(number, &sent, &packet);
        }
        if port == OUTSIDE_PORT {
            let link = self.quality(|options| options.scenario.host_link);
            for delay in link.carry(&mut self.random) {
                self.schedule.add(now + delay, Happening::ToHost { packet });
            }
        }
    }

    fn counted(&mut self, switch: u32, sent: &Sent, packet: &HostPacket) {
        let ends = |packet: &HostPacket| (packet.source, packet.destination);
        if ends(packet) != ends(&sent.packet) {
            self.anomaly(format!("{sent:?} left as {packet:?}"));
        }
        let write = self.recorder.write(sent.packet.number);
        let held = |write: crate::recorder::Write| {
            let held = self.replicas.iter();
            held.map(|node| node.held(write.shard, &write.key))
                .collect()
        };
        let durability = Durability {
            sequence: write.map_or(0, |write| write.sequence),
            held: write.map(held).unwrap_or_default(),
        };
        let output = EventKind::Output {
            switch,
            flow: sent.flow.clone(),
            packet: sent.packet.number,
            value: Some(packet.value),
            durability: Some(durability),
        };
        self.recorder.note(self.now, output);
    }

    fn translated(&mut self, switch: u32, sent: &Sent, packet: &HostPacket) {
        let protocol = packet.protocol;
        let endpoint = |socket| crate::key::endpoint(protocol, socket);
        let (inside, public, others) = match sent.direction {
            Direction::Outbound => (
                sent.packet.source,
                packet.source,
                (sent.packet.destination, packet.destination),
            ),
            Direction::Inbound => (
                packet.destination,
                sent.packet.destination,
                (sent.packet.source, packet.source),
            ),
        };
        if others.0 != others.1 {
            self.anomaly(format!("{sent:?} left as {packet:?}"));
        }
        let (inside, public) = (endpoint(inside), endpoint(public));
        let mapped = match sent.direction {
            Direction::Outbound => public,
            Direction::Inbound => inside,
        };
        let shard = self.recorder.shard(&sent.key);
        let held = shard.map(|shard| {
            let held = self.replicas.iter();
            held.map(|node| node.held_mapping(shard, &sent.key, mapped))
                .collect()
        });
        let durability = Durability {
            sequence: self.first_sequence,
            held: held.unwrap_or_default(),
        };
        let translated = EventKind::Translated {
            switch,
            direction: sent.direction,
            inside,
            public,
        };
        self.recorder.note(self.now, translated);
        let output = EventKind::Output {
            switch,
            flow: sent.flow.clone(),
            packet: sent.packet.number,
            value: None,
            durability: Some(durability),
        };
        self.recorder.note(self.now, output);
    }

    fn replica_timer(&mut self, replica: usize) {
        let now = self.now;
        let node = &mut self.replicas[replica];
        if node.timer != Some(now) {
            return;
        }
        if now < node.busy_until {
            node.timer = Some(node.busy_until);
            self.schedule
                .add(node.busy_until, Happening::ReplicaTimer { replica });
            return;
        }
        node.timer = None;
        node.replica.handle_timeout(node.clock.local(now));
        self.after_replica(replica);
    }

    fn after_replica(&mut self, replica: usize) {
        let now = self.now;
        let node = &mut self.replicas[replica];
        if !self.options.program.counts() {
            for event in node.pool_events(replica) {
                if replica == 0 && matches!(event, EventKind::Freed { .. }) {
                    self.recorder.coverage.ports_freed += 1;
                }
                self.recorder.note(now, event);
            }
        }
        let mut datagrams = Vec::new();
        while let Some(transmit) = node.replica.poll_transmit() {
            datagrams.push(transmit);
        }
        let due = node.replica.poll_timeout();
        let due = due.map(|due| node.clock.time_of(due).max(now + 1));
        if let Some(due) = due
            && node.timer != Some(due)
        {
            node.timer = Some(due);
            self.schedule.add(due, Happening::ReplicaTimer { replica });
        }
        for datagram in datagrams {
            match datagram.to {
                Destination::Switch(to) => self.to_switch(to, &datagram.bytes),
                Destination::Replica(to) => {
                    let link = self.quality(|options| options.scenario.chain_link);
                    for delay in link.carry(&mut self.random) {
                        let arrival = Happening::ToReplica {
                            replica: to.into(),
                            from: replica as u8,
                            bytes: datagram.bytes.to_vec(),
                        };
                        self.schedule.add(now + delay, arrival);
                    }
                }
            }
        }
    }

    fn to_switch(&mut self, to: SocketAddrV4, bytes: &[u8]) {
        let now = self.now;
        if let Ok(reply) = Packet::new_checked(bytes) {
            self.recorder.reply(now, &reply);
        }
        let [.., number] = to.ip().octets();
        let switch = usize::from(number).wrapping_sub(1);
        if switch >= self.switches.len() {
            self.anomaly(format!("the store answers to {to}, which nobody has"));
            return;
        }
        let frame = message_to_switch(to, bytes);
        let link = self.quality(|options| options.scenario.protocol_link);
        let mut copies = 0;
        for delay in link.carry(&mut self.random) {
            copies += 1;
            let arrival = Happening::ToSwitch {
                switch,
                port: STORE_PORT,
                frame: frame.clone(),
            };
            self.schedule.add(now + delay, arrival);
        }
        self.count_copies(copies);
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
                let clock = draw_clock(&mut self.random, now);
                let incarnation = self.random.between(1, u32::MAX.into()) as u32;
                let node = &mut self.switches[switch];
                node.clock = clock;
                node.busy_until = now;
                node.identity.incarnation = incarnation;
                node.device = Some((self.make_device)(node.identity));
                self.traffic.know(switch, false);
            }
            Misfortune::Avoid { switch } => {
                let dead = self.switches[switch].device.is_none();
                self.traffic.know(switch, dead);
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
                let node = &mut self.replicas[replica];
                node.busy_until = node.busy_until.max(until);
            }
            Misfortune::Reroute { chance } => self.traffic.reroute(chance),
        }
    }

    /// Writes down how everything is left.
    fn finish(&mut self) {
        let now = self.now;
        for node in &self.switches {
            let Some(device) = &node.device else { continue };
            self.recorder.coverage.table_full += device.table_full();
            for (key, slot) in device.slots() {
                if slot.granted {
                    let flow = self.recorder.name(&key);
                    let kept = EventKind::Kept {
                        switch: node.identity.switch,
                        flow,
                        sequence: slot.sequence,
                        acknowledged: slot.acknowledged,
                    };
                    self.recorder.note(now, kept);
                }
            }
        }
        for position in 0..self.replicas.len() {
            if !self.options.program.counts() {
                for event in self.replicas[position].pool_at_the_end(position) {
                    self.recorder.note(now, event);
                }
            }
        }
        self.anomalies.extend(chain::anomalies(&self.replicas));
    }
}

/// A clock that begins at `now`, of any rate within the bound. Many begin near 0,
/// like that of a machine that has just been started.
fn draw_clock(random: &mut Random, now: u64) -> Clock {
    let offset = match random.permille(500) {
        true => random.between(1, 10_000_000),
        false => random.between(1, LATEST_OFFSET),
    };
    Clock {
        began: now,
        offset,
        drift_ppm: random.between(0, 2 * MAX_DRIFT_PPM as u64) as i64 - MAX_DRIFT_PPM,
    }
}
