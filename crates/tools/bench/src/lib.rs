//! Benchmarks. Each figure stands beside a limit or a peer that is measured in the same
//! run, alternating with it, so that what the machine does besides falls on both; the
//! ratio of the two is what carries over to other machines.
//!
//! `cargo bench --package stateplane-bench` prints tables and writes
//! `target/bench/<name>.json`.

// A benchmark reads clocks.
#![allow(clippy::disallowed_methods)]

pub mod chain;
pub mod engine;
pub mod frame;
pub mod generate;
mod interval;
pub mod limit;
pub mod loopback;
mod measure;
mod numbers;
pub mod peers;
mod processor;
pub mod switch;
pub mod view;

pub use interval::{Interval, PAIRS, mean};
pub use measure::{Figure, Report, Sample, copy, resident, timed};
pub use numbers::Numbers;
pub use processor::stay_on;
