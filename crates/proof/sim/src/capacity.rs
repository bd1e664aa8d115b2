//! Cost of a program at its store: a capture is played through switches and a store server in
//! virtual time, and the analytical model ([`stateplane_cost`]) extrapolates to any number of
//! switches.

#[cfg(test)]
mod tests;

use crate::frame::{HEAD_ADDRESS, checked_message_in, message_in, message_to_switch};
use crate::p4::PROBED_SHARD;
use crate::simulator::SimError;
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_cost::{Load, Protection, Traffic, load};
use stateplane_interp::Interp;
use stateplane_runtime::{Engine as _, StateError, Value};
use stateplane_setup::{BEAT, HEARTBEAT_PORT, Heartbeats, SetupError};
use stateplane_store::{Config, Recipient, Record, Server};
use stateplane_switch::Switch;
use stateplane_wire::replication::{Key, MessageType};
use stateplane_wire::term::is_term;
use stateplane_wire::{ethernet, ipv4};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A frame of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// µs since the first.
    pub at: u64,
    /// The port of the switch by which it comes.
    pub port: u16,
    /// The frame.
    pub frame: Vec<u8>,
}

/// Makes a switch with the program, its tables filled. The identity that the replication
/// library has is set here.
pub type MakeSwitch<'a> = &'a dyn Fn() -> Result<Switch<Interp>, SimError>;

/// The time over which the most writes are counted, in µs: short enough to show a burst, and
/// long enough that a store's queues do not carry it.
pub const PEAK_WINDOW: u64 = 100_000;

/// µs within which the flows of packets count as flows at a time.
const AT_A_TIME: u64 = 1_000_000;

/// Measured traffic between switches and store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// From the first frame of the capture to its last, in seconds.
    pub seconds: f64,
    /// Requests for leases.
    pub leases: u64,
    /// Writes, and packets that waited behind one.
    pub writes: u64,
    /// The most of these in [`PEAK_WINDOW`].
    pub most_writes: u64,
    /// Packets of readers that went by the store to leave in order.
    pub renewals: u64,
    /// Probes of chains.
    pub probes: u64,
    /// Heartbeats to heads.
    pub heartbeats: u64,
    /// Bytes to the store.
    pub to_store: u64,
    /// Bytes from it.
    pub from_store: u64,
    /// Records that the store has in the end.
    pub records: usize,
}

impl Measured {
    /// Requests per second.
    pub fn requests_per_s(&self) -> f64 {
        let own = self.probes + self.heartbeats;
        let all = self.leases + self.writes + self.renewals + own;
        all as f64 / self.seconds
    }

    /// Peak factor of writes: the rate in the busiest [`PEAK_WINDOW`] divided by the average rate;
    /// at least 1.
    pub fn write_peak(&self) -> f64 {
        let window_s = self.seconds.min(PEAK_WINDOW as f64 / 1e6);
        let mean = self.writes as f64 / self.seconds * window_s;
        (self.most_writes as f64 / mean).max(1.0)
    }

    /// Bytes per second, in both directions.
    pub fn bytes_per_s(&self) -> f64 {
        (self.to_store + self.from_store) as f64 / self.seconds
    }
}

/// Demand of a program under a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Of all switches together.
    pub traffic: Traffic,
    /// Peak factor of writes: the rate in the busiest [`PEAK_WINDOW`] divided by the average rate;
    /// at least 1.
    pub write_peak: f64,
    /// The packets that have a flow, in order: which flow, and a hash of the addresses, by
    /// which routes choose a switch.
    pub packets: Vec<(u32, u32)>,
    /// Duration of the capture in seconds.
    pub seconds: f64,
    /// Flows in the whole capture.
    pub flows: usize,
    /// Probes per second of one switch.
    pub probes_per_s: f64,
    /// Bytes of state of a flow.
    pub state_bytes: f64,
    /// For how long a head promises, in seconds.
    pub term_s: f64,
}

