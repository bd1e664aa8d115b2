//! Packets per second of programs in memory on one core: machine code against the same
//! job written by hand and against the interpreter, replication against none, and
//! lookups against the size of their table.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads clocks")]

use num_bigint::BigUint;
use stateplane_bench::chain::Chain;
use stateplane_bench::engine::Alone;
use stateplane_bench::limit::{Acl, Forward, Job, Lease, Nat, NextHop, Rule, Sketch, Stations};
use stateplane_bench::switch::{Bench, compile};
use stateplane_bench::{Report, Sample, frame, timed};
use stateplane_interp::Interp;
use stateplane_native::Native;
use stateplane_target::{Engine, Entry, KeyMatch, TargetState};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;

const NAT_STORE: &str = include_str!("../../../lab/nat/store.toml");
const NAT_UNPROTECTED: &str = include_str!("../../../lab/nat/switch-unprotected.toml");
const NAT_SWITCH: &str = include_str!("../../../lab/nat/switch.toml");

const NOW: u64 = 1_000_000;
/// Frames that come together.
const BURST: usize = 32;

/// A sequence of numbers that is the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn native(program: &str) -> Alone<Native> {
    let engine = Native::new(compile(program), Default::default()).expect("the program loads");
    Alone { engine, now: NOW }
}

fn interp(program: &str) -> Alone<Interp> {
    let engine = Interp::new(compile(program), Default::default()).expect("the program loads");
    Alone { engine, now: NOW }
}

fn insert(
    state: &mut TargetState,
    table: &str,
    keys: Vec<KeyMatch>,
    priority: u32,
    action: &str,
    data: &[u64],
) {
    let entry = Entry {
        keys,
        priority,
        action: action.to_owned(),
        data: data.iter().map(|value| BigUint::from(*value)).collect(),
    };
    state
        .table_mut(table)
        .and_then(|table| table.insert(&entry))
        .expect("an entry");
}

fn exact(value: u64) -> KeyMatch {
    KeyMatch::Exact(BigUint::from(value))
}

/// Frames through a job, over and over.
fn work<'a>(job: &'a mut impl Job, frames: &'a [Vec<u8>]) -> impl FnMut() -> Sample + 'a {
    let mut out = Vec::new();
    move || {
        timed(|| {
            let mut passed = 0;
            for burst in frames.chunks(BURST) {
                for frame in burst {
                    job.announce(0, frame);
                }
                for frame in burst {
                    if job
                        .frame(0, std::hint::black_box(frame), &mut out)
                        .is_some()
                    {
                        passed += u64::from(!std::hint::black_box(&out).is_empty());
                    }
                }
            }
            std::hint::black_box(passed);
            frames.len() as u64
        })
    }
}

/// Whether two jobs do the same to frames.
fn check(name: &str, one: &mut impl Job, other: &mut impl Job, frames: &[Vec<u8>]) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let mut passed = 0;
    for (number, frame) in frames.iter().enumerate() {
        let first = one.frame(0, frame, &mut a);
        let second = other.frame(0, frame, &mut b);
        assert_eq!(
            first, second,
            "{name}: port of frame {number}: {frame:02x?}"
        );
        if first.is_some() {
            assert_eq!(a, b, "{name}: frame {number}");
            passed += 1;
        }
    }
    assert!(
        passed * 2 > frames.len(),
        "{name}: only {passed} of {} frames pass",
        frames.len()
    );
}

/// All comparisons of one program.
fn program(
    report: &mut Report,
    name: &str,
    frames: &[Vec<u8>],
    native: &mut impl Job,
    interp: &mut impl Job,
    limit: &mut impl Job,
) {
    check(name, interp, limit, frames);
    check(name, interp, native, frames);
    report.compare(
        name,
        work(native, frames),
        "hand-written",
        work(limit, frames),
    );
    report.compare(
        name,
        work(native, frames),
        "interpreter",
        work(interp, frames),
    );
}

fn flows(number: usize, mut address: impl FnMut(usize) -> (Ipv4Addr, Ipv4Addr)) -> Vec<Vec<u8>> {
    (0..number)
        .map(|flow| {
            let (from, to) = address(flow);
            let source = SocketAddrV4::new(from, 40_000 + (flow % 20_000) as u16);
            frame::tcp(source, SocketAddrV4::new(to, 5201), 60)
        })
        .collect()
}

