//! IPv4 forwarding.

use crate::work::program;
use crate::{Numbers, captures, engines, exact, flows, insert, prefix_key};
use stateplane_bench::Report;
use stateplane_bench::limit::{Forward, NextHop};
use stateplane_runtime::{Engine, TargetState};
use std::net::Ipv4Addr;

/// The program.
pub const PROGRAM: &str = "bench/p4/forward.p4";

/// Routes of lengths as in a table of the Internet: address, length, next hop.
pub fn routes(numbers: &mut Numbers, count: usize) -> Vec<(u32, u32, u32)> {
    let mut routes: Vec<(u32, u32, u32)> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    while routes.len() < count {
        let length = match numbers.below(10) {
            0 => 16 + numbers.below(4) as u32,
            1..=2 => 20 + numbers.below(3) as u32,
            9 => 25 + numbers.below(8) as u32,
            _ => 24,
        };
        let address = numbers.next() as u32 >> (32 - length) << (32 - length);
        if seen.insert((address, length)) {
            routes.push((address, length, numbers.below(64) as u32));
        }
    }
    routes
}

/// Numbered next hops.
pub fn hops() -> Vec<(u16, NextHop)> {
    (0..64)
        .map(|hop: u16| {
            let mut addresses = [2; 12];
            addresses[5] = hop as u8;
            addresses[11] = hop as u8 + 100;
            let port = hop % 8;
            (hop, NextHop { port, addresses })
        })
        .collect()
}

/// Fills the tables of the program.
pub fn fill(state: &mut TargetState, routes: &[(u32, u32, u32)], hops: &[(u16, NextHop)]) {
    for (address, length, hop) in routes {
        let key = prefix_key(*address, *length);
        insert(state, "routes", key, 0, "route", &[u64::from(*hop)]);
    }
    for (number, hop) in hops {
        let mac = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |mac, byte| mac << 8 | u64::from(*byte))
        };
        let data = [
            u64::from(hop.port),
            mac(&hop.addresses[6..]),
            mac(&hop.addresses[..6]),
        ];
        let key = vec![exact(u64::from(*number))];
        insert(state, "next_hops", key, 0, "send", &data);
    }
}

/// Frames to hosts under random routes.
pub fn frames(numbers: &mut Numbers, routes: &[(u32, u32, u32)], count: usize) -> Vec<Vec<u8>> {
    flows(count, |_| {
        let (address, length, _) = routes[numbers.below(routes.len() as u64) as usize];
        let host = (numbers.next() as u32).checked_shr(length).unwrap_or(0);
        (
            Ipv4Addr::from(numbers.next() as u32),
            Ipv4Addr::from(address | host),
        )
    })
}

pub fn run(report: &mut Report) {
    let mut numbers = Numbers(1);
    let mut routes = routes(&mut numbers, 10_000);
    let hops = hops();
    let generated = frames(&mut numbers, &routes, 4096);
    for (name, frames) in [
        ("L3, 10k routes", Some(generated)),
        ("L3, 10k routes, capture", captures::frames(captures::MIXED)),
    ] {
        let Some(frames) = frames else { continue };
        if name.ends_with("capture") {
            routes.push((0, 0, 1));
        }
        let (mut native, mut interp) = engines(PROGRAM, 0);
        fill(native.engine.state_mut(), &routes, &hops);
        fill(interp.engine.state_mut(), &routes, &hops);
        let mut limit = Forward::new(&routes, &hops);
        program(report, name, &frames, &mut native, &mut interp, &mut limit);
    }
}
