//! One chain in virtual time, and the commands that drive it:
//!
//! * `chain length=3 …` starts a chain; see [`World::start`] for its settings; a `dependent` one's
//!   mappings name the remote endpoint too;
//! * `lease s1 key=… [shared]`, `write s1 key=… epoch= seq= state=`,
//!   `renew s1 key=… epoch=`, `release s1 key=… epoch= seq= [age=]`, `used s1 key=… epoch= age=`,
//!   `probe s1`: a request of switch 1, with optional
//!   `inc= claim= request= attempt= send= packet= shard= chain_epoch= to=`; each is a heartbeat
//!   of the switch too, which promises it 1 s, unless the chain is `silent`;
//! * `beat s1 [inc=]`: a heartbeat alone;
//! * `raw to=0 hex=…`: any bytes to a request port;
//! * `rawchain to=1 from=0 hex=…`: any bytes to a chain port;
//! * `advance 300ms`: time passes, and what is due happens;
//! * `drop 0->1`, `hold 0->1`, `heal 0->1 [reversed]`, `replay 0->1`: a link
//!   loses, keeps back, delivers (what it kept too, the last first), repeats all
//!   that it ever carried, to another replica perhaps (`at=2`);
//! * `restart 1`: a replica comes back empty;
//! * `members 0 2 [joining=1]`: the chain's next configuration, by replicas, head
//!   first; those not named hear nothing of it; `to=` names the only ones that do;
//! * `empty 1`: a replica comes back empty, to join;
//! * `sick 10.0.0.1`, `well 10.0.0.1`: what the replicas hear of a server of the service;
//! * `show counters …`, `show records`, `show replicas`, `show loads`.
//!
//! Datagrams take no time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use core::fmt::Write;
use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_store::{
    ClassConfig, Config, Destination, FirstLease, IdleTimeouts, Lease, NatPool, Place, Quota,
    Replica, Service, ServiceAt, ServiceId, ServiceServer, StateTimeout,
};
use stateplane_wire::replication::{MessageType, Packet, RefusalCode, Repr};
use stateplane_world::exchange;

use crate::command::Command;

type Link = (u8, u8);

#[derive(Default)]
pub struct World {
    now: u64,
    replicas: Vec<Replica>,
    /// The replica at each position, as each replica knows.
    places: Vec<Vec<u8>>,
    epoch: u32,
    starts: u32,
    dropping: BTreeSet<Link>,
    holding: BTreeMap<Link, Vec<Arc<Vec<u8>>>>,
    carried: BTreeMap<Link, Vec<Arc<Vec<u8>>>>,
    output: Vec<String>,
    /// Requests promise nothing.
    is_silent: bool,
}

impl World {
    pub fn new() -> World {
        World::default()
    }

    pub fn take_output(&mut self) -> Vec<String> {
        core::mem::take(&mut self.output)
    }

