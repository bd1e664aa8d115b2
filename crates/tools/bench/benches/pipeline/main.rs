//! Programs in memory on one core, engine alone: packets per second and how the time for a
//! packet is spread, of machine code against the same job written by hand and against the
//! interpreter; replication against none; lookups against the size of their table; the
//! memory that flows and entries take; the time from source to running.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads clocks")]

mod acl;
mod captures;
mod forward;
mod lapse;
mod loading;
mod nat;
mod scaling;
mod sketch;
mod work;

use num_bigint::BigUint;
use stateplane_bench::engine::Alone;
use stateplane_bench::switch::compile;
use stateplane_bench::{Numbers, Report, frame};
use stateplane_interp::Interp;
use stateplane_native::Native;
use stateplane_runtime::{Entry, KeyMatch, TargetState};
use std::net::{Ipv4Addr, SocketAddrV4};

const NOW: u64 = 1_000_000;
/// Machine code and interpreter of a program, in which tables have room for `entries`.
fn engines(path: &str, entries: u64) -> (Alone<Native>, Alone<Interp>) {
    let mut program = compile(path);
    for table in &mut program.tables {
        table.size = table.size.max(entries);
    }
    let interp = Interp::new(program.clone(), Default::default()).expect("the program loads");
    let native = Native::new(program, Default::default()).expect("the program loads");
    let alone = Alone {
        engine: native,
        now: NOW,
    };
    let reference = Alone {
        engine: interp,
        now: NOW,
    };
    (alone, reference)
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

/// The key of a route.
fn prefix_key(value: u32, length: u32) -> Vec<KeyMatch> {
    vec![KeyMatch::Prefix {
        value: BigUint::from(value),
        length,
    }]
}

fn exact(value: u64) -> KeyMatch {
    KeyMatch::Exact(BigUint::from(value))
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

fn main() -> std::io::Result<()> {
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name);
    let mut report = Report::new("pipeline", "packets/s");
    for (name, run) in [
        ("forward", forward::run as fn(&mut Report)),
        ("nat", nat::run),
        ("lapse", lapse::run),
        ("acl", acl::run),
        ("sketch", sketch::run),
        ("exact", scaling::exact_keys),
        ("prefixes", scaling::prefixes),
        ("ternary", scaling::ternary),
        ("memory", scaling::flow_memory),
        ("loading", loading::run),
    ] {
        if wanted(name) {
            run(&mut report);
        }
    }
    report.finish()
}
