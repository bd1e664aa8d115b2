//! Forwarding between veth pairs: frames per second without loss, and TCP throughput,
//! through the switch's ports, by AF_XDP and by AF_PACKET, and through Linux doing the same
//! in the same run: a bridge, IP forwarding, and a NAT by nftables. A NAT with replication
//! is measured beside one without.
//!
//! One namespace sends, one forwards, one receives; offloads are off everywhere. The sender
//! has a core for itself. Needs root, `ip`, `ethtool`, `nft`, `iperf3`, `taskset` and two
//! cores; says so and writes nothing where they are missing. The jobs take about ten minutes;
//! `-- nat`, `bridge` or `route` measures one job. `-- workers` measures routing on two workers
//! beside routing on one, for which all processes share the cores (seven minutes). `-- view` measures programs
//! in view of the control plane beside the same ones as they are (six minutes). Both in ten pairs.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod flood;
mod forwarder;
mod network;
mod turns;
mod view;
mod workers;

use flood::Flood;
use forwarder::{Job, Side};
use network::{Network, Placement};
use stateplane_bench::Report;
use std::process::ExitCode;

/// Access of the switch's ports, with the name in reports.
const ACCESSES: [(&str, Side); 2] = [
    ("AF_XDP", Side::Switch("xdp")),
    ("AF_PACKET", Side::Switch("packet")),
];

/// Searches for a rate without loss, and TCP runs, of each contestant in turn; medians
/// count.
fn rounds(job: Job) -> usize {
    match job {
        Job::Nat => 5,
        _ => 3,
    }
}

/// Required ratio of the sender's rate to the measured rate.
const HEADROOM: f64 = 1.5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // This program takes every role, each in a namespace of its own.
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["flood", ..] => flood::run(&arguments[1..]),
        ["switch", job, access, workers] => forwarder::run_switch(job, access, workers),
        ["sender", processors] => turns::run_sender(processors),
        ["store"] => forwarder::run_store(),
        ["view-switch", program, how] => view::run_view_switch(program, how),
        ["view-engine", program] => view::run_view_engine(program),
        ["view-server"] => view::run_view_server(),
        ["view-client", program] => view::run_view_client(program),
        _ => return compare(&arguments),
    }
    ExitCode::SUCCESS
}

/// Compares the jobs that are named, or all if none is.
fn compare(arguments: &[&str]) -> ExitCode {
    let chosen = arguments.iter().filter(|name| !name.starts_with('-'));
    let chosen: Vec<&str> = chosen.copied().collect();
    if let Some(reason) = network::missing() {
        println!("ports: skipped: {reason}");
        return ExitCode::SUCCESS;
    }
    let network = Network::up("", Placement::Apart, 1);
    let mut reports = [("ports", "packets/s"), ("ports-tcp", "value")]
        .map(|(name, unit)| Report::new(name, unit));
    for job in [Job::Nat, Job::Bridge, Job::Route] {
        if chosen.is_empty() || chosen.contains(&job.name()) {
            measure(&network, job, &mut reports);
        }
    }
    if chosen.is_empty() || chosen.contains(&"view") {
        let other = Network::up("v", Placement::Apart, 1);
        view::measure([&network, &other], &mut reports);
    }
    drop(network);
    if chosen.is_empty() || chosen.contains(&"workers") {
        let networks = ["", "w"].map(|mark| Network::up(mark, Placement::Shared, 2));
        workers::measure([&networks[0], &networks[1]], &mut reports);
    }
    for report in reports {
        if let Err(error) = report.finish() {
            eprintln!("ports: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// An implementation of a job, and its measured throughput.
struct Contestant {
    job: Job,
    name: &'static str,
    side: Side,
    refused: bool,
    lossless: Vec<f64>,
    flooded: Vec<f64>,
    gbps: Vec<f64>,
}

impl Contestant {
    fn new(job: Job, name: &'static str, side: Side) -> Contestant {
        Contestant {
            job,
            name,
            side,
            refused: false,
            lossless: Vec::new(),
            flooded: Vec::new(),
            gbps: Vec::new(),
        }
    }

    /// Runs a round; prints once the reason if it cannot run.
    fn run(&mut self, network: &Network, sender: f64) {
        if self.refused {
            return;
        }
        let outcome = self.side.start(network, self.job).and_then(|running| {
            network.drop_frames(true);
            let passed = Flood::search(network, self.job, sender);
            network.drop_frames(false);
            let passed = passed.ok_or("nothing passes")?;
            let gbps = network.tcp_gbps(self.job, 1);
            drop(running);
            Ok((passed, gbps))
        });
        match outcome {
            Ok((passed, gbps)) => {
                self.lossless.push(passed.lossless);
                self.flooded.push(passed.flooded);
                self.gbps.push(gbps);
            }
            Err(reason) => {
                let title = self.job.title();
                println!("ports: {title} through {} skipped: {reason}", self.name);
                self.refused = true;
            }
        }
    }

    /// Adds its figures beside those of another.
    fn beside(&self, other: &Contestant, against: &str, reports: &mut [Report; 2]) {
        let title = format!("{} through {}", self.job.title(), self.name);
        let title = match other.side {
            Side::Kernel => format!("{title} (kernel: {})", self.job.peer()),
            Side::Switch(_) | Side::Workers(..) => title,
        };
        let lossless = format!("{title}, 60 B, less than 0.1 % lost");
        let flooded = format!("{title}, 60 B, flooded");
        let stream = format!("TCP, {title}");
        for (name, own, others) in [
            (lossless, &self.lossless, &other.lossless),
            (flooded, &self.flooded, &other.flooded),
        ] {
            if let (Some(own), Some(others)) = (median(own), median(others)) {
                reports[0].add(&name, own, against, others);
            }
        }
        if let (Some(own), Some(others)) = (median(&self.gbps), median(&other.gbps)) {
            reports[1].measure(&stream, "Gb/s", own, against, others);
        }
    }
}

/// Measures a job on all sides, a round of each after the other; NAT with replication
/// beside NAT without.
fn measure(network: &Network, job: Job, reports: &mut [Report; 2]) {
    let sender = network.sender_limit();
    let replicated = (job == Job::Nat).then_some(Job::ReplicatedNat);
    let mut contestants = vec![Contestant::new(job, "kernel", Side::Kernel)];
    for job in std::iter::once(job).chain(replicated) {
        contestants.extend(ACCESSES.map(|(name, side)| Contestant::new(job, name, side)));
    }
    for _ in 0..rounds(job) {
        for contestant in &mut contestants {
            contestant.run(network, sender);
        }
    }
    let (kernel, switches) = (&contestants[0], &contestants[1..]);
    for (at, switch) in switches.iter().enumerate() {
        match at.checked_sub(ACCESSES.len()) {
            None => switch.beside(kernel, "kernel", reports),
            Some(at) => switch.beside(&switches[at], "unreplicated", reports),
        }
    }
    let fastest = contestants.iter().filter_map(|c| median(&c.lossless));
    let fastest = fastest.fold(0.0, f64::max);
    let title = job.title();
    let named = format!("the sender of {title} alone");
    reports[0].add(&named, sender, "fastest forwarder", fastest);
    if sender < HEADROOM * fastest {
        println!(
            "ports: the sender reaches less than {HEADROOM} times the rate of {title}: it may be what limits it"
        );
    }
}

/// `None` where nothing was measured.
fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
