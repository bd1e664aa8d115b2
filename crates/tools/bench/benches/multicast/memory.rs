//! Leaders without sockets: the time that one spends on a message, by the packets that cause it.

use super::groups::{Answers, BURST, Groups, KINDS, Kind};
use super::node::{Deployment, IN, Node, TO_RECEIVERS, receiver_address};
use num_bigint::BigUint;
use stateplane_bench::Report;
use stateplane_bench::switch::compile;
use stateplane_native::Compiled;
use stateplane_runtime::{Entry, KeyMatch};
use stateplane_wire::{ethernet, ipv4, multicast, udp};

/// The switches' program, and one that sends each frame on.
const PROGRAM: &str = "apps/multicast/multicast_switch.p4";
const RELAY_PROGRAM: &str = "bench/p4/relay.p4";

/// Bytes of a frame before the payload.
const HEADERS: usize =
    ethernet::HEADER_LENGTH + ipv4::HEADER_LENGTH + udp::HEADER_LENGTH + multicast::HEADER_LENGTH;

/// Bursts before the first round, of a round, and rounds, whose median counts.
const WARM: usize = 200;
const BURSTS: usize = 1_000;
const ROUNDS: usize = 9;

/// A load of the leader that is measured.
struct Load {
    name: &'static str,
    receivers: usize,
    groups: usize,
    /// Messages of a burst that address all groups.
    shared: usize,
    answers: Answers,
}

const LOADS: [Load; 4] = [
    Load {
        name: "one group",
        receivers: 3,
        groups: 1,
        shared: 0,
        answers: Answers::InTurn,
    },
    Load {
        name: "one group, each DELIVER answered",
        receivers: 3,
        groups: 1,
        shared: 0,
        answers: Answers::Each,
    },
    Load {
        name: "one group, one receiver",
        receivers: 1,
        groups: 1,
        shared: 0,
        answers: Answers::Each,
    },
    Load {
        name: "half to two groups",
        receivers: 3,
        groups: 2,
        shared: BURST / 2,
        answers: Answers::InTurn,
    },
];

/// Figures of one round, in ns a message.
#[derive(Clone, Copy, Default)]
struct Round {
    kinds: [f64; KINDS],
    leader: f64,
    follower: f64,
    relay: f64,
}

/// A switch that sends each frame on.
fn relay(compiled: &Compiled) -> Node {
    let address = receiver_address(0, 0).to_bits().into();
    let entry = Entry {
        keys: vec![KeyMatch::Exact(BigUint::from(IN))],
        priority: 0,
        action: "send".into(),
        data: [TO_RECEIVERS.into(), 2, 1, address, multicast::PORT.into()]
            .map(|it: u64| BigUint::from(it))
            .to_vec(),
    };
    Node::new(compiled, &[("hops", entry)])
}

/// Measures leaders with STARTs in frames of `length` bytes.
///
/// # Panics
///
/// If that is shorter than the headers.
pub fn run(report: &mut Report, length: usize) {
    let program = Compiled::new(compile(PROGRAM)).expect("the program loads");
    let relay_program = Compiled::new(compile(RELAY_PROGRAM)).expect("the program loads");
    for load in LOADS {
        let mut relay = relay(&relay_program);
        let of = Deployment {
            groups: load.groups,
            receivers: load.receivers,
            sessions: 32,
            lanes: 8,
        };
        let mut groups = Groups::new(&program, of, load.answers, length - HEADERS);
        for _ in 0..WARM {
            groups.burst(load.shared, Some(&mut relay));
        }
        let mut rounds = [Round::default(); ROUNDS];
        for round in &mut rounds {
            groups.reset();
            for _ in 0..BURSTS {
                groups.burst(load.shared, Some(&mut relay));
            }
            let messages = (BURSTS * BURST) as f64;
            let work = &groups.work[0];
            *round = Round {
                kinds: work.ns.map(|ns| ns / messages),
                leader: work.total() / messages,
                follower: groups.work[1].total() / messages,
                relay: groups.relayed / messages,
            };
        }
        groups.check();
        let median = |of: &dyn Fn(&Round) -> f64| {
            let mut all: Vec<f64> = rounds.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[ROUNDS / 2]
        };
        let name = format!("{}, {length} B", load.name);
        let limit = median(&|round| round.relay);
        let leader = median(&|round| round.leader);
        report.add(&name, 1e9 / leader, "relay", 1e9 / limit);
        for (kind, called) in [
            (Kind::Start, "START"),
            (Kind::Ack, "ACKs"),
            (Kind::Leader, "of leaders"),
            (Kind::Received, "RECEIVED"),
            (Kind::Held, "held copies"),
        ] {
            let ns = median(&|round| round.kinds[kind as usize]);
            if ns > 0.0 {
                report.measure(&format!("{name}, {called}"), "ns", ns, "relay", limit);
            }
        }
        let follower = median(&|round| round.follower);
        report.measure(
            &format!("{name}, a follower"),
            "ns",
            follower,
            "relay",
            limit,
        );
    }
}