/// Deployment that is planned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Switches that share the traffic, each with the flows that routing gives it.
    pub switches: u32,
    /// From a request to its answer, in seconds.
    pub round_trip_s: f64,
    /// Time until routes lead around a failed switch, in seconds.
    pub detection_s: f64,
    /// Replicas of each record.
    pub replicas: u32,
    /// Servers that head chains.
    pub heads: u32,
}

/// Requirements of a deployment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Of one switch.
    pub of_switch: Load,
    /// Requests per second of all switches: what the head of a chain has to take.
    pub requests_per_s: f64,
    /// Bytes per second of all switches, in both directions, without those between replicas.
    pub bytes_per_s: f64,
    /// [`Self::requests_per_s`] in the [`PEAK_WINDOW`] that has the most writes.
    pub peak_requests_per_s: f64,
    /// [`Self::bytes_per_s`] in the [`PEAK_WINDOW`] that has the most writes.
    pub peak_bytes_per_s: f64,
    /// Bytes of records in all replicas.
    pub memory_bytes: f64,
    /// For how long flows of a dead switch stand still at most, in seconds.
    pub stall_dead_s: f64,
    /// For how long flows stand still that are routed to another switch while theirs lives.
    pub stall_alive_s: f64,
    /// Leases that are asked for at once when a switch dies.
    pub burst: f64,
}

impl Plan {
    /// Replication's share of all bytes that a switch sends and receives, 0 to 1.
    pub fn share(&self, demand: &Demand, setting: &Setting) -> f64 {
        self.of_switch.share(&of_one(demand, setting))
    }
}

impl Demand {
    /// Times per second that a packet of a flow comes to another of `switches` switches than
    /// the one before it, as where a key is not made of addresses: each takes a lease.
    fn moves_per_s(&self, switches: u32) -> f64 {
        let mut owners: BTreeMap<u32, u32> = BTreeMap::new();
        let moves = self.packets.iter().filter(|(flow, way)| {
            let switch = way % switches.max(1);
            let before = owners.insert(*flow, switch);
            before.is_some_and(|before| before != switch)
        });
        moves.count() as f64 / self.seconds
    }
}

/// The traffic of one switch.
fn of_one(demand: &Demand, setting: &Setting) -> Traffic {
    let switches = f64::from(setting.switches.max(1));
    Traffic {
        packets_per_s: demand.traffic.packets_per_s / switches,
        flows: demand.traffic.flows / switches,
        new_flows_per_s: (demand.traffic.new_flows_per_s + demand.moves_per_s(setting.switches))
            / switches,
        ..demand.traffic
    }
}

/// Bytes that a flow takes at a replica: its record and key, in a table that is up to seven
/// eighths full and at worst was just doubled.
fn record_bytes(state: f64) -> f64 {
    let inline = size_of::<(Key, Record)>() as f64;
    (inline + state) * 2.0 * 8.0 / 7.0
}

/// Plans a deployment.
pub fn plan(demand: &Demand, setting: &Setting) -> Plan {
    let switches = f64::from(setting.switches.max(1));
    let of_one = of_one(demand, setting);
    let protection = Protection {
        state_bytes: demand.state_bytes,
        term_s: demand.term_s,
        heads: setting.heads.into(),
        round_trip_s: setting.round_trip_s,
        probes_per_s: demand.probes_per_s,
        snapshots: None,
    };
    let of_switch = load(&of_one, &protection);
    let peak = of_switch.with_writes(demand.write_peak, &of_one, &protection);
    let records = demand.flows as f64 * f64::from(setting.replicas);
    Plan {
        of_switch,
        requests_per_s: of_switch.requests_per_s() * switches,
        bytes_per_s: of_switch.bytes_per_s() * switches,
        peak_requests_per_s: peak.requests_per_s() * switches,
        peak_bytes_per_s: peak.bytes_per_s() * switches,
        memory_bytes: records * record_bytes(demand.state_bytes),
        stall_dead_s: setting.detection_s + demand.term_s + setting.round_trip_s,
        // The new switch asks, the store asks the owner, who answers (rule 19).
        stall_alive_s: 2.5 * setting.round_trip_s,
        burst: of_one.flows,
    }
}