    pub fn command(&mut self, line: &str) {
        let command = Command::new(line);
        match command.words()[0] {
            "chain" => self.start(&command),
            "lease" => self.request(&command, MessageType::LeaseRequest),
            "write" => self.request(&command, MessageType::WriteRequest),
            "renew" => self.request(&command, MessageType::RenewRequest),
            "release" => self.request(&command, MessageType::ReleaseRequest),
            "probe" => self.request(&command, MessageType::ProbeRequest),
            "used" => self.request(&command, MessageType::Used),
            "beat" => {
                let incarnation = command.get("inc").unwrap_or(1);
                let switch = command.numbered(1, 's').into();
                self.replicas[0].promise(self.now, switch, incarnation);
            }
            "raw" => {
                let to: usize = command.get("to").unwrap_or(0);
                let bytes = command.hex("hex");
                self.replicas[to].handle_request(self.now, switch(1), &bytes);
            }
            "rawchain" => {
                let to: usize = command.get("to").unwrap();
                let from = command.get("from").unwrap();
                self.replicas[to].handle_chain(self.now, from, &command.hex("hex"));
            }
            "advance" => self.advance(command.micros(command.words()[1])),
            "drop" => {
                self.dropping.insert(command.link());
            }
            "hold" => {
                self.holding.insert(command.link(), Vec::new());
            }
            "heal" => {
                self.dropping.remove(&command.link());
                let mut held = self.holding.remove(&command.link()).unwrap_or_default();
                if command.has("reversed") {
                    held.reverse();
                }
                self.carry(command.link(), held);
            }
            "replay" => {
                let (from, to) = command.link();
                let carried = self.carried.get(&(from, to)).cloned();
                let to = command.get("at").unwrap_or(to);
                self.carry((from, to), carried.unwrap_or_default());
            }
            "restart" => {
                let position: usize = command.parse(command.words()[1]);
                let config = self.replicas[position].config().clone();
                self.starts += 1;
                self.replicas[position] = Replica::new(config, self.starts).unwrap();
            }
            "empty" => {
                let number: usize = command.parse(command.words()[1]);
                let config = Config {
                    chain_epoch: 0,
                    ..self.replicas[number].config().clone()
                };
                self.starts += 1;
                self.replicas[number] = Replica::new(config, self.starts).unwrap();
                self.places[number] = Vec::new();
            }
            "sick" | "well" => {
                let server = SocketAddrV4::new(command.parse(command.words()[1]), 8080);
                for replica in &mut self.replicas {
                    replica.set_healthy(server, command.words()[0] == "well");
                }
            }
            "members" => self.configure(&command),
            "show" => self.show(&command),
            verb => panic!("{verb} is not a command"),
        }
        self.settle();
        for replica in &self.replicas {
            assert_eq!(replica.audit(), Ok(()), "after {line}");
        }
    }

    fn start(&mut self, command: &Command<'_>) {
        let length = command.get("length").unwrap_or(3);
        let micros = |name| command.text(name).map(|text| command.micros(text));
        let idle = |timeout| IdleTimeouts {
            default: timeout,
            by_protocol: BTreeMap::new(),
            in_state: Vec::new(),
        };
        let nat_idle = idle(Some(micros("idle").unwrap_or(60_000_000)));
        for position in 0..length {
            let mut config = with_mappings(Config::new(length, position), command);
            for class in &mut config.classes {
                class.idle = nat_idle.clone();
            }
            for (class, timeout) in [(3, None), (4, Some(2_000_000))] {
                config.classes.push(ClassConfig {
                    class,
                    state_length: 4,
                    first_lease: FirstLease::Zero,
                    shared_only: false,
                    idle: idle(timeout),
                    quota: None,
                });
            }
            config.classes.push(ClassConfig {
                class: 5,
                state_length: 4,
                first_lease: FirstLease::Zero,
                shared_only: false,
                idle: IdleTimeouts {
                    in_state: vec![StateTimeout {
                        protocol: None,
                        byte: 3,
                        values: BTreeSet::from([1]),
                        timeout: 10_000_000,
                    }],
                    ..idle(Some(2_000_000))
                },
                quota: None,
            });
            config.classes.push(ClassConfig {
                class: 6,
                state_length: 6,
                first_lease: FirstLease::Server {
                    service_at: ServiceAt {
                        address: 6,
                        port: 12,
                    },
                },
                shared_only: false,
                idle: idle(Some(2_000_000)),
                quota: None,
            });
            config.services = vec![service()];
            config.recall = command.has("recall");
            (config.term, config.backing) = (1_000_000, 2_000_000);
            self.is_silent = command.has("silent");
            config.chain_epoch = command.get("chain_epoch").unwrap_or(1);
            config.first_sequence = command.get("first_sequence").unwrap_or(1);
            config.first_epoch = command.get("first_epoch").unwrap_or(0);
            config.evict_after = micros("evict_after");
            let quota = command.get("quota").map(|records| Quota {
                records,
                first: 2,
                length: 4,
            });
            for class in config.classes.iter_mut().filter(|class| class.class == 1) {
                class.quota = quota;
            }
            let limits = &mut config.limits;
            limits.records = command.get("records").unwrap_or(limits.records);
            limits.holders = command.get("holders").unwrap_or(limits.holders);
            limits.link_window = command.get("window").unwrap_or(limits.link_window);
            limits.parked_bytes = command.get("parked_bytes").unwrap_or(limits.parked_bytes);
            limits.parked_per_flow = command
                .get("parked_per_flow")
                .unwrap_or(limits.parked_per_flow);
            let faults = &mut config.faults;
            for (name, fault) in [
                ("ignore_sequence", &mut faults.ignore_sequence),
                ("ignore_epoch", &mut faults.ignore_epoch),
                ("answer_at_head", &mut faults.answer_at_head),
                ("ignore_lease_expiry", &mut faults.ignore_lease_expiry),
                ("ignore_chain_epoch", &mut faults.ignore_chain_epoch),
                ("ignore_neighbour", &mut faults.ignore_neighbour),
                ("forget_entries", &mut faults.forget_entries),
                ("join_early", &mut faults.join_early),
                ("release_early", &mut faults.release_early),
                ("reclaim_held", &mut faults.reclaim_held),
                ("reclaim_live", &mut faults.reclaim_live),
            ] {
                *fault = command.text("fault") == Some(name);
            }
            self.starts += 1;
            let replica = Replica::new(config, self.starts).unwrap();
            if position == 0 {
                *self = World {
                    starts: self.starts,
                    is_silent: self.is_silent,
                    output: self.take_output(),
                    ..World::new()
                };
            }
            self.replicas.push(replica);
            self.places.push((0..length).collect());
            self.epoch = self.replicas[0].config().chain_epoch;
        }
    }

