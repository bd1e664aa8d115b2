//! `stateplane eval …`.

use crate::approsync;
use crate::controller::{self, ControllerArguments, ReplicaArguments};
use crate::error::EvalError;
use crate::experiments::{self, Experiment, Place};
use crate::figure::Figure;
use crate::hazards;
use crate::netchain;
use crate::options::LabOptions;
use crate::p4mcast;
use crate::probe::stream::Stream;
use crate::probe::{self, ProbeArguments};
use crate::series;
use clap::{Args, Subcommand};
use stateplane_lab::become_root;
use std::path::PathBuf;
use std::process::ExitCode;

/// Subcommands of `stateplane eval`.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Run the RedPlane paper's experiments, and write a table and a plot of each.
    Redplane(Options),
    /// Run the experiments of the paper on state that takes several cycles, and those that it
    /// leaves open, and write a table and plots of each.
    Hazards(hazards::Options),
    /// Run the NetChain paper's experiments, beside etcd, ZooKeeper and Redis, and write a table and
    /// plots of each.
    Netchain(netchain::Options),
    /// Run the experiments of the ApproSync paper with this project's sync, beside the paper's
    /// algorithms as printed, and write tables and plots of each.
    Approsync(approsync::Options),
    /// Run the experiment of the P4mCast poster, and more, with this project's multicast beside other
    /// systems that order messages, and write tables and plots of each.
    P4mcast(p4mcast::Options),
    /// A client of a coordination service; started by experiments in its node.
    #[command(hide = true)]
    Client(netchain::ClientArguments),
    /// The agent of a switch; started by experiments in the switch's node.
    #[command(hide = true)]
    SwitchAgent(netchain::AgentArguments),
    /// A sender or a receiver of ordered messages; started by experiments in its node.
    #[command(hide = true)]
    MulticastHost(p4mcast::HostArguments),
    /// A member of a protocol like PrimCast; started by experiments in its node.
    #[command(hide = true)]
    MulticastMember(p4mcast::MemberArguments),
    /// The measuring host; started by experiments in its node.
    #[command(hide = true)]
    Probe(ProbeArguments),
    /// The controller of a NAT that has one; started in the switch's node.
    #[command(hide = true)]
    Controller(ControllerArguments),
    /// A replica of that controller; started in the switch's node.
    #[command(hide = true)]
    ControllerReplica(ReplicaArguments),
}

/// Options of experiments.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Figures, such as fig8, table2 or reads; all if none is named.
    #[arg(value_enum)]
    pub figures: Vec<Experiment>,
    /// Take flows and lengths of packets from a capture (pcap or pcapng), for fig8 and fig9.
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Amount of measurement, and places of files.
    #[command(flatten)]
    pub lab: LabOptions,
}

impl Command {
    /// Runs the subcommand. The exit code is 1 where a claim did not hold.
    ///
    /// # Errors
    /// Refusals of the lab and the experiments; `LAB130` after ^C.
    pub fn run(&self) -> Result<ExitCode, EvalError> {
        match self {
            Self::Probe(arguments) => probe::run(arguments).map(|()| ExitCode::SUCCESS),
            Self::Controller(arguments) => {
                controller::control(arguments).map(|()| ExitCode::SUCCESS)
            }
            Self::ControllerReplica(arguments) => {
                controller::replicate(arguments).map(|()| ExitCode::SUCCESS)
            }
            Self::Redplane(options) => Ok(told(&options.run()?, options.lab.json)),
            Self::Client(arguments) => {
                netchain::run_client(arguments);
                Ok(ExitCode::SUCCESS)
            }
            Self::SwitchAgent(arguments) => {
                netchain::run_agent(arguments).map(|()| ExitCode::SUCCESS)
            }
            Self::MulticastHost(arguments) => {
                p4mcast::run_host(arguments);
                Ok(ExitCode::SUCCESS)
            }
            Self::MulticastMember(arguments) => {
                p4mcast::run_member(arguments).map(|()| ExitCode::SUCCESS)
            }
            Self::P4mcast(options) => Ok(told(&options.run()?, options.lab.json)),
            Self::Netchain(options) => Ok(told(&options.run()?, options.lab.json)),
            Self::Approsync(options) => Ok(told(&options.run()?, options.json)),
            Self::Hazards(options) => Ok(told(&options.run()?, options.json)),
        }
    }
}

/// Prints the figures if asked for JSON. The code is 1 where a claim did not hold.
fn told(figures: &[Figure], json: bool) -> ExitCode {
    if json {
        println!(
            "{}",
            serde_json::to_string_pretty(figures).unwrap_or_default()
        );
    }
    ExitCode::from(u8::from(!figures.iter().all(Figure::met)))
}

impl Options {
    /// Makes the experiments one after the other; each is written as soon as it is done.
    fn run(&self) -> Result<Vec<Figure>, EvalError> {
        let plan = self.lab.plan()?;
        let chosen = series::chosen(&self.figures, &Experiment::ALL);
        if let Some(capture) = &self.capture {
            if !chosen.iter().any(|experiment| experiment.takes_capture()) {
                return Err(EvalError::Options(
                    "--capture is of use to fig8 and fig9: name one of them".to_owned(),
                ));
            }
            Stream::read(capture)?;
        }
        if chosen.iter().any(|experiment| experiment.needs_lab()) {
            become_root()?;
        }
        let capture = self.capture.as_deref();
        let place = Place {
            lab: series::absolute(&self.lab.lab)?,
            logs: series::absolute(&self.lab.logs.join("eval"))?,
            capture: capture.map(series::absolute).transpose()?,
            stateplane: series::stateplane()?,
        };
        self.lab.make(chosen, |experiment, bar| {
            bar.set_message(experiment.id().to_owned());
            experiments::run(experiment, &place, plan, bar)
        })
    }
}