/// Finds out what a capture asks of a program: which packets have a flow, and which write.
/// `make_small` gives a switch whose flow table has one bucket; it is asked for the key of
/// each packet.
///
/// # Errors
///
/// Returns the error that keeps a switch or the store from starting; [`SimError::Capacity`] for a
/// capture without time or packets of flows.
pub fn demand(
    make: MakeSwitch<'_>,
    make_small: MakeSwitch<'_>,
    store: &Config,
    arrivals: &[Arrival],
) -> Result<Demand, SimError> {
    let whole = replay(make, store, arrivals, 1, 0)?;
    let mut asker = switch(make_small, 1)?;
    let mut flows: BTreeMap<Key, u32> = BTreeMap::new();
    let mut periods: BTreeSet<(u64, u32)> = BTreeSet::new();
    let (mut packets, mut bytes) = (Vec::new(), 0u64);
    for arrival in arrivals {
        let Some(key) = key_of(&mut asker, arrival)? else {
            continue;
        };
        let number = flows.len() as u32;
        let flow = *flows.entry(key).or_insert(number);
        packets.push((flow, way(&arrival.frame)));
        bytes += arrival.frame.len() as u64;
        periods.insert((arrival.at / AT_A_TIME, flow));
    }
    if packets.is_empty() {
        return Err(SimError::Capacity("no packet of it has a flow".to_owned()));
    }
    let last = arrivals.last().map_or(0, |arrival| arrival.at);
    let class = flows.first_key_value().map_or(0, |(key, _)| key.class());
    let state = store.classes.iter().find(|it| it.class == class);
    let per_s = |count: u64| count as f64 / whole.seconds;
    Ok(Demand {
        traffic: Traffic {
            packets_per_s: per_s(packets.len() as u64),
            frame_bytes: bytes as f64 / packets.len() as f64,
            flows: periods.len() as f64 / (last / AT_A_TIME + 1) as f64,
            new_flows_per_s: per_s(whole.leases),
            writes: (whole.writes as f64 / packets.len() as f64).min(1.0),
        },
        write_peak: whole.write_peak(),
        packets,
        seconds: whole.seconds,
        flows: flows.len(),
        probes_per_s: per_s(whole.probes),
        state_bytes: state.map_or(0.0, |class| f64::from(class.state_length)),
        term_s: f64::from(store.term) / 1e6,
    })
}

/// A switch with its number in the replication library.
fn switch(make: MakeSwitch<'_>, number: u32) -> Result<Switch<Interp>, SimError> {
    let mut switch = make()?;
    let replication = crate::p4::replication(number);
    replication
        .identify(switch.engine_mut().state_mut(), number)
        .map_err(SetupError::from)?;
    Ok(switch)
}

/// The key that the program gives a packet; `None` if it has no flow. The switch forgets it
/// again.
fn key_of(asker: &mut Switch<Interp>, arrival: &Arrival) -> Result<Option<Key>, SimError> {
    hear(asker, arrival.at).map_err(SetupError::from)?;
    asker.handle_frame(arrival.at, arrival.port, &arrival.frame);
    let mut key = None;
    while let Some(transmit) = asker.poll_transmit() {
        if let Some((_, message)) = checked_message_in(&transmit.frame)
            && message.message_type() == MessageType::LeaseRequest
        {
            key.get_or_insert(message.key());
        }
    }
    forget(asker).map_err(SetupError::from)?;
    Ok(key)
}

/// The store's sign of life for all chains.
fn hear(switch: &mut Switch<Interp>, now: u64) -> Result<(), StateError> {
    let state = switch.engine_mut().state_mut();
    for register in ["replication_heard", BEAT] {
        state.register_mut(register)?.fill(&Value::from(now))?;
    }
    Ok(())
}

fn forget(switch: &mut Switch<Interp>) -> Result<(), StateError> {
    let slots = switch.engine_mut().state_mut().register_mut("slot_key")?;
    (0..slots.size()).try_for_each(|slot| slots.write(slot, &Value::from(0u64)))
}

enum Event {
    Arrive(usize, u16, Vec<u8>),
    Ask(SocketAddrV4, Vec<u8>),
    Answer(usize, u16, Vec<u8>),
}

