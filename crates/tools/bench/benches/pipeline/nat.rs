//! The NAT on the way out: of flows that are known, with mappings of its own and under
//! leases of a store; and of a capture. Measured alone, as other programs are, and in a
//! whole switch with its ports, queues and counters, beside which the hand-written one
//! stays without.

use crate::work::{check, compare_spread, measure, work};
use crate::{captures, insert, prefix_key};
use stateplane_bench::chain::{Chain, store_of};
use stateplane_bench::limit::{Job, Lease, Nat, NextHop};
use stateplane_bench::switch::{Bench, compile};
use stateplane_bench::{Report, frame};
use stateplane_interp::Interp;
use stateplane_native::Native;
use stateplane_runtime::Engine;
use std::net::{Ipv4Addr, SocketAddrV4};

const UNPROTECTED: &str = include_str!("../../../../../lab/nat/switch-unprotected.toml");
const SWITCH: &str = concat!(
    include_str!("../../../../../apps/nat/switch.toml"),
    include_str!("../../../../../lab/nat/switch.toml"),
);

const PUBLIC: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const DESTINATION: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 18);

/// The interpreter's and the machine code's switch with a program and its file.
fn switches(name: &str, config: &str) -> (Bench<Native>, Bench<Interp>) {
    let native = Native::new(compile(name), Default::default()).expect("the program loads");
    let interp = Interp::new(compile(name), Default::default()).expect("the program loads");
    (Bench::new(native, config), Bench::new(interp, config))
}

fn unprotected() -> (Bench<Native>, Bench<Interp>) {
    let mut config = UNPROTECTED.to_owned();
    for (variable, value) in [
        ("id", "1"),
        ("other", "2"),
        ("other_half", "1"),
        ("first_port", "1024"),
        ("last_port", "32767"),
    ] {
        config = config.replace(&format!("${{{variable}}}"), value);
    }
    switches("apps/nat/unprotected.p4", &config)
}

/// The NAT by hand, with the routes of the files and perhaps one for all that they leave.
fn by_hand(now: u64, default: bool) -> Nat {
    let mut routes = vec![
        (u32::from(DESTINATION) & 0xffff_ff00, 24, 0),
        (0x0a00_0000, 16, 1),
    ];
    routes.extend(default.then_some((0, 0, 0)));
    let neighbours = [
        NextHop {
            port: 1,
            addresses: [2, 0, 0, 0, 0xb2, 1, 2, 0, 0, 0, 0xa1, 1],
        },
        NextHop {
            port: 0,
            addresses: [2, 0, 0, 0, 0xb1, 1, 2, 0, 0, 0, 0xa1, 0],
        },
    ];
    let mut limit = Nat::new(u32::from(PUBLIC), &routes, &neighbours);
    limit.now = now;
    limit
}

/// Runs frames through an engine, and tells the hand-written NAT what the first packet of
/// each flow got.
fn teach(limit: &mut Nat, engine: &mut impl Job, frames: &[Vec<u8>], deadline: Option<u64>) {
    let mut sent = Vec::new();
    for frame in frames {
        if engine.frame(0, frame, &mut sent).is_none() {
            continue;
        }
        let word = |bytes: &[u8], at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let address = |bytes: &[u8], at: usize| {
            u32::from(word(bytes, at)) << 16 | u32::from(word(bytes, at + 2))
        };
        let lease = Lease {
            deadline,
            used: 0,
            address: address(&sent, 26),
            port: word(&sent, 34),
        };
        limit.learn(frame[23], address(frame, 26), word(frame, 34), lease);
    }
}

/// Flows that are known, all of them at once.
fn known(report: &mut Report) {
    let frames: Vec<Vec<u8>> = (0..1024u16)
        .map(|flow| {
            let source = SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, 2), 40_000 + flow);
            frame::tcp(source, SocketAddrV4::new(DESTINATION, 5201), 60)
        })
        .collect();
    let (mut own, mut own_interp) = unprotected();
    let config = SWITCH.replace("${id}", "1");
    let (mut kept, mut kept_interp) = switches("apps/nat/nat.p4", &config);
    let mut chain = Chain::new(&store_of("nat"), 3);
    assert_eq!(kept.converse(&mut chain, &frames), frames.len());
    let mut chain = Chain::new(&store_of("nat"), 3);
    assert_eq!(kept_interp.converse(&mut chain, &frames), frames.len());
    for (name, native, interp) in [
        ("NAT without replication", &mut own, &mut own_interp),
        ("NAT with replication", &mut kept, &mut kept_interp),
    ] {
        let mut limit = by_hand(native.now, false);
        let deadline = name.ends_with("with replication").then_some(u64::MAX);
        teach(&mut limit, &mut native.engine(), &frames, deadline);
        check(name, native, &mut limit, &frames);
        check(name, &mut native.engine(), &mut limit, &frames);
        if deadline.is_none() {
            // The store gives each switch ports of its own.
            check(name, &mut interp.engine(), &mut limit, &frames);
        }
        measure(
            report,
            name,
            &frames,
            &mut native.engine(),
            &mut interp.engine(),
            &mut limit,
        );
        let whole = format!("{name}, whole switch");
        report.compare(
            &whole,
            work(native, &frames),
            "hand-written",
            work(&mut limit, &frames),
        );
    }
    report.compare(
        "NAT with replication",
        work(&mut kept.engine(), &frames),
        "unreplicated",
        work(&mut own.engine(), &frames),
    );
    compare_spread(
        report,
        "NAT with replication",
        &frames,
        &mut kept.engine(),
        "unreplicated",
        &mut own.engine(),
    );
    report.compare(
        "NAT with replication, whole switch",
        work(&mut kept, &frames),
        "unreplicated",
        work(&mut own, &frames),
    );
}

/// A capture from the inside, with a route for all that it goes to; without ICMP, whose
/// errors are translated by what they carry, which the hand-written one does not do.
fn capture(report: &mut Report) {
    let Some(mut frames) = captures::frames(captures::MIXED) else {
        return;
    };
    frames.retain(|frame| frame.get(23) != Some(&1));
    let name = "NAT without replication, capture";
    let (mut native, mut interp) = unprotected();
    for state in [
        native.engine().engine.state_mut(),
        interp.engine().engine.state_mut(),
    ] {
        let gateway = u64::from(u32::from(Ipv4Addr::new(10, 2, 1, 1)));
        insert(state, "routes", prefix_key(0, 0), 0, "via", &[gateway]);
    }
    let mut limit = by_hand(native.now, true);
    teach(&mut limit, &mut native.engine(), &frames, None);
    for frame in &frames {
        interp.frame(0, frame, |_, _| {});
    }
    check(name, &mut interp.engine(), &mut limit, &frames);
    check(name, &mut native.engine(), &mut limit, &frames);
    measure(
        report,
        name,
        &frames,
        &mut native.engine(),
        &mut interp.engine(),
        &mut limit,
    );
}

pub fn run(report: &mut Report) {
    known(report);
    capture(report);
}
