//! `stateplane eval hazards`: Fig. 1a to 1c of Cascone, Bifulco and Pontarelli, "Relaxing
//! constraints in stateful network data plane design" (2017), and the future work of its §3: locks
//! for flows, actions of mixed lengths, and latency, on captures.

mod experiments;
#[cfg(test)]
mod tests;
mod traces;

use crate::error::EvalError;
use crate::figure::Figure;
use crate::series;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use traces::Traces;

/// A figure of the paper, or a question of its §3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Sizes of packets.
    Fig1a,
    /// Hazards by depth, without a lock.
    Fig1b,
    /// Throughput by depth, under a global lock.
    Fig1c,
    /// Locks for flows.
    Locks,
    /// Actions of mixed lengths.
    Lengths,
    /// Latency by utilisation.
    Latency,
}

impl Experiment {
    /// All of them, in the paper's order.
    pub const ALL: [Self; 6] = [
        Self::Fig1a,
        Self::Fig1b,
        Self::Fig1c,
        Self::Locks,
        Self::Lengths,
        Self::Latency,
    ];
}

/// Options of the experiments.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Figures; all if none is named.
    #[arg(value_enum)]
    pub figures: Vec<Experiment>,
    /// Few packets and few depths, to check that everything works.
    #[arg(long)]
    pub quick: bool,
    /// Folder with packet-size-cdf.tsv and captures (pcap and pcapng).
    #[arg(long, value_name = "FOLDER", default_value = "../shared/traces")]
    pub traces: PathBuf,
    /// Folder for tables and plots, one within it for each figure.
    #[arg(long, default_value = "target/eval")]
    pub output: PathBuf,
    /// Print the figures as one JSON array.
    #[arg(long)]
    pub json: bool,
}

impl Options {
    /// Makes the experiments one after the other; each is written as soon as it is done. Without
    /// the folder of traces there is nothing to measure: a message says so, and no figure is made.
    pub(crate) fn run(&self) -> Result<Vec<Figure>, EvalError> {
        if !self.traces.is_dir() {
            eprintln!(
                "skipped: there is no folder {}; name one with --traces",
                self.traces.display()
            );
            return Ok(Vec::new());
        }
        let chosen = series::chosen(&self.figures, &Experiment::ALL);
        let traces = Traces::read(&self.traces, self.quick)?;
        series::make(chosen, &self.output, self.json, |experiment, bar| {
            experiments::run(experiment, &traces, self.quick, bar)
        })
    }
}
