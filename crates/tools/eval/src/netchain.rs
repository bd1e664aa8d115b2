//! `stateplane eval netchain`: Fig. 9 to 11 of Jin et al., "NetChain: Scale-Free Sub-RTT
//! Coordination" (NSDI 2018), with the switches and clients that ship, beside services of others.

mod agent;
mod algorithm3;
mod chains;
mod client;
mod contest;
mod failure;
mod lab;
mod latency;
mod order;
mod scale;
mod spine_leaf;
mod throughput;
mod transactions;

pub use agent::{AgentArguments, run as run_agent};
pub use client::{ClientArguments, run as run_client};

use crate::error::EvalError;
use crate::experiments::{Plan, TOO_SHORT};
use crate::figure::Figure;
use clap::{Args, ValueEnum};
use client::System;
use indicatif::{ProgressBar, ProgressStyle};
use lab::{Network, Place};
use stateplane_lab::{LabError, become_root, interrupt};
use std::path::PathBuf;

/// A figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Throughput by bytes of a value.
    Fig9a,
    /// Throughput by number of keys.
    Fig9b,
    /// Throughput by share of writes.
    Fig9c,
    /// Throughput by share of packets lost.
    Fig9d,
    /// Latency by throughput.
    Fig9e,
    /// Throughput by number of switches.
    Fig9f,
    /// Throughput over a failure and the recovery.
    Fig10,
    /// Transactions by contention.
    Fig11,
}

impl Experiment {
    /// All of them, in the paper's order.
    pub const ALL: [Self; 8] = [
        Self::Fig9a,
        Self::Fig9b,
        Self::Fig9c,
        Self::Fig9d,
        Self::Fig9e,
        Self::Fig9f,
        Self::Fig10,
        Self::Fig11,
    ];
}

/// Options of the experiments.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Figures; all if none is named.
    #[arg(value_enum)]
    pub figures: Vec<Experiment>,
    /// Number of runs of each measurement, one service after the other in each turn.
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// One short run of few settings, to check that everything works; its figures mean little.
    #[arg(long)]
    pub quick: bool,
    /// Services to compare with; all that can be had if none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub systems: Vec<System>,
    /// Folder for tables and plots, one within it for each figure.
    #[arg(long, default_value = "target/eval")]
    pub output: PathBuf,
    /// The lab's folder, with coordination.toml.
    #[arg(long, default_value = "lab")]
    pub lab: PathBuf,
    /// Folder for the logs of every process.
    #[arg(long, default_value = "target/lab")]
    pub logs: PathBuf,
    /// Print the figures as one JSON array.
    #[arg(long)]
    pub json: bool,
}

/// What an experiment is made with.
struct Setting<'a> {
    place: Place,
    plan: Plan,
    /// Services, that which is evaluated first.
    systems: Vec<System>,
    bar: &'a ProgressBar,
}

impl Options {
    /// Makes the experiments one after the other; each is written as soon as it is done.
    pub(crate) fn run(&self) -> Result<Vec<Figure>, EvalError> {
        if !(1..=1000).contains(&self.runs) {
            return Err(EvalError::Options("--runs must be 1 to 1000".to_owned()));
        }
        let chosen = match self.figures.is_empty() {
            true => Experiment::ALL.to_vec(),
            false => self.figures.clone(),
        };
        if chosen.iter().any(|of| *of != Experiment::Fig9f) {
            become_root()?;
        }
        interrupt::install();
        // Processes look for these from folders of their own.
        let absolute = |path: PathBuf| {
            std::path::absolute(&path).map_err(|reason| EvalError::file(path, reason))
        };
        let stateplane =
            std::env::current_exe().map_err(|reason| EvalError::file("/proc/self/exe", reason))?;
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let others = match self.systems.is_empty() {
            true => System::ALL.to_vec(),
            false => self.systems.clone(),
        };
        let others = others.into_iter().filter(|of| *of != System::Stateplane);
        let setting = Setting {
            place: Place {
                lab: absolute(self.lab.clone())?,
                logs: absolute(self.logs.join("eval"))?,
                stateplane,
                // A run that shows that everything works may share its processors with others.
                detection_ms: if self.quick { 1000 } else { 100 },
            },
            plan: Plan {
                runs: if self.quick { 1 } else { self.runs },
                quick: self.quick,
            },
            systems: std::iter::once(System::Stateplane).chain(others).collect(),
            bar: &bar,
        };
        let mut figures = Vec::new();
        for experiment in chosen {
            if interrupt::requested() {
                return Err(LabError::Interrupted.into());
            }
            bar.reset();
            bar.set_length(0);
            let figure = setting.make(experiment)?;
            figure.write(&self.output)?;
            bar.suspend(|| {
                if !self.json {
                    println!("{figure}");
                }
            });
            figures.push(figure);
        }
        bar.finish_and_clear();
        if !self.json {
            println!("tables and plots are in {}", self.output.display());
        }
        Ok(figures)
    }
}

impl Setting<'_> {
    fn make(&self, experiment: Experiment) -> Result<Figure, EvalError> {
        match experiment {
            Experiment::Fig9a => throughput::by_value(self),
            Experiment::Fig9b => throughput::by_keys(self),
            Experiment::Fig9c => throughput::by_writes(self),
            Experiment::Fig9d => throughput::by_loss(self),
            Experiment::Fig9e => latency::run(self),
            Experiment::Fig9f => scale::run(self),
            Experiment::Fig10 => failure::run(self),
            Experiment::Fig11 => transactions::run(self),
        }
    }

    /// A claim of a run that is long enough to tell.
    fn claim(&self, figure: &mut Figure, met: bool, claim: String) {
        match self.plan.quick {
            true => figure.missing.push(format!("{claim}: {TOO_SHORT}")),
            false => figure.claim(met, claim),
        }
    }
}

/// In what all experiments in the lab differ from the paper's.
fn lab_differs(figure: &mut Figure, network: &Network) {
    figure.differs(
        "one machine instead of four Tofino switches and four servers: switches, controller and \
         client are processes in network namespaces, joined by a bridge, and share its processors",
    );
    figure.differs(
        "64 groups are spread over four switches by consistent hashing, where the paper has one \
         chain of three; a reply goes straight to the client",
    );
    figure.differs(
        "the client is the one that ships, on a kernel's UDP socket; the paper's is written in C \
         with DPDK",
    );
    figure.differs(
        "services of others have three servers and their clients on one loopback interface, so \
         their packets cross no switch",
    );
    figure.differs(
        "reads of ZooKeeper are those of one server, and may be old; all others are linearizable",
    );
    figure.missing.extend(network.missing.iter().cloned());
}
