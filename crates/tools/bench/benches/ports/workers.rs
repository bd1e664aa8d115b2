//! Routing on two workers beside routing on one, by interfaces with two queues; all processes share the
//! processors.

use super::forwarder::{Job, Side};
use super::network::Network;
use super::turns::{flood_in_turns, routing};
use stateplane_bench::{Interval, PAIRS, Report, mean};

/// Accesses of the switch's ports, with their names in reports.
const ACCESSES: [(&str, &str); 2] = [("AF_XDP", "xdp"), ("AF_PACKET", "packet")];

/// TCP streams: enough that each worker has some.
const STREAMS: u32 = 8;

/// Measures both accesses: a flood that comes from one processor, and so by one queue, one that comes from both,
/// and TCP.
pub fn measure(networks: [&Network; 2], reports: &mut [Report; 2]) {
    for (name, access) in ACCESSES {
        for (senders, from) in [(1, "one queue"), (2, "two queues")] {
            let of = format!("routing through {name}, 2 workers, flooded by {from}");
            let measured = pairs(
                |own| {
                    let mut sides = [
                        routing(own[0], access, 2, senders)?,
                        routing(own[1], access, 1, senders)?,
                    ];
                    flood_in_turns(own, &mut sides)
                },
                networks,
            );
            report(&of, measured, |value, against| {
                reports[0].add(&of, value, "1 worker", against);
            });
        }
        let of = format!("TCP, routing through {name}, 2 workers");
        let measured = pairs(
            |own| {
                let mut gbps = [0.0; 2];
                for (side, workers) in [(0, 2), (1, 1)] {
                    let _switch = Side::Workers(access, workers).start(own[side], Job::Route)?;
                    gbps[side] = own[side].tcp_gbps(Job::Route, STREAMS);
                }
                Ok(gbps)
            },
            networks,
        );
        report(&of, measured, |value, against| {
            reports[1].measure(&of, "Gb/s", value, "1 worker", against);
        });
    }
}

/// Figures of two workers and of one, from pairs of measurements between which the networks change sides.
fn pairs(
    mut measure: impl FnMut([&Network; 2]) -> Result<[f64; 2], String>,
    networks: [&Network; 2],
) -> Result<[[f64; PAIRS]; 2], String> {
    let mut figures = [[0.0; PAIRS]; 2];
    for pair in 0..PAIRS {
        let [two, one] = measure([networks[pair % 2], networks[1 - pair % 2]])?;
        figures[0][pair] = two;
        figures[1][pair] = one;
    }
    Ok(figures)
}

/// Gives the means to `add` and prints the interval of their ratio, or why nothing was measured.
fn report(name: &str, measured: Result<[[f64; PAIRS]; 2], String>, mut add: impl FnMut(f64, f64)) {
    match measured {
        Ok([two, one]) => {
            add(mean(&two), mean(&one));
            let ratios = Interval::of(std::array::from_fn(|pair| two[pair] / one[pair]));
            println!("ports: {name} against 1 worker: {ratios}");
        }
        Err(reason) => println!("ports: {name} skipped: {reason}"),
    }
}
