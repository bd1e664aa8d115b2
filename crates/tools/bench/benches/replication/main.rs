//! Writes to a store over loopback, one request in a datagram: requests per second and how
//! long each takes, beside datagrams of the same bytes that go through as many hops and
//! nothing else (`udp-echo`), and beside replicated writes of Redis (`redis-wait`) and etcd
//! at equal concurrency.
//!
//! Behind an answer of the store stands the memory of every replica of the chain;
//! `stateplane_bench::peers` says what stands behind those of others. Where one of them cannot be
//! had, its rows are missing, and a message says so.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use stateplane_bench::loopback::{Client, Store};
use stateplane_bench::peers::{Asked, Echo, Etcd, Redis};
use stateplane_bench::{Report, Sample};
use std::cell::RefCell;
use std::process::ExitCode;

/// Number of concurrent requests, of the store's client and of those of its peers.
const CONCURRENCY: usize = 64;

/// Bytes of a value: the state and the packet of a flow's write.
const VALUE: usize = 8 + 64;

/// Bytes of one datagram's entries between replicas.
const PACKED: usize = 1400;
/// A length that no entry keeps below, so that each travels alone.
const ALONE: usize = 1;

fn main() -> ExitCode {
    let mut report = Report::new("replication", "requests/s");
    for length in [1, 3] {
        for batch in [PACKED, ALONE] {
            if length == 1 && batch == ALONE {
                continue;
            }
            beside_echo(&mut report, length, batch);
        }
    }
    let store = Store::start(3, PACKED);
    let ours = RefCell::new(Client::of_store(store.head(), CONCURRENCY));
    let work = || ours.borrow_mut().round();
    match Redis::start(CONCURRENCY, VALUE) {
        Ok(mut redis) => {
            report.compare("write, chain of 3", work, "redis-wait", || {
                redis.round(Asked::Write)
            });
        }
        Err(reason) => println!("replication: without Redis: {reason}"),
    }
    for (name, sync) in [("etcd", true), ("etcd, no fsync", false)] {
        match Etcd::start(CONCURRENCY, sync, VALUE) {
            Ok(mut etcd) => {
                report.compare("write, chain of 3", work, name, || etcd.round(Asked::Write));
            }
            Err(reason) => println!("replication: without {name}: {reason}"),
        }
    }
    match report.finish() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("replication: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures a chain and an echo of as many hops in turn.
fn beside_echo(report: &mut Report, length: usize, batch: usize) {
    let store = Store::start(length, batch);
    let echo = Echo::start(length);
    let mut ours = Client::of_store(store.head(), CONCURRENCY);
    let mut theirs = Client::of_echo(echo.head(), CONCURRENCY);
    let name = match (length, batch) {
        (1, _) => "write, 1 replica".to_owned(),
        (_, ALONE) => format!("write, chain of {length}, one update a datagram"),
        _ => format!("write, chain of {length}"),
    };
    let work = || -> Sample { ours.round() };
    report.compare(&name, work, "udp-echo", || theirs.round());
    for (percentile, share) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
        let value = ours.latency(share);
        let against = theirs.latency(share);
        report.measure(
            &format!("{name}, {percentile}"),
            "µs",
            value,
            "udp-echo",
            against,
        );
    }
    let resent = ours.resent as f64 / ours.answered as f64;
    println!(
        "{name}: {:.4} % of the requests asked again",
        100.0 * resent
    );
}
