//! New connections a second through 64 public ports to one server, in virtual time: the ports of
//! connections that have ended are given to others as soon as their leases are given back (rule 29).
//!
//! `STATEPLANE_PORT_SECONDS=3600 cargo test -p stateplane-store --test port_rate -- --nocapture` takes an
//! hour of virtual time, and prints the rate of each of twelve parts of it. `lab/linux/ports.sh` measures
//! what nftables sustains.

use std::collections::{BTreeMap, BTreeSet};

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_store::{Config, Destination, NatPool, Replica};
use stateplane_wire::replication::{Key, MessageType, Packet, RefusalCode, Repr};

/// Public ports of the server's connections.
const PORTS: u16 = 64;
/// Hosts inside, each of which opens one connection after another.
const HOSTS: u32 = 256;
/// µs from a switch to the store or back, and from the NAT to the server or back.
const TO_STORE: u64 = 100;
const TO_SERVER: u64 = 500;
/// µs between the handshake and the first FIN.
const TALK: u64 = 20_000;
/// µs until a SYN without an answer is sent again for the first time (RFC 6298); then twice as long.
const REPEAT: u64 = 1_000_000;

const PUBLIC: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const REMOTE: [u8; 6] = [198, 51, 100, 1, 0, 80];

/// One direction of a connection at the switch that it crosses.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    epoch: u32,
    sequence: u32,
}

#[derive(Debug, Default)]
struct Connection {
    host: u32,
    /// How often its SYN was refused.
    refused: u32,
    port: u16,
    outbound: Slot,
    inbound: Slot,
    has_ended: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A packet reaches the store from a switch.
    AtStore(u8, Vec<u8>),
    /// A message of the store reaches a switch.
    AtSwitch(Vec<u8>),
    /// The inside sends the SYN of a connection.
    Syn(u32),
    /// The server's answer to the SYN, or its FIN, reaches the NAT.
    Answer(u32),
    Fin(u32),
    /// The inside sends its FIN.
    Close(u32),
}

struct World {
    now: u64,
    replica: Replica,
    events: BTreeSet<(u64, u64, Event)>,
    number: u64,
    connections: BTreeMap<u32, Connection>,
    last: u32,
    /// The connection that has each port.
    owners: BTreeMap<u16, u32>,
    opened: u64,
}

fn switch(number: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, number), 4793)
}

/// The connection's number stands in its inside endpoint, 10.x.y.z with port 9.
fn inside(connection: u32) -> [u8; 6] {
    let [_, a, b, c] = connection.to_be_bytes();
    [10, a, b, c, 0, 9]
}

fn public(port: u16) -> [u8; 6] {
    let [high, low] = port.to_be_bytes();
    let [a, b, c, d] = PUBLIC.octets();
    [a, b, c, d, high, low]
}

fn key(class: u8, own: [u8; 6]) -> Key {
    let mut key = [0; 16];
    (key[0], key[1]) = (class, 6);
    key[2..8].copy_from_slice(&own);
    key[8..14].copy_from_slice(&REMOTE);
    Key(key)
}

impl World {
    fn new() -> World {
        let pool = NatPool {
            addresses: vec![PUBLIC],
            first_port: 1024,
            last_port: 1024 + PORTS - 1,
        };
        let config = Config::new(1, 0).with_dependent_nat(pool, 1, 2);
        let mut world = World {
            now: 0,
            replica: Replica::new(config, 7).unwrap(),
            events: BTreeSet::new(),
            number: 0,
            connections: BTreeMap::new(),
            last: 0,
            owners: BTreeMap::new(),
            opened: 0,
        };
        for host in 0..HOSTS {
            world.begin(host, u64::from(host) * 100);
        }
        world
    }

    fn after(&mut self, time: u64, event: Event) {
        self.number += 1;
        self.events.insert((self.now + time, self.number, event));
    }

    fn begin(&mut self, host: u32, after: u64) {
        self.last += 1;
        let connection = Connection {
            host,
            ..Connection::default()
        };
        self.connections.insert(self.last, connection);
        self.after(after, Event::Syn(self.last));
    }

    /// A switch sends a request about a connection: switch 1 for the inside, 2 for the outside.
    fn ask(&mut self, of: u32, outwards: bool, message_type: MessageType, flags: Option<u8>) {
        let connection = self.connections.get_mut(&of).unwrap();
        let (number, key, slot, end) = if outwards {
            let end = public(connection.port);
            (1, key(1, inside(of)), &mut connection.outbound, end)
        } else {
            let key = key(2, public(connection.port));
            (2, key, &mut connection.inbound, inside(of))
        };
        let mut state = Vec::new();
        if let Some(flags) = flags {
            slot.sequence += 1;
            state.extend(end);
            state.push(flags);
        }
        let lease = message_type == MessageType::LeaseRequest;
        let request = Repr {
            chain_epoch: 1,
            switch_id: number.into(),
            incarnation: 1,
            claim: of,
            request: slot.sequence,
            lease_epoch: if lease { 0 } else { slot.epoch },
            sequence: if lease { 0 } else { slot.sequence },
            state: &state,
            ..Repr::new(message_type, key)
        };
        let bytes = request.to_vec().unwrap();
        self.after(TO_STORE, Event::AtStore(number, bytes));
    }

