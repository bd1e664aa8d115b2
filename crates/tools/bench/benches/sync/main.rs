//! Registers in view of the control plane: what a program pays for it in memory, and the Python package
//! beside p4runtime-shell, which read the same registers of the same switch while it counts packets.
//! Reads and resets by other clients are `stateplane eval approsync exp2 exp4`.
//!
//! `-- memory` or `python` measures one part. The rows of Python need `python3-venv` and PyPI; without
//! them a message says so and they are left out.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod link;
mod memory;
mod programs;
mod python;
mod rounds;

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