    /// Gives the chain its next configuration.
    fn configure(&mut self, command: &Command<'_>) {
        let joining: Option<u8> = command.get("joining");
        let members = command.words()[1..].iter().map(|word| command.parse(word));
        let mut places: Vec<u8> = members.collect();
        let length = places.len() as u8;
        places.extend(joining);
        self.epoch += 1;
        let only: Option<u8> = command.get("to");
        for (position, &number) in places.iter().enumerate() {
            if only.is_some_and(|only| only != number) {
                continue;
            }
            self.places[usize::from(number)] = places.clone();
            let place = Place {
                epoch: self.epoch,
                length,
                position: position as u8,
                feeds: joining.is_some(),
            };
            self.replicas[usize::from(number)].reconfigure(self.now, place);
        }
    }

    fn request(&mut self, command: &Command<'_>, message_type: MessageType) {
        let number = command.numbered(1, 's');
        let state = command.hex("state");
        let request = Repr {
            shared: command.has("shared"),
            chain_epoch: command.get("chain_epoch").unwrap_or(self.epoch),
            shard: command.get("shard").unwrap_or(0),
            switch_id: number.into(),
            incarnation: command.get("inc").unwrap_or(1),
            claim: command.get("claim").unwrap_or(1),
            request: command.get("request").unwrap_or(1),
            send_time: command.get("send").unwrap_or(self.now),
            attempt: command.get("attempt").unwrap_or(0),
            lease_epoch: command.get("epoch").unwrap_or(0),
            sequence: command.get("seq").unwrap_or(0),
            age: command.text("age").map_or(0, |text| command.micros(text)),
            state: &state,
            packet: command.text("packet").map(str::as_bytes),
            ..Repr::new(message_type, command.key())
        };
        let to: usize = command.get("to").unwrap_or(0);
        if !self.is_silent && request.incarnation != 0 {
            self.replicas[to].promise(self.now, request.switch_id, request.incarnation);
        }
        self.replicas[to].handle_request(self.now, switch(number), &request.to_vec().unwrap());
    }

    fn advance(&mut self, time: u64) {
        let end = self.now + time;
        loop {
            let due = self.replicas.iter().filter_map(Replica::poll_timeout).min();
            match due {
                Some(due) if due <= end => self.now = self.now.max(due),
                _ => break,
            }
            for replica in &mut self.replicas {
                replica.handle_timeout(self.now);
            }
            self.settle();
        }
        self.now = end;
    }

