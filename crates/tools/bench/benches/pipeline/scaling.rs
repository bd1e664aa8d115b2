//! Lookups and memory by the size of a table.

use crate::work::{check, work};
use crate::{Numbers, acl, engines, exact, flows, forward, insert};
use stateplane_bench::Report;
use stateplane_bench::engine::Alone;
use stateplane_bench::limit::{Acl, Forward, Job, Stations};
use stateplane_bench::switch::compile;
use stateplane_native::Native;
use stateplane_runtime::Engine;
use std::net::Ipv4Addr;

const SIZES: [u64; 4] = [10, 1000, 100_000, 1_000_000];

/// Rules up to which they are compared with bit vectors by hand: more would take gigabytes
/// there.
const MOST_VECTORS: u64 = 1000;

pub fn exact_keys(report: &mut Report) {
    for entries in SIZES {
        let mut numbers = Numbers(4);
        let address = |station: u64| (station.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 16;
        let (mut native, _) = engines("bench/p4/exact.p4", entries);
        let state = native.engine.state_mut();
        for station in 0..entries {
            let key = vec![exact(address(station))];
            insert(state, "stations", key, 0, "send", &[station % 8]);
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
        let lookup = Lookup {
            name: format!("exact lookup, {entries} entries"),
            table: "Process.stations",
            entries,
        };
        let by_hand = limit.bytes();
        lookup.measure(report, &mut native, &mut limit, by_hand, &frames);
    }
}

pub fn prefixes(report: &mut Report) {
    for entries in SIZES {
        let mut numbers = Numbers(5);
        let routes = forward::routes(&mut numbers, entries as usize);
        let hops = forward::hops();
        let (mut native, _) = engines(forward::PROGRAM, entries);
        forward::fill(native.engine.state_mut(), &routes, &hops);
        let mut limit = Forward::new(&routes, &hops);
        let frames = forward::frames(&mut numbers, &routes, 100_000);
        let lookup = Lookup {
            name: format!("longest prefix, {entries} entries"),
            table: "Process.routes",
            entries,
        };
        let by_hand = limit.bytes();
        lookup.measure(report, &mut native, &mut limit, by_hand, &frames);
    }
}

pub fn ternary(report: &mut Report) {
    for entries in SIZES {
        let mut numbers = Numbers(6);
        // One rule is for what the others leave.
        let rules = acl::rules(&mut numbers, entries as u32 - 1);
        let frames = acl::frames(&mut numbers, 4096);
        let (mut native, mut interp) = engines(acl::PROGRAM, entries);
        acl::fill(native.engine.state_mut(), &rules);
        let lookup = Lookup {
            name: format!("ternary lookup, {entries} entries"),
            table: "Process.rules",
            entries,
        };
        if entries <= MOST_VECTORS {
            let mut limit = Acl::new(&rules);
            let by_hand = limit.bytes();
            lookup.measure(report, &mut native, &mut limit, by_hand, &frames);
        } else {
            acl::fill(interp.engine.state_mut(), &rules);
            // The interpreter compares with one entry after the other.
            let few = &frames[..(640_000 / entries).clamp(4, 64) as usize];
            check(&lookup.name, &mut native, &mut interp, few);
            report.compare(
                &lookup.name,
                work(&mut native, &frames),
                "interpreter",
                work(&mut interp, few),
            );
        }
    }
}

/// A table of some size.
struct Lookup {
    name: String,
    table: &'static str,
    entries: u64,
}

impl Lookup {
    /// The rate beside that of the same job by hand, whose entries take `by_hand` bytes in
    /// all, and the bytes of an entry.
    fn measure(
        &self,
        report: &mut Report,
        native: &mut Alone<Native>,
        limit: &mut impl Job,
        by_hand: usize,
        frames: &[Vec<u8>],
    ) {
        check(&self.name, native, limit, frames);
        report.compare(
            &self.name,
            work(native, frames),
            "hand-written",
            work(limit, frames),
        );
        let bytes = native.engine.lookup_bytes(self.table).expect("the table");
        report.measure(
            &format!("{}, memory", self.name),
            "bytes",
            bytes as f64 / self.entries as f64,
            "hand-written",
            by_hand as f64 / self.entries as f64,
        );
    }
}

/// Bytes of registers that a flow of the NAT takes.
pub fn flow_memory(report: &mut Report) {
    let bytes = |path: &str, registers: &[&str]| -> f64 {
        let engine = Native::new(compile(path), Default::default()).expect("the program loads");
        let mut strides = Vec::new();
        for name in registers {
            let register = engine.state().register(name).expect("the register");
            let placement = register.placement();
            // Registers of one length share their elements.
            strides.push((placement.base, placement.stride));
        }
        strides.sort_unstable();
        strides.dedup();
        strides.iter().map(|(_, stride)| *stride as f64).sum()
    };
    report.measure(
        "memory of a flow, NAT with replication",
        "bytes",
        bytes("apps/nat/nat.p4", &["slot_key"]),
        "unreplicated",
        bytes(
            "apps/nat/unprotected.p4",
            &["outbound_key", "outbound_port", "inbound_endpoint"],
        ),
    );
}