/// Plays a capture through `switches` switches, each of which gets the flows that a hash of
/// their addresses gives it, with one store server `round_trip` µs away.
///
/// # Errors
///
/// Returns the error that keeps a switch or the store from starting; [`SimError::Capacity`] for a
/// capture that lasts no time.
pub fn replay(
    make: MakeSwitch<'_>,
    store: &Config,
    arrivals: &[Arrival],
    switches: u32,
    round_trip: u64,
) -> Result<Measured, SimError> {
    let last = arrivals.last().map_or(0, |arrival| arrival.at);
    if last == 0 {
        return Err(SimError::Capacity("it lasts no time".to_owned()));
    }
    let mut config = store.clone();
    (config.chain_length, config.position) = (1, 0);
    let link = SocketAddrV4::new(Ipv4Addr::new(10, 255, 1, 1), stateplane_wire::chain::PORT);
    let switches: Vec<_> = (1..=switches)
        .map(|number| switch(make, number))
        .collect::<Result<_, _>>()?;
    let heartbeats = switches.iter().map(|switch| {
        let heartbeats = Heartbeats::of(0, switch.engine().state(), PROBED_SHARD);
        let known = heartbeats.map(|heartbeats| heartbeats.at_one_head(HEAD_ADDRESS));
        known.ok_or_else(|| SimError::Capacity("its program knows no chain".to_owned()))
    });
    let mut world = Replay {
        heartbeats: heartbeats.collect::<Result<_, _>>()?,
        ports: vec![0; switches.len()],
        switches,
        store: Server::fixed(config, 1, vec![link])?,
        queue: BTreeMap::new(),
        queued: 0,
        recent_writes: VecDeque::new(),
        delay: round_trip / 2,
        measured: Measured {
            seconds: last as f64 / 1e6,
            ..Measured::default()
        },
    };
    for switch in &mut world.switches {
        hear(switch, START).map_err(SetupError::from)?;
    }
    // The switches have terms before the first packet comes.
    world.run(START - 1);
    let seconds = world.measured.seconds;
    world.measured = Measured {
        seconds,
        ..Measured::default()
    };
    for arrival in arrivals {
        let switch = way(&arrival.frame) as usize % world.switches.len().max(1);
        let event = Event::Arrive(switch, arrival.port, arrival.frame.clone());
        world.add(START + arrival.at, event);
    }
    world.run(START + last);
    world.measured.records = world
        .store
        .replicas()
        .map(|(_, it)| it.record_count())
        .sum();
    Ok(world.measured)
}

/// µs of the clocks when the capture begins.
const START: u64 = 1_000_000;

/// A hash of a frame's addresses, equal for both directions.
fn way(frame: &[u8]) -> u32 {
    let datagram = ethernet::Packet::new_checked(frame)
        .ok()
        .filter(|frame| frame.ethertype() == ethernet::TYPE_IPV4)
        .and_then(|frame| ipv4::Packet::new_checked(frame.payload()).ok());
    let both = datagram.map_or(0, |it| it.source().to_bits() ^ it.destination().to_bits());
    stateplane_runtime::hash::crc32(&both.to_be_bytes())
}

struct Replay {
    switches: Vec<Switch<Interp>>,
    /// Of each switch: its terms.
    heartbeats: Vec<Heartbeats>,
    /// By which port each switch reaches the store.
    ports: Vec<u16>,
    store: Server,
    queue: BTreeMap<(u64, u64), Event>,
    queued: u64,
    /// When the writes of the last [`PEAK_WINDOW`] were sent.
    recent_writes: VecDeque<u64>,
    delay: u64,
    measured: Measured,
}

impl Replay {
    fn add(&mut self, at: u64, event: Event) {
        self.queue.insert((at, self.queued), event);
        self.queued += 1;
    }