    /// Delivers datagrams until none is in flight.
    fn settle(&mut self) {
        let now = self.now;
        let mut replicas = core::mem::take(&mut self.replicas);
        let poll = |replica: &mut Replica| replica.poll_transmit(now);
        exchange(&mut replicas, poll, |replicas, from, transmit| {
            let to = match transmit.to {
                Destination::Switch(to) => return self.print_reply(from, to, &transmit.bytes),
                Destination::Replica(to) => usize::from(to),
            };
            let Some(&to) = self.places[from].get(to) else {
                return;
            };
            let link = (from as u8, to);
            let bytes = transmit.bytes;
            self.carried.entry(link).or_default().push(bytes.clone());
            if let Some(held) = self.holding.get_mut(&link) {
                held.push(bytes);
            } else if !self.dropping.contains(&link) {
                self.give(replicas, link, &bytes);
            }
        });
        self.replicas = replicas;
    }

    fn carry(&mut self, link: Link, messages: Vec<Arc<Vec<u8>>>) {
        let mut replicas = core::mem::take(&mut self.replicas);
        for bytes in messages {
            self.give(&mut replicas, link, &bytes);
        }
        self.replicas = replicas;
    }

    fn give(&self, replicas: &mut [Replica], (from, to): Link, bytes: &[u8]) {
        let to = usize::from(to);
        let position = self.places[to].iter().position(|number| *number == from);
        if let Some(position) = position {
            replicas[to].handle_chain(self.now, position as u8, bytes);
        }
    }

    fn print_reply(&mut self, from: usize, to: SocketAddrV4, bytes: &[u8]) {
        let reply = Repr::parse(&Packet::new_checked(bytes).unwrap());
        let mut line = format!(
            "{}ms r{from} -> s{}",
            self.now as f64 / 1e3,
            to.ip().octets()[3]
        );
        let name = match reply.message_type {
            MessageType::LeaseReply => "LEASE",
            MessageType::WriteReply => "WRITTEN",
            MessageType::RenewReply => "RENEWED",
            MessageType::ProbeReply => "ALIVE",
            MessageType::Recall => "RECALL",
            MessageType::Idle => "IDLE",
            _ => "REFUSED",
        };
        write!(line, " {name}").unwrap();
        if let Some(code) = RefusalCode::from_u8(reply.code) {
            write!(line, " {code:?}").unwrap();
        }
        if reply.shared {
            line.push_str(" shared");
        }
        write!(line, " claim={} request={}", reply.claim, reply.request).unwrap();
        for (name, value) in [
            ("attempt", reply.attempt.into()),
            ("send", reply.send_time),
            ("epoch", reply.lease_epoch.into()),
            ("seq", reply.sequence.into()),
            ("age", reply.age),
        ] {
            if value != 0 {
                write!(line, " {name}={value}").unwrap();
            }
        }
        if !reply.state.is_empty() {
            write!(line, " state={}", state(reply.state)).unwrap();
        }
        if let Some(packet) = reply.packet {
            write!(line, " packet={}", String::from_utf8_lossy(packet)).unwrap();
        }
        self.output.push(line);
    }

    fn show(&mut self, command: &Command<'_>) {
        match command.words()[1] {
            "counters" => self.show_counters(&command.words()[2..]),
            "records" => self.show_records(),
            "replicas" => self.show_replicas(),
            "loads" => self.show_loads(),
            what => panic!("{what} cannot be shown"),
        }
    }

    fn show_counters(&mut self, names: &[&str]) {
        for (position, replica) in self.replicas.iter().enumerate() {
            let counters = serde_json::to_value(replica.counters()).unwrap();
            let mut line = format!("r{position}");
            for name in names {
                let value = counters[name].as_u64().unwrap();
                if value != 0 {
                    write!(line, " {name}={value}").unwrap();
                }
            }
            self.output.push(line);
        }
    }

