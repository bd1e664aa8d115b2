//! Forwarding between veth pairs: frames per second without loss, and TCP throughput,
//! through the switch's ports, by AF_XDP and by AF_PACKET, and through Linux doing the same
//! in the same run: a bridge, IP forwarding, and a NAT by nftables.
//!
//! One namespace sends, one forwards, one receives; offloads are off everywhere. Needs
//! root, `ip`, `ethtool`, `nft` and `iperf3`; says so and writes nothing where they are
//! missing. Takes about five minutes.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod flood;
mod forwarder;
mod network;

use flood::Flood;
use forwarder::{Job, Side};
use network::Network;
use stateplane_bench::Report;
use std::process::ExitCode;

/// Who does a job, with the name in reports; Linux is measured beside the others.
const SIDES: [(&str, Side); 3] = [
    ("AF_XDP", Side::Switch("xdp")),
    ("AF_PACKET", Side::Switch("packet")),
    ("kernel", Side::Kernel),
];

/// Searches for a rate without loss, and TCP runs, of each side in turn; medians count.
fn rounds(job: Job) -> usize {
    match job {
        Job::Nat => 5,
        Job::Bridge | Job::Route => 3,
    }
}

/// How far the sender should be ahead of what it measures.
const HEADROOM: f64 = 1.5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // This program takes every role, each in a namespace of its own.
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["flood", ..] => flood::run(&arguments[1..]),
        ["switch", job, access] => forwarder::run_switch(job, access),
        _ => return compare(),
    }
    ExitCode::SUCCESS
}

fn compare() -> ExitCode {
    if let Some(reason) = network::missing() {
        println!("ports: skipped: {reason}");
        return ExitCode::SUCCESS;
    }
    let network = Network::up();
    let mut frames = Report::new("ports", "packets/s");
    let mut streams = Report::new("ports-tcp", "Gb/s");
    for job in [Job::Nat, Job::Bridge, Job::Route] {
        measure(&network, job, &mut frames, &mut streams);
    }
    for report in [frames, streams] {
        if let Err(error) = report.finish() {
            eprintln!("ports: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Measures a job on all sides, a round of each after the other.
fn measure(network: &Network, job: Job, frames: &mut Report, streams: &mut Report) {
    let sender = network.sender_limit();
    let mut rates = [const { Vec::new() }; SIDES.len()];
    let mut speeds = [const { Vec::new() }; SIDES.len()];
    let mut refused = [false; SIDES.len()];
    for _ in 0..rounds(job) {
        for (at, (name, side)) in SIDES.into_iter().enumerate() {
            if refused[at] {
                continue;
            }
            let running = match side.start(network, job) {
                Ok(running) => running,
                Err(reason) => {
                    println!("ports: {} through {name} skipped: {reason}", job.title());
                    refused[at] = true;
                    continue;
                }
            };
            rates[at].push(Flood::search(network, job, sender));
            speeds[at].push(network.tcp_gbps(job));
            drop(running);
        }
    }
    let rates = rates.map(median);
    let speeds = speeds.map(median);
    let (Some(kernel_rate), Some(kernel_speed)) = (rates[2], speeds[2]) else {
        return;
    };
    let title = job.title();
    for (at, (name, _)) in SIDES[..2].iter().enumerate() {
        let (Some(rate), Some(speed)) = (rates[at], speeds[at]) else {
            continue;
        };
        let peer = job.peer();
        let named = format!("{title} through {name}, 60 B, less than 0.1 % lost (kernel: {peer})");
        frames.add(&named, rate, "kernel", kernel_rate);
        let named = format!("TCP, {title} through {name} (kernel: {peer})");
        streams.add(&named, speed, "kernel", kernel_speed);
    }
    let fastest = rates.into_iter().flatten().fold(0.0, f64::max);
    let named = format!("the sender of {title} alone");
    frames.add(&named, sender, "fastest forwarder", fastest);
    if sender < HEADROOM * fastest {
        println!(
            "ports: the sender reaches less than {HEADROOM} times the rate of {title}: it may be what limits it"
        );
    }
}

/// `None` where nothing was measured.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
