//! `stateplane eval approsync`: the figures of Chen et al., "Toward Low-Latency and Accurate State
//! Synchronization for Programmable Networks" (IEEE/ACM Transactions on Networking, 2022), with this
//! project's sync, beside the paper's algorithms as printed, *Flow's cache and mirroring, each in P4
//! (`crates/tools/eval/p4/approsync`), in virtual time, and beside P4Runtime on real time.

mod accuracy;
mod applications;
mod bed;
mod collected;
mod collector;
mod detection;
mod floods;
mod forwarding;
mod impact;
mod latency;
mod link;
mod overload;
mod packets;
mod plane;
mod programs;
mod resources;
mod served;
#[cfg(test)]
mod tests;
mod traffic;
mod turns;
mod viewed;
mod way;
mod ways;
mod write_accuracy;
mod writes;

pub use served::{Served, Subject, engine_file};

use crate::error::EvalError;
use crate::figure::Figure;
use crate::series;
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};

/// A figure of the paper's motivation, or an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Latency over the switch's operating system, by number of values.
    Fig1a,
    /// Loss of mirroring by number of ports.
    Fig1b,
    /// Heavy hitters that are missed, by latency of collection and by loss.
    Fig2,
    /// Errors of applications by divergence.
    Fig3,
    /// Memory and code that sync adds to a program.
    Exp1,
    /// Latency of reads by number of values, beside P4Runtime.
    Exp2,
    /// Accuracy of reads: updates sent, losses, sizes of tables, five times the budget.
    Exp3,
    /// Writes and resets by number of values and by loss.
    Exp4,
    /// HashPipe while its state is written.
    Exp5,
    /// Effect of reads and writes on forwarding.
    Exp6,
    /// Reads and resets of the applications of Table II.
    Exp7,
    /// The collector of sketches: latency, completeness, errors, queries on captures.
    Exp8,
    /// Detections on collected sketches, by rate of traffic.
    Exp9,
    /// Prevention of UDP floods.
    Exp10,
}

impl Experiment {
    /// All of them, in the paper's order.
    pub const ALL: &'static [Self] = &[
        Self::Fig1a,
        Self::Fig1b,
        Self::Fig2,
        Self::Fig3,
        Self::Exp1,
        Self::Exp2,
        Self::Exp3,
        Self::Exp4,
        Self::Exp5,
        Self::Exp6,
        Self::Exp7,
        Self::Exp8,
        Self::Exp9,
        Self::Exp10,
    ];

    /// True if it is made with the switch of [`bed`].
    const fn has_bed(self) -> bool {
        matches!(self, Self::Fig1b | Self::Exp1 | Self::Exp3)
    }

    /// True if it is made with the switch of [`collected`].
    const fn is_collected(self) -> bool {
        use Experiment::{Exp5, Exp7, Exp8, Exp9, Exp10};
        matches!(self, Exp5 | Exp7 | Exp8 | Exp9 | Exp10)
    }
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
    /// Folder with captures (pcap), beside drawn traffic; without it they are left out.
    #[arg(long, value_name = "FOLDER", default_value = "../shared/traces")]
    pub traces: PathBuf,
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
    /// Folder with captures.
    traces: &'a Path,
    bar: &'a ProgressBar,
}

impl Options {
    /// Makes the experiments one after the other; each is written as soon as it is done.
    pub(crate) fn run(&self) -> Result<Vec<Figure>, EvalError> {
        let chosen = series::chosen(&self.figures, Experiment::ALL);
        series::make(chosen, &self.output, self.json, |experiment, bar| {
            let making = Making {
                quick: self.quick,
                traces: &self.traces,
                bar,
            };
            making.figure(experiment)
        })
    }
}

impl Making<'_> {
    fn figure(&self, experiment: Experiment) -> Result<Figure, EvalError> {
        let mut figure = match experiment {
            Experiment::Fig1a => latency::os_path(self),
            Experiment::Fig1b => accuracy::mirroring(self),
            Experiment::Fig2 => impact::missed(self),
            Experiment::Fig3 => impact::divergence(self),
            Experiment::Exp1 => resources::run(self),
            Experiment::Exp2 => latency::reads(self),
            Experiment::Exp3 => accuracy::reads(self),
            Experiment::Exp4 => writes::run(self),
            Experiment::Exp5 => write_accuracy::run(self),
            Experiment::Exp6 => forwarding::run(self),
            Experiment::Exp7 => applications::run(self),
            Experiment::Exp8 => collector::run(self),
            Experiment::Exp9 => detection::run(self),
            Experiment::Exp10 => floods::run(self),
        }?;
        if experiment.has_bed() {
            figure.differs(
                "in memory and in virtual time: the switch is the core that ships, on machine code, and \
                 the link to the control plane is a queue of 128 KiB that a rate of bytes empties",
            );
            figure.differs(
                "packets are drawn by Zipf's law with exponent 1.05, each counted at one location of a \
                 counter array: the paper's trace (CAIDA, 2018) is not public",
            );
        }
        if experiment.is_collected() {
            figure.differs(
                "in memory and in virtual time: the switch is the core that ships, on machine code, its engines \
                 are those that ship, and the link between them has a queue of 128 KiB in each direction; \
                 packets are drawn, or those of captures: the paper's trace (CAIDA, 2018) is not public",
            );
        }
        if self.quick {
            figure.differs("few sizes and little traffic");
        }
        Ok(figure)
    }
}