    fn show_records(&mut self) {
        for (shard, key, record) in self.replicas[0].records() {
            let mut line = format!(
                "shard {shard} {key} seq={} epoch={} state={}",
                record.sequence(),
                record.epoch(),
                state(record.state())
            );
            let kind = match record.lease() {
                Lease::None => "free",
                Lease::Exclusive(_) => "exclusive",
                Lease::Shared(_) => "shared",
            };
            write!(line, " {kind}").unwrap();
            for holder in record.lease().holders() {
                write!(
                    line,
                    " s{}/{}/{}@{}<{}ms",
                    holder.owner.switch,
                    holder.owner.incarnation,
                    holder.owner.claim,
                    holder.epoch,
                    self.replicas[0].outwaits(shard, &holder.owner) as f64 / 1e3
                )
                .unwrap();
            }
            self.output.push(line);
        }
    }

    fn show_loads(&mut self) {
        for (position, replica) in self.replicas.iter().enumerate() {
            let mut line = format!("r{position}");
            for (_, server, flows) in replica.server_loads(0) {
                write!(line, " {server}={flows}").unwrap();
            }
            self.output.push(line);
        }
    }

    fn show_replicas(&mut self) {
        let digest = self.replicas[0].digest();
        for (position, replica) in self.replicas.iter().enumerate() {
            let free = replica
                .pools(0)
                .map_or(0, |pools| pools.free(6, Ipv4Addr::new(203, 0, 113, 1)));
            let line = format!(
                "r{position} records={} epoch={} free={free} parked={} unacknowledged={} {}",
                replica.records().count(),
                replica.shard_epoch(0).unwrap_or(0),
                replica.parked().0,
                replica.unacknowledged(),
                if replica.digest() == digest {
                    "same"
                } else {
                    "differs"
                }
            );
            let joined = if replica.has_joined() { " joined" } else { "" };
            let line = format!("{line}{joined}");
            self.output.push(line);
        }
    }
}

/// Adds the classes of mappings and their ports.
fn with_mappings(config: Config, command: &Command<'_>) -> Config {
    let (first, last) = command
        .text("ports")
        .and_then(|ports| ports.split_once('-'))
        .unwrap_or(("1024", "1031"));
    let pool = NatPool {
        addresses: vec![Ipv4Addr::new(203, 0, 113, 1)],
        first_port: command.parse(first),
        last_port: command.parse(last),
    };
    let config = config.with_shards(command.get("shards").unwrap_or(1));
    if !command.has("dependent") {
        return config.with_nat(pool, 1, 2);
    }
    let mut config = config.with_dependent_nat(pool, 1, 2);
    for class in &mut config.classes {
        if let (FirstLease::NatDependent { tcp_transitory, .. }, Some(time)) =
            (&mut class.first_lease, command.text("transitory"))
        {
            *tcp_transitory = command.micros(time);
        }
    }
    config
}

/// The service that keys of the class `service` name.
pub const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 80);

/// A server of weight 2, one of weight 1 that takes two flows, and one of weight 0.
fn service() -> Service {
    let server = |number, weight, most| ServiceServer {
        endpoint: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, number), 8080),
        weight,
        most,
    };
    Service {
        id: ServiceId {
            protocol: 6,
            endpoint: SERVICE,
        },
        servers: vec![
            server(1, 2, None),
            server(2, 1, Some(2)),
            server(3, 0, None),
        ],
    }
}

fn switch(number: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, number), 4793)
}

/// An endpoint, one with flags behind a plus sign, or hexadecimal digits.
fn state(bytes: &[u8]) -> String {
    if let [endpoint @ .., flags] = bytes
        && endpoint.len() == 6
    {
        return format!("{}+{flags:02x}", state(endpoint));
    }
    if let [a, b, c, d, high, low] = *bytes {
        return format!("{a}.{b}.{c}.{d}:{}", u16::from_be_bytes([high, low]));
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
