//! Time from source to running.

use crate::Report;
use stateplane_bench::generate;
use stateplane_bench::switch::{compile, compile_text};
use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Native;
use std::time::{Duration, Instant};

fn median(mut run: impl FnMut() -> Duration) -> f64 {
    let mut times: Vec<Duration> = (0..9).map(|_| run()).collect();
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

fn compare(report: &mut Report, name: &str, compile: impl Fn() -> Program) {
    let native = median(|| {
        let start = Instant::now();
        let engine = Native::new(compile(), Default::default()).expect("the program loads");
        let spent = start.elapsed();
        drop(engine);
        spent
    });
    let interp = median(|| {
        let start = Instant::now();
        let engine = Interp::new(compile(), Default::default()).expect("the program loads");
        let spent = start.elapsed();
        drop(engine);
        spent
    });
    report.measure(name, "ms", native, "interpreter", interp);
}

pub fn run(report: &mut Report) {
    for (name, path) in [
        ("load nat.p4, 1,700 lines", "apps/nat/nat.p4"),
        ("load forward.p4, 170 lines", "bench/p4/forward.p4"),
    ] {
        compare(report, name, || compile(path));
    }
    let text = generate::program(14);
    let name = format!("load a generated program, {} lines", text.lines().count());
    compare(report, &name, || compile_text(&text));
}
