//! Flows whose places are computed, so that they leave none to another one.

use super::*;
use crate::frame::{HostPacket, message_in, message_to_switch};
use crate::model::MODELLED;
use crate::program::program;
use core::net::SocketAddrV4;
use stateplane_apps::connection_key;
use stateplane_interp::Interp;
use stateplane_runtime::hash::crc32;
use stateplane_store::{ClassConfig, Config, FirstLease, IdleTimeouts, Recipient, Server};
use stateplane_wire::chain;
use stateplane_wire::ipv4;

/// The library's own number of buckets, of four slots each.
const BUCKETS: u64 = 16_384;
/// Slots that are open to a flow.
const PLACES: usize = 8;
/// µs from one packet of all attackers to the next: 20 in a second.
const PERIOD: u64 = 50_000;
/// The victim's packets.
const PACKETS: u64 = 17;
const START: u64 = 1_000_000;

/// `FLOW_HASH_0` to `FLOW_HASH_5` of `p4/lib/flow_hash.p4`.
const CONSTANTS: [u64; 6] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
    0x4528_21e6_38d0_1377,
    0xbe54_66cf_34e9_0c6c,
];

type Buckets = fn(&Key, &[u64; 6]) -> [u64; 2];

/// The buckets of a key by `p4/lib/flow_hash.p4`.
fn keyed(key: &Key, drawn: &[u64; 6]) -> [u64; 2] {
    let word = |at: usize| u64::from(u32::from_be_bytes(*key.0[at..].first_chunk().expect("4")));
    let summed = |at: usize| (drawn[at] ^ CONSTANTS[at]).wrapping_add(word(at * 4));
    let product = |at: usize| summed(at).wrapping_mul(summed(at + 1));
    let mixed = product(0).wrapping_add(product(2));
    let mixed = mixed ^ (mixed >> 32);
    [4, 5].map(|at| {
        let product = mixed.wrapping_mul((drawn[at] ^ CONSTANTS[at]) | 1);
        ((product >> 32) * BUCKETS) >> 32
    })
}

/// The bucket of a key by a CRC, twice.
fn linear(key: &Key, _: &[u64; 6]) -> [u64; 2] {
    [u64::from(crc32(&key.0)) % BUCKETS; 2]
}

fn crowded() -> ProgramKind {
    ProgramKind::from_name(MODELLED).expect("a program")
}

fn flow(number: u32) -> HostPacket {
    let [.., b, c] = (number >> 14).to_be_bytes();
    HostPacket {
        protocol: ipv4::PROTOCOL_TCP,
        source: SocketAddrV4::new(Ipv4Addr::new(10, 0, b, c), 1024 + (number & 0x3fff) as u16),
        destination: SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 9), 80),
        value: 0,
        number: u64::from(number),
    }
}

fn key(of: &HostPacket) -> Key {
    let class = crowded().app().expect("an application").room().class();
    connection_key(class.id, of.protocol, of.source, of.destination)
}

/// Flows that occupy all ways of the victim's buckets (flow 0), as far as an attacker can tell who
/// knows `buckets` and believes that `drawn` was drawn.
fn attackers(buckets: Buckets, drawn: &[u64; 6]) -> Vec<HostPacket> {
    let [first, second] = buckets(&key(&flow(0)), drawn);
    let in_bucket = |wanted: u64| {
        let found = (1..).map(flow);
        found.filter(move |it| buckets(&key(it), drawn)[0] == wanted)
    };
    if first == second {
        in_bucket(first).take(PLACES).collect()
    } else {
        in_bucket(first)
            .take(PLACES / 2)
            .chain(in_bucket(second).take(PLACES / 2))
            .collect()
    }
}

/// A switch with its store, without links between them.
struct World {
    switch: P4Switch<Interp>,
    store: Server,
    released: u64,
}

