//! A count-min sketch.

use crate::work::program;
use crate::{Numbers, captures, engines, flows};
use stateplane_bench::Report;
use stateplane_bench::limit::Sketch;
use std::net::Ipv4Addr;

pub fn run(report: &mut Report) {
    let mut numbers = Numbers(3);
    let generated = flows(4096, |_| {
        // Few sources send most.
        let source = numbers.below(1000) * numbers.below(1000) / 1000;
        (
            Ipv4Addr::from(0x0a00_0000 | source as u32),
            Ipv4Addr::new(10, 9, 8, 7),
        )
    });
    for (name, frames) in [
        ("count-min sketch", Some(generated)),
        (
            "count-min sketch, capture",
            captures::frames(captures::MIXED),
        ),
        ("count-min sketch, flood", captures::frames(captures::FLOOD)),
    ] {
        let Some(frames) = frames else { continue };
        let (mut native, mut interp) = engines("bench/p4/sketch.p4", 0);
        let mut limit = <Sketch>::default();
        program(report, name, &frames, &mut native, &mut interp, &mut limit);
    }
}