    fn run(&mut self, until: u64) {
        loop {
            let due = self.replica.poll_timeout();
            let next = self.events.first().map(|(at, ..)| *at);
            let Some(now) = [due, next].into_iter().flatten().min() else {
                return;
            };
            if now > until {
                return;
            }
            self.now = self.now.max(now);
            if due.is_some_and(|due| due <= self.now) {
                self.replica.handle_timeout(self.now);
            }
            while let Some((_, _, event)) =
                self.events.first().cloned().filter(|it| it.0 <= self.now)
            {
                self.events.pop_first();
                self.handle(event);
            }
            while let Some(transmit) = self.replica.poll_transmit(self.now) {
                assert!(matches!(transmit.to, Destination::Switch(_)));
                self.after(TO_STORE, Event::AtSwitch(transmit.bytes.to_vec()));
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::AtStore(from, bytes) => {
                self.replica.handle_request(self.now, switch(from), &bytes);
            }
            Event::AtSwitch(bytes) => self.at_switch(&bytes),
            Event::Syn(of) => self.ask(of, true, MessageType::LeaseRequest, None),
            Event::Answer(of) => self.ask(of, false, MessageType::LeaseRequest, None),
            Event::Close(of) => self.ask(of, true, MessageType::WriteRequest, Some(6)),
            Event::Fin(of) => self.ask(of, false, MessageType::WriteRequest, Some(7)),
        }
    }

    fn at_switch(&mut self, bytes: &[u8]) {
        let reply = Repr::parse(&Packet::new_checked(bytes).unwrap());
        let (of, outwards) = (reply.claim, reply.key.class() == 1);
        // A recall that was sent twice may come when another connection has the port.
        let Some(connection) = self.connections.get_mut(&of) else {
            return;
        };
        let slot = if outwards {
            &mut connection.outbound
        } else {
            &mut connection.inbound
        };
        match reply.message_type {
            MessageType::LeaseReply => {
                (slot.epoch, slot.sequence) = (reply.lease_epoch, reply.sequence);
                if outwards {
                    connection.port = u16::from_be_bytes([reply.state[4], reply.state[5]]);
                    let before = self.owners.insert(connection.port, of);
                    let ended = before.is_none_or(|before| self.connections[&before].has_ended);
                    assert!(ended, "port of a connection that has not ended");
                    if let Some(before) = before {
                        self.connections.remove(&before);
                    }
                    self.after(2 * TO_SERVER, Event::Answer(of));
                } else {
                    self.ask(of, false, MessageType::WriteRequest, Some(3));
                }
            }
            MessageType::WriteReply => match (outwards, slot.sequence) {
                (false, 2) => self.ask(of, true, MessageType::WriteRequest, Some(2)),
                (true, 2) => {
                    self.opened += 1;
                    self.after(TALK, Event::Close(of));
                }
                (true, _) => self.after(2 * TO_SERVER, Event::Fin(of)),
                (false, _) => {
                    connection.has_ended = true;
                    let host = connection.host;
                    self.begin(host, 0);
                }
            },
            MessageType::Recall => {
                if slot.epoch == reply.lease_epoch {
                    self.ask(of, outwards, MessageType::ReleaseRequest, None);
                }
            }
            _ => {
                assert_eq!(reply.code, RefusalCode::PoolExhausted as u8);
                let wait = REPEAT << connection.refused.min(6);
                connection.refused += 1;
                self.after(wait, Event::Syn(of));
            }
        }
    }
}

/// A connection has its port for 23.0 ms, and the next one gets it 0.4 ms later, so 64 ports allow 2,735
/// connections a second. Were a lease period of 1 s awaited, it would be 63.
#[test]
fn a_port_is_used_again_after_a_round_trip() {
    let seconds = std::env::var("STATEPLANE_PORT_SECONDS");
    let seconds: u64 = seconds.map_or(6, |seconds| seconds.parse().unwrap());
    let mut world = World::new();
    let mut rates = Vec::new();
    for part in 1..=12 {
        let before = world.opened;
        world.run(part * seconds * 1_000_000 / 12);
        assert_eq!(world.replica.audit(), Ok(()));
        let rate = (world.opened - before) * 12 / seconds;
        println!("part {part} of {seconds} s: {rate} new connections a second");
        rates.push(rate);
    }
    assert!(rates.iter().all(|rate| *rate > 2_000), "{rates:?}");
    assert!(world.replica.record_count() <= 2 * usize::from(PORTS));
}
