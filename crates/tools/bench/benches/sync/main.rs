//! A view at the control plane beside P4Runtime, which reads the same registers of the same switch
//! while it counts packets; writes and resets; and what a program pays for being in view.
//!
//! One thread is the switch: it takes frames of 2^16 sources at a steady rate, serves P4Runtime as
//! `stateplane run` does, and its control port is a UDP socket of the loopback interface. The engine
//! is the one that ships, clients speak gRPC to it from another thread. Values are of 64 bits.
//! Times are medians of single operations, which alternate with those of what they are compared with.
//!
//! `-- memory`, `reads`, `resets` or `python` measures one part. The rows of Python need
//! `python3-venv` and PyPI; without them a message says so and they are left out.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod link;
mod memory;
mod programs;
mod python;
mod reads;
mod resets;
mod rounds;
mod served;

use stateplane_bench::Report;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let chosen: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|name| !name.starts_with('-'))
        .collect();
    let wanted = |part: &str| chosen.is_empty() || chosen.contains(&part);
    let mut report = Report::new("sync", "values/s");
    if wanted("memory") {
        memory::run(&mut report);
    }
    if wanted("reads") {
        reads::run(&mut report);
    }
    if wanted("resets") {
        resets::run(&mut report);
    }
    if wanted("python") {
        python::run(&mut report);
    }
    match report.finish() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sync: {error}");
            ExitCode::FAILURE
        }
    }
}