    fn run(&mut self, end: u64) {
        loop {
            let timers = self.switches.iter().filter_map(Switch::poll_timeout);
            let beats = self.heartbeats.iter().filter_map(Heartbeats::poll_timeout);
            let timers = timers.chain(beats).chain(self.store.poll_timeout());
            let queued = self.queue.first_key_value().map(|((at, _), _)| *at);
            let Some(now) = timers.chain(queued).min().filter(|now| *now <= end) else {
                return;
            };
            while let Some(entry) = self.queue.first_entry().filter(|it| it.key().0 <= now) {
                match entry.remove() {
                    Event::Arrive(switch, port, frame) => {
                        self.switches[switch].handle_frame(now, port, &frame);
                        self.sent(now, switch);
                    }
                    Event::Answer(switch, port, frame) => {
                        match message_in(&frame).filter(|(_, _, bytes)| is_term(bytes)) {
                            Some((from, _, bytes)) => {
                                let heartbeats = &mut self.heartbeats[switch];
                                heartbeats.handle_reply(now, *from.ip(), bytes);
                            }
                            None => self.switches[switch].handle_frame(now, port, &frame),
                        }
                        self.sent(now, switch);
                    }
                    Event::Ask(from, bytes) => self.store.handle_request(now, from, &bytes),
                }
                self.answered(now);
            }
            for switch in 0..self.switches.len() {
                self.beat(now, switch);
                if self.switches[switch]
                    .poll_timeout()
                    .is_some_and(|due| due <= now)
                {
                    self.switches[switch].handle_timeout(now);
                    self.sent(now, switch);
                }
            }
            if self.store.poll_timeout().is_some_and(|due| due <= now) {
                self.store.handle_timeout(now);
                self.answered(now);
            }
        }
    }

    /// Gives a switch its terms, and sends the heartbeats that are due.
    fn beat(&mut self, now: u64, number: usize) {
        let (switch, heartbeats) = (&mut self.switches[number], &mut self.heartbeats[number]);
        while let Some(write) = heartbeats.poll_write() {
            write.apply(switch.engine_mut().state_mut());
        }
        while let Some(frame) = heartbeats.poll_frame(now) {
            switch.handle_made(now, HEARTBEAT_PORT, &frame);
        }
        self.sent(now, number);
    }

    /// Counts what a message of a switch is; false if it is none.
    fn count(&mut self, now: u64, frame: &[u8]) -> bool {
        let measured = &mut self.measured;
        if message_in(frame).is_some_and(|(_, _, bytes)| is_term(bytes)) {
            measured.heartbeats += 1;
        } else if let Some((_, message)) = checked_message_in(frame) {
            match message.message_type() {
                MessageType::LeaseRequest => measured.leases += 1,
                MessageType::WriteRequest => {
                    measured.writes += 1;
                    let recent = &mut self.recent_writes;
                    recent.push_back(now);
                    while recent.front().is_some_and(|at| at + PEAK_WINDOW <= now) {
                        recent.pop_front();
                    }
                    measured.most_writes = measured.most_writes.max(recent.len() as u64);
                }
                MessageType::RenewRequest => measured.renewals += 1,
                MessageType::ProbeRequest => measured.probes += 1,
                _ => {}
            }
        } else {
            return false;
        }
        measured.to_store += frame.len() as u64;
        true
    }

    fn sent(&mut self, now: u64, switch: usize) {
        while let Some(transmit) = self.switches[switch].poll_transmit() {
            if !self.count(now, &transmit.frame) {
                continue;
            }
            self.ports[switch] = transmit.port;
            if let Some((from, _, bytes)) = message_in(&transmit.frame) {
                let bytes = bytes.to_vec();
                self.add(now + self.delay, Event::Ask(from, bytes));
            }
        }
    }

    fn answered(&mut self, now: u64) {
        while let Some(datagram) = self.store.poll_transmit(now) {
            let Recipient::Switch(to) = datagram.to else {
                continue;
            };
            let [.., number] = to.ip().octets();
            let Some(switch) = usize::from(number).checked_sub(1) else {
                continue;
            };
            let frame = message_to_switch(HEAD_ADDRESS, to, &datagram.bytes);
            self.measured.from_store += frame.len() as u64;
            if let Some(port) = self.ports.get(switch) {
                let answer = Event::Answer(switch, *port, frame);
                self.add(now + self.delay, answer);
            }
        }
    }
}