impl World {
    /// A switch that drew what an incarnation draws.
    fn new(incarnation: u32) -> World {
        let program = program(crowded(), BUCKETS as u32, None);
        let program = program.expect("it compiles").expect("a program");
        let engine = Interp::new(program, Default::default()).expect("an engine");
        let identity = Identity {
            switch: 1,
            incarnation,
        };
        let config = Config::new(1, 0)
            .with_shards(SHARDS)
            .with_class(ClassConfig {
                class: 1,
                state_length: 8,
                first_lease: FirstLease::Zero,
                shared_only: false,
                idle: IdleTimeouts::never(),
                quota: None,
            });
        let link = SocketAddrV4::new(HEAD_ADDRESS, chain::PORT);
        let mut world = World {
            switch: P4Switch::new(engine, crowded(), identity, false).expect("a switch"),
            store: Server::fixed(config, 1, vec![link]).expect("a store"),
            released: 0,
        };
        world.until(START);
        world
    }

    fn drawn(&mut self) -> &mut stateplane_runtime::Register {
        let state = self.switch.switch.engine_mut().state_mut();
        state.register_mut("flow_hash_key").expect("the library's")
    }

    /// Lets timers of the switch and the store expire until `now`.
    fn until(&mut self, now: u64) {
        loop {
            let timers = [self.switch.poll_timeout(), self.store.poll_timeout()];
            let Some(due) = timers.into_iter().flatten().min().filter(|due| *due < now) else {
                return;
            };
            self.store.handle_timeout(due);
            self.switch.handle_timeout(due);
            self.talk(due);
        }
    }

    fn talk(&mut self, now: u64) {
        loop {
            if let Some((port, frame)) = self.switch.poll_transmit() {
                if let Some((from, _, message)) = message_in(&frame) {
                    self.store.handle_request(now, from, message);
                } else if port == OUTSIDE_PORT
                    && HostPacket::read(&frame).is_some_and(|it| it.number == 0)
                {
                    self.released += 1;
                }
            } else if let Some(datagram) = self.store.poll_transmit(now) {
                if let Recipient::Switch(to) = datagram.to {
                    let frame = message_to_switch(HEAD_ADDRESS, to, &datagram.bytes);
                    self.switch.handle_frame(now, STORE_PORT, &frame);
                }
            } else {
                return;
            }
        }
    }

    fn arrive(&mut self, now: u64, packet: &HostPacket) {
        self.until(now);
        self.switch
            .handle_frame(now, INSIDE_PORT, &packet.to_frame(1));
        self.talk(now);
    }

    /// Number of the victim's packets that pass while those of `attackers` come in turn.
    fn besieged(mut self, attackers: &[HostPacket]) -> u64 {
        let turns = (attackers.len() as u64).max(PACKETS);
        for turn in 0..turns + PACKETS {
            let now = START + turn * PERIOD;
            let attacker = attackers[turn as usize % attackers.len()];
            self.arrive(now, &attacker);
            if turn >= turns {
                self.arrive(now + PERIOD / 2, &flow(0));
            }
        }
        self.released
    }
}

#[test]
fn flows_that_share_a_crc_keep_nobody_out() {
    let attackers = attackers(linear, &[0; 6]);
    assert_eq!(World::new(7).besieged(&attackers), PACKETS);
}

#[test]
fn who_knows_all_but_what_was_drawn_keeps_nobody_out() {
    let mut world = World::new(7);
    let register = world.drawn();
    let drawn: [u64; 6] =
        core::array::from_fn(|at| register.word(at as u64).expect("six elements") as u64);
    assert!(drawn.iter().all(|it| *it != 0), "{drawn:?}");
    // Another start drew other factors; and the packet tests' switches draw none.
    for unlike in [[0; 6], drawn.map(|it| it.rotate_left(1))] {
        let attackers = attackers(keyed, &unlike);
        assert_eq!(World::new(7).besieged(&attackers), PACKETS, "{unlike:?}");
    }
    // An attacker who knows the factors succeeds: the attack works, and needs both buckets.
    let known = attackers(keyed, &drawn);
    assert_eq!(World::new(7).besieged(&known[..PLACES / 2]), PACKETS);
    assert_eq!(World::new(7).besieged(&known[PLACES / 2..]), PACKETS);
    assert_eq!(world.besieged(&known), 0);
    let mut undrawn = World::new(7);
    let zero = Value::from(0);
    undrawn.drawn().fill(&zero).expect("it fits");
    assert_eq!(undrawn.besieged(&attackers(keyed, &[0; 6])), 0);
}
