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
use crate::experiments::Plan;
use crate::figure::Figure;
use crate::options::{self, LabOptions, Place};
use crate::series;
use clap::{Args, ValueEnum};
use client::System;
use indicatif::ProgressBar;
use lab::Network;
use stateplane_lab::become_root;

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
    /// Services to compare with; all that can be had if none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub systems: Vec<System>,
    /// Amount of measurement, and places of files.
    #[command(flatten)]
    pub lab: LabOptions,
}

/// Parts with which an experiment is made.
struct Setting<'a> {
    place: &'a Place,
    plan: Plan,
    /// Services, that which is evaluated first.
    systems: &'a [System],
    bar: &'a ProgressBar,
}

impl Options {
    /// Makes the experiments one after the other; each is written as soon as it is done.
    pub(crate) fn run(&self) -> Result<Vec<Figure>, EvalError> {
        let plan = self.lab.plan()?;
        let chosen = series::chosen(&self.figures, &Experiment::ALL);
        if chosen.iter().any(|of| *of != Experiment::Fig9f) {
            become_root()?;
        }
        let systems = options::beside(System::Stateplane, &self.systems, &System::ALL);
        // A run that shows that everything works may share its processors with others.
        let place = self.lab.place(if plan.quick { 1000 } else { 100 })?;
        self.lab.make(chosen, |experiment, bar| {
            let setting = Setting {
                place: &place,
                plan,
                systems: &systems,
                bar,
            };
            setting.make(experiment)
        })
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
