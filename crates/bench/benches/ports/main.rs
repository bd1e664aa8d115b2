//! A NAT between veth pairs: frames per second without loss, and TCP throughput, through
//! the switch's ports and through Linux's own NAT (nftables) in the same run.
//!
//! One namespace sends, one translates, one receives; offloads are off everywhere. Needs
//! root, `ip`, `ethtool`, `nft` and `iperf3`; says so and writes nothing where they are
//! missing.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod flood;
mod nat;
mod network;

use flood::Flood;
use nat::Translator;
use network::Network;
use stateplane_bench::Report;
use std::process::ExitCode;

/// Searches for a rate without loss, and TCP runs, of each side; medians count.
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // This program takes every role, each in a namespace of its own.
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["flood", ..] => flood::run(&arguments[1..]),
        ["switch", access] => nat::run_switch(access),
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
    let sender = network.sender_limit();
    println!("ports: the sender alone reaches {sender:.0} frames/s");
    let mut frames = Report::new("ports", "packets/s");
    let mut streams = Report::new("ports-tcp", "Gb/s");
    for (name, translator) in [
        ("AF_XDP", Translator::Switch("xdp")),
        ("AF_PACKET", Translator::Switch("packet")),
    ] {
        let mut rates = [Vec::new(), Vec::new()];
        let mut speeds = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (at, side) in [translator, Translator::Kernel].into_iter().enumerate() {
                let running = match side.start(&network) {
                    Ok(running) => running,
                    Err(reason) => {
                        println!("ports: {name} skipped: {reason}");
                        break;
                    }
                };
                rates[at].push(Flood::search(&network, sender));
                speeds[at].push(network.tcp_gbps());
                running.stop();
            }
        }
        if rates[1].is_empty() {
            continue;
        }
        let [rate, kernel] = rates.map(median);
        frames.add(
            &format!("NAT through {name}, 60 B, less than 0.1 % lost"),
            rate,
            "kernel",
            kernel,
        );
        frames.add(
            &format!("sender alone, beside NAT through {name}"),
            sender,
            "the rate it offered",
            rate.max(kernel),
        );
        let [speed, kernel] = speeds.map(median);
        streams.add(&format!("TCP through NAT, {name}"), speed, "kernel", kernel);
    }
    for report in [frames, streams] {
        if let Err(error) = report.finish() {
            eprintln!("ports: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
