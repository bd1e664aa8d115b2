//! UDP floods: windows of the instrumented program, verdicts written back through the engine.

mod support;
mod world;

use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_runtime::Engine as _;
use stateplane_sketch::Flood;
use stateplane_wire::sync::Operation;
use std::collections::BTreeMap;
use support::{Draws, Packet};
use world::{Link, World};

const PAIRS: usize = 0;
const BLOCKED: usize = 1;
/// Packets in a window that are a flood.
const THRESHOLD: u64 = 150;
/// µs between two cuts.
const WINDOW: u64 = 20_000;

fn packet(source: u32, destination: u32) -> Packet {
    Packet {
        source: Ipv4Addr::from_bits(0x0a09_0000 + source),
        destination: Ipv4Addr::from_bits(0x0a00_0000 + destination),
        protocol: 17,
        ports: (4000, 53),
    }
}

/// All packets that are not dropped leave by port 0.
fn route(world: &mut World) {
    let state = world.switch.engine_mut().state_mut();
    let mut default = |table: &str, action: &str, data: &[u64]| {
        let data: Vec<BigUint> = data.iter().map(|it| BigUint::from(*it)).collect();
        let table = state.table_mut(table).expect("a table");
        table.set_default(action, &data).expect("an action");
    };
    default(
        "FloodIngress.router.routes",
        "FloodIngress.router.connected",
        &[],
    );
    default(
        "FloodIngress.router.neighbours",
        "FloodIngress.router.forward",
        &[0, 1, 2],
    );
}

/// Few buckets, so that pairs share them: floods are blocked, no other packet is, and verdicts end
/// with their floods.
#[test]
fn floods_are_blocked_and_nothing_else_is() {
    let link = Link {
        loses_one_in: 11,
        byte_time: 524,
    };
    let macros = [("UDP_FLOOD_BUCKET_BITS", "6")];
    let mut world = World::new("apps/udp-flood/udp_flood.p4", &macros, link);
    route(&mut world);
    let mut flood = Flood::new(THRESHOLD);
    let mut draws = Draws(5);
    let attacks = [(200, 1), (201, 1), (202, 2)];
    let (begin, end, stop) = (60_000, 400_000, 640_000);
    let (mut sent, mut left) = (BTreeMap::new(), BTreeMap::new());
    let (mut verdicts, mut cut_at, mut seen) = (BTreeMap::new(), world.now, 0);
    let start = world.now;
    while world.now - start < stop {
        let time = world.now - start;
        let attack = (begin..end).contains(&time) && draws.below(2) == 0;
        let (source, destination) = if attack {
            attacks[draws.below(3) as usize]
        } else {
            (draws.below(100) as u32, draws.below(4) as u32)
        };
        let packet = packet(source, destination);
        *sent.entry(packet).or_insert(0_u64) += 1;
        world.packet(&packet);
        world.run(20);
        for frame in world.left.drain(..) {
            let packet = support::parse(&frame[14..]).expect("an IPv4 packet");
            *left.entry(packet).or_insert(0_u64) += 1;
        }
        if world.now - cut_at >= WINDOW && world.cut(PAIRS, 0) {
            cut_at = world.now;
        }
        for window in &world.windows[seen..] {
            let writes = flood.window(&window.values);
            for (_, pair) in writes.iter().filter(|(_, pair)| *pair != 0) {
                verdicts.entry(*pair).or_insert(time);
            }
            for some in writes.chunks(4) {
                let taken = world.engines[BLOCKED].write(Operation::Set, some, 0);
                taken.expect("it is taken");
            }
        }
        seen = world.windows.len();
    }
    let pair = |(source, destination): (u32, u32)| {
        let packet = packet(source, destination);
        u64::from(packet.source.to_bits()) << 32 | u64::from(packet.destination.to_bits())
    };
    for attack in attacks {
        let packet = packet(attack.0, attack.1);
        let (all, through) = (sent[&packet], left.get(&packet).copied().unwrap_or(0));
        let verdict = verdicts.get(&pair(attack)).copied();
        let verdict = verdict.unwrap_or_else(|| panic!("{packet:?}: no verdict"));
        println!(
            "{packet:?}: {through} of {all} through; verdict {} µs after the begin",
            verdict - begin
        );
        assert!(through * 2 < all, "{packet:?}: {through} of {all}");
    }
    assert_eq!(
        verdicts.len(),
        attacks.len(),
        "a verdict about others: {verdicts:?}"
    );
    let is_attack = |packet: &Packet| packet.source.octets()[3] >= 200;
    for (packet, count) in sent.iter().filter(|(packet, _)| !is_attack(packet)) {
        assert_eq!(left.get(packet), Some(count), "{packet:?}");
    }
    assert!(
        flood.blocked().is_empty(),
        "verdicts stay: {:?}",
        flood.blocked()
    );
}

#[test]
fn a_verdict_stays_while_its_pair_is_not_counted() {
    let mut flood = Flood::new(10);
    assert_eq!(flood.window(&[7, 11, 8, 10, 0, 0]), [(0, 7)]);
    // Another pair has the bucket: nothing is known of the blocked one.
    assert_eq!(flood.window(&[9, 3, 8, 1, 0, 0]), []);
    // The other one floods: one verdict for each bucket.
    assert_eq!(flood.window(&[9, 12, 8, 1, 0, 0]), [(0, 9)]);
    assert_eq!(flood.window(&[9, 10, 0, 0, 0, 0]), [(0, 0)]);
    assert_eq!(flood.window(&[0, 0, 0, 0, 5, 99]), [(2, 5)]);
    assert_eq!(flood.window(&[0, 0, 0, 0, 0, 0]), [(2, 0)]);
    assert!(flood.blocked().is_empty());
}
