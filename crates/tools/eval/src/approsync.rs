//! `stateplane eval approsync`: the figures of Chen et al., "Toward Low-Latency and Accurate State
//! Synchronization for Programmable Networks" (IEEE/ACM Transactions on Networking, 2022), with this
//! project's sync, beside the paper's algorithms as printed, *Flow's cache and mirroring, each in P4
//! (`crates/tools/eval/p4/approsync`), all in virtual time.

mod accuracy;
mod bed;
mod overload;
mod programs;
mod resources;
#[cfg(test)]
mod tests;
mod traffic;

use crate::error::EvalError;
use crate::figure::Figure;
use crate::series;
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use std::path::PathBuf;

/// A figure of the paper's motivation, or an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Loss of mirroring by number of ports.
    Fig1b,
    /// Memory and code that sync adds to a program.
    Exp1,
    /// Accuracy of reads: updates sent, losses, sizes of tables, five times the budget.
    Exp3,
}

impl Experiment {
    /// All of them, in the paper's order.
    pub const ALL: [Self; 3] = [Self::Fig1b, Self::Exp1, Self::Exp3];
}

/// Options of the experiments.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Figures; all if none is named.
    #[arg(value_enum)]
    pub figures: Vec<Experiment>,
    /// Few sizes and little traffic, to check that everything works.
    #[arg(long)]
    pub quick: bool,
    /// Folder for tables and plots, one within it for each figure.
    #[arg(long, default_value = "target/eval")]
    pub output: PathBuf,
    /// Print the figures as one JSON array.
    #[arg(long)]
    pub json: bool,
}

/// Parts with which an experiment is made.
struct Making<'a> {
    quick: bool,
    bar: &'a ProgressBar,
}

impl Options {
    /// Makes the experiments one after the other; each is written as soon as it is done.
    pub(crate) fn run(&self) -> Result<Vec<Figure>, EvalError> {
        let chosen = series::chosen(&self.figures, &Experiment::ALL);
        series::make(chosen, &self.output, self.json, |experiment, bar| {
            let quick = self.quick;
            Making { quick, bar }.figure(experiment)
        })
    }
}

impl Making<'_> {
    fn figure(&self, experiment: Experiment) -> Result<Figure, EvalError> {
        let mut figure = match experiment {
            Experiment::Fig1b => accuracy::mirroring(self),
            Experiment::Exp1 => resources::run(self),
            Experiment::Exp3 => accuracy::reads(self),
        }?;
        figure.differs(
            "in memory and in virtual time: the switch is the core that ships, on machine code, and \
             the link to the control plane is a queue of 128 KiB that a rate of bytes empties",
        );
        figure.differs(
            "packets are drawn by Zipf's law with exponent 1.05, each counted at one location of a \
             counter array: the paper's trace (CAIDA, 2018) is not public",
        );
        if self.quick {
            figure.differs("few sizes and little traffic");
        }
        Ok(figure)
    }
}