fn forward(report: &mut Report) {
    let mut numbers = Numbers(1);
    let mut routes: Vec<(u32, u32, u32)> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    while routes.len() < 10_000 {
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
    let hops: Vec<(u16, NextHop)> = (0..64)
        .map(|hop: u16| {
            let mut addresses = [2; 12];
            addresses[5] = hop as u8;
            addresses[11] = hop as u8 + 100;
            let port = hop % 8;
            (hop, NextHop { port, addresses })
        })
        .collect();
    let fill = |state: &mut TargetState| {
        for (address, length, hop) in &routes {
            let key = KeyMatch::Prefix {
                value: BigUint::from(*address),
                length: *length,
            };
            insert(state, "routes", vec![key], 0, "route", &[u64::from(*hop)]);
        }
        for (number, hop) in &hops {
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
            insert(
                state,
                "next_hops",
                vec![exact(u64::from(*number))],
                0,
                "send",
                &data,
            );
        }
    };
    let frames = flows(4096, |_| {
        let (address, length, _) = routes[numbers.below(10_000) as usize];
        let host = (numbers.next() as u32).checked_shr(length).unwrap_or(0);
        (
            Ipv4Addr::from(numbers.next() as u32),
            Ipv4Addr::from(address | host),
        )
    });
    let (mut native, mut interp) = (native("bench/p4/forward.p4"), interp("bench/p4/forward.p4"));
    fill(native.engine.state_mut());
    fill(interp.engine.state_mut());
    let mut limit = Forward::new(&routes, &hops);
    program(
        report,
        "L3, 10k routes",
        &frames,
        &mut native,
        &mut interp,
        &mut limit,
    );
}

fn acl(report: &mut Report) {
    let mut numbers = Numbers(2);
    let mut rules = Vec::new();
    for priority in 1..=1000u32 {
        let lengths = [8u32, 16, 24, 32];
        let prefix = |numbers: &mut Numbers| {
            let length = lengths[numbers.below(4) as usize];
            let mask = u32::MAX << (32 - length);
            let address = 0x0a00_0000 | numbers.below(1 << 20) as u32;
            (address & mask, mask)
        };
        let port = |numbers: &mut Numbers| match numbers.below(3) {
            0 => (numbers.below(1024) as u32, 0xffff),
            _ => (0, 0),
        };
        let protocol = match numbers.below(3) {
            0 => (0, 0),
            1 => (6, 0xff),
            _ => (17, 0xff),
        };
        let (source, destination) = (prefix(&mut numbers), prefix(&mut numbers));
        let (source_port, destination_port) = (port(&mut numbers), port(&mut numbers));
        rules.push(Rule {
            fields: [source, destination, protocol, source_port, destination_port],
            priority,
            port: (numbers.below(10) > 0).then_some(1),
        });
    }
    rules.push(Rule {
        fields: [(0, 0); 5],
        priority: 0,
        port: Some(2),
    });
    // Priorities begin with 1.
    for rule in &mut rules {
        rule.priority += 1;
    }
    let mut seen = std::collections::BTreeSet::new();
    let fill = |state: &mut TargetState| {
        for rule in &rules {
            let keys = rule.fields.iter().map(|(value, mask)| KeyMatch::Mask {
                value: BigUint::from(*value),
                mask: BigUint::from(*mask),
            });
            let keys = keys.collect();
            let priority = rule.priority;
            match rule.port {
                Some(port) => insert(state, "rules", keys, priority, "permit", &[u64::from(port)]),
                None => insert(state, "rules", keys, priority, "deny", &[]),
            }
        }
    };
    seen.insert(0);
    let frames = flows(4096, |_| {
        let mut host = || Ipv4Addr::from(0x0a00_0000 | numbers.below(1 << 20) as u32);
        (host(), host())
    });
    let (mut native, mut interp) = (native("bench/p4/acl.p4"), interp("bench/p4/acl.p4"));
    fill(native.engine.state_mut());
    fill(interp.engine.state_mut());
    let mut limit = Acl::new(&rules);
    program(
        report,
        "ternary ACL, 1k rules",
        &frames,
        &mut native,
        &mut interp,
        &mut limit,
    );
}

fn sketch(report: &mut Report) {
    let mut numbers = Numbers(3);
    let frames = flows(4096, |_| {
        // Few sources send most.
        let source = numbers.below(1000) * numbers.below(1000) / 1000;
        (
            Ipv4Addr::from(0x0a00_0000 | source as u32),
            Ipv4Addr::new(10, 9, 8, 7),
        )
    });
    let (mut native, mut interp) = (native("bench/p4/sketch.p4"), interp("bench/p4/sketch.p4"));
    let mut limit = Sketch::default();
    program(
        report,
        "count-min sketch",
        &frames,
        &mut native,
        &mut interp,
        &mut limit,
    );
}

fn scaling(report: &mut Report) {
    let mut per_size = Vec::new();
    for entries in [10u64, 1000, 100_000, 1_000_000] {
        let mut numbers = Numbers(4);
        let address = |station: u64| (station.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 16;
        let mut native = native("bench/p4/exact.p4");
        let state = native.engine.state_mut();
        for station in 0..entries {
            insert(
                state,
                "stations",
                vec![exact(address(station))],
                0,
                "send",
                &[station % 8],
            );
        }
        let mut limit =
            Stations::new((0..entries).map(|station| (address(station), (station % 8) as u16)));
        let template = flows(1, |_| (Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST)).remove(0);
        let frames: Vec<Vec<u8>> = (0..100_000)
            .map(|_| {
                let mut frame = template.clone();
                let station = address(numbers.below(entries));
                frame[..6].copy_from_slice(&station.to_be_bytes()[2..]);
                frame
            })
            .collect();
        check("exact", &mut native, &mut limit, &frames);
        let name = format!("exact lookup, {entries} entries");
        report.compare(
            &name,
            work(&mut native, &frames),
            "hand-written",
            work(&mut limit, &frames),
        );
        let bytes = native.engine.lookup_bytes("Process.stations").unwrap_or(0);
        per_size.push((entries, bytes as u64 / entries));
    }
    for (entries, bytes) in per_size {
        println!("exact table of {entries}: {bytes} bytes each for lookups");
    }
}

/// The interpreter's and the machine code's switch with a program and its file.
fn switches(name: &str, config: &str) -> (Bench<Native>, Bench<Interp>) {
    let native = Native::new(compile(name), Default::default()).expect("the program loads");
    let interp = Interp::new(compile(name), Default::default()).expect("the program loads");
    (Bench::new(native, config), Bench::new(interp, config))
}

/// The NAT, on the way out, of flows that are known.
fn nat(report: &mut Report) {
    let config = NAT_SWITCH.replace("${id}", "1");
    let destination = Ipv4Addr::new(198, 51, 100, 18);
    let frames: Vec<Vec<u8>> = (0..1024u16)
        .map(|flow| {
            let source = SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, 2), 40_000 + flow);
            frame::tcp(source, SocketAddrV4::new(destination, 5201), 60)
        })
        .collect();
    let mut local = NAT_UNPROTECTED.to_owned();
    for (variable, value) in [
        ("id", "1"),
        ("other", "2"),
        ("other_half", "1"),
        ("first_port", "1024"),
        ("last_port", "32767"),
    ] {
        local = local.replace(&format!("${{{variable}}}"), value);
    }
    let (mut own, mut own_interp) = switches("p4/apps/nat/unprotected.p4", &local);
    let (mut kept, mut kept_interp) = switches("p4/apps/nat/nat.p4", &config);
    let mut chain = Chain::new(NAT_STORE, 3);
    assert_eq!(kept.converse(&mut chain, &frames), frames.len());
    let mut chain = Chain::new(NAT_STORE, 3);
    assert_eq!(kept_interp.converse(&mut chain, &frames), frames.len());
    for (name, native, interp) in [
        ("NAT without replication", &mut own, &mut own_interp),
        ("NAT with replication", &mut kept, &mut kept_interp),
    ] {
        let mut limit = Nat::new(
            u32::from(Ipv4Addr::new(203, 0, 113, 1)),
            &[(u32::from(destination) & 0xffff_ff00, 24, 0)],
            &[NextHop {
                port: 1,
                addresses: [2, 0, 0, 0, 0xb2, 1, 2, 0, 0, 0, 0xa1, 1],
            }],
        );
        limit.now = native.now;
        let deadline = name.ends_with("with replication").then_some(u64::MAX);
        // What the first packets got is what the hand-written NAT is told.
        for (flow, frame) in frames.iter().enumerate() {
            native.frame(0, frame, |port, sent| {
                // Probes of the store may come first.
                if port != 1 {
                    return;
                }
                let word = |at: usize| u16::from_be_bytes([sent[at], sent[at + 1]]);
                let lease = Lease {
                    deadline,
                    used: 0,
                    address: u32::from(word(26)) << 16 | u32::from(word(28)),
                    port: word(34),
                };
                limit.learn(6, 0x0a00_0102, 40_000 + flow as u16, lease);
            });
            interp.frame(0, frame, |_, _| {});
        }
        check(name, native, &mut limit, &frames);
        if name == "NAT without replication" {
            check(name, interp, &mut limit, &frames);
        }
        report.compare(
            name,
            work(&mut native.engine(), &frames),
            "hand-written",
            work(&mut limit, &frames),
        );
        report.compare(
            name,
            work(&mut native.engine(), &frames),
            "interpreter",
            work(&mut interp.engine(), &frames),
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
    report.compare(
        "NAT with replication, whole switch",
        work(&mut kept, &frames),
        "unreplicated",
        work(&mut own, &frames),
    );
}

/// Time from source to running.
fn loading() {
    for (name, lines) in [("p4/apps/nat/nat.p4", 1700), ("bench/p4/forward.p4", 170)] {
        let mut times: Vec<_> = (0..9)
            .map(|_| {
                let start = Instant::now();
                let program = compile(name);
                let checked = start.elapsed();
                let engine = Native::new(program, Default::default()).expect("the program loads");
                let all = start.elapsed();
                drop(engine);
                (all, checked)
            })
            .collect();
        times.sort();
        let (all, checked) = times[times.len() / 2];
        println!(
            "{name}, {lines} lines: {all:?} from source to running, of which {checked:?} to check it"
        );
    }
}

fn main() -> std::io::Result<()> {
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name);
    let mut report = Report::new("pipeline", "packets/s");
    for (name, run) in [
        ("forward", forward as fn(&mut Report)),
        ("nat", nat),
        ("acl", acl),
        ("sketch", sketch),
        ("scaling", scaling),
    ] {
        if wanted(name) {
            run(&mut report);
        }
    }
    if wanted("loading") {
        loading();
    }
    report.finish()
}
