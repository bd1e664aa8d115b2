//! The experiments, one a figure or a mechanism.

mod bandwidth;
mod buffer;
mod failover;
mod latency;
mod reads;
mod resources;
mod snapshots;
mod throughput;

pub use crate::trial::Place;

use crate::error::EvalError;
use crate::figure::Figure;
use crate::network::Setup;
use crate::probe::ProbeArguments;
use crate::probe::traffic::Application;
use crate::processors::{Awake, Processors};
use crate::trial::{Outcome, Trial};
use clap::ValueEnum;
use indicatif::ProgressBar;
use std::path::Path;

/// A figure of the paper, or a mechanism that it has no figure of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Round trips through a NAT, by system.
    Fig8,
    /// Round trips by application.
    Fig9,
    /// Replication's bandwidth by application.
    Fig10,
    /// Bandwidth of snapshots.
    Fig11,
    /// Throughput by application.
    Fig12,
    /// Throughput of a key-value store by its share of updates.
    Fig13,
    /// Throughput over a failure.
    Fig14,
    /// Copies that wait for an acknowledgement.
    Fig15,
    /// Resources that replication adds to a program.
    Table2,
    /// Reads that meet a write in flight, and wait.
    Reads,
}

impl Experiment {
    /// All of them, in the paper's order; what the paper describes without a figure comes last.
    pub const ALL: [Self; 10] = [
        Self::Fig8,
        Self::Fig9,
        Self::Fig10,
        Self::Fig11,
        Self::Fig12,
        Self::Fig13,
        Self::Fig14,
        Self::Fig15,
        Self::Table2,
        Self::Reads,
    ];

    /// Its name.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Fig8 => "fig8",
            Self::Fig9 => "fig9",
            Self::Fig10 => "fig10",
            Self::Fig11 => "fig11",
            Self::Fig12 => "fig12",
            Self::Fig13 => "fig13",
            Self::Fig14 => "fig14",
            Self::Fig15 => "fig15",
            Self::Table2 => "table2",
            Self::Reads => "reads",
        }
    }

    /// True if it takes times of packets, and may take those packets from a capture.
    pub const fn takes_capture(self) -> bool {
        matches!(self, Self::Fig8 | Self::Fig9)
    }

    /// True if it is made in network namespaces, and not in memory.
    pub const fn needs_lab(self) -> bool {
        !matches!(self, Self::Fig11 | Self::Fig15 | Self::Table2 | Self::Reads)
    }
}

/// Programs that are compared with and without replication, and whether each mostly reads: for
/// those, replication should cost next to nothing.
const APPLICATIONS: [(&str, bool); 6] = [
    ("nat", true),
    ("firewall", true),
    ("load-balancer", true),
    ("serving-gateway", false),
    ("heavy-hitter", true),
    ("counter", false),
];

/// [`APPLICATIONS`], which all have measuring traffic.
pub(crate) fn applications() -> Result<Vec<(Application, bool)>, EvalError> {
    let of = |(name, reads)| Ok((Application::of(name)?, reads));
    APPLICATIONS.into_iter().map(of).collect()
}

/// Amount of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Turns of all systems.
    pub runs: usize,
    /// One short run, to check that everything works.
    pub quick: bool,
}

impl Plan {
    /// A claim of `figure`, if the run is long enough to tell.
    pub(crate) fn claim(self, figure: &mut Figure, met: bool, claim: String) {
        if self.quick {
            figure.missing.push(format!("{claim}: {TOO_SHORT}"));
        } else {
            figure.claim(met, claim);
        }
    }
}

/// Makes an experiment.
///
/// # Errors
/// Refusals of its network, its programs and its files.
pub fn run(
    experiment: Experiment,
    place: &Place,
    plan: Plan,
    bar: &ProgressBar,
) -> Result<Figure, EvalError> {
    match experiment {
        Experiment::Fig8 => latency::of_nat(place, plan, bar),
        Experiment::Fig9 => latency::of_applications(place, plan, bar),
        Experiment::Fig10 => bandwidth::run(place, plan, bar),
        Experiment::Fig11 => snapshots::run(place, plan, bar),
        Experiment::Fig12 => throughput::of_applications(place, plan, bar),
        Experiment::Fig13 => throughput::of_updates(place, plan, bar),
        Experiment::Fig14 => failover::run(place, plan, bar),
        Experiment::Fig15 => buffer::run(place, plan, bar),
        Experiment::Table2 => resources::run(place, plan, bar),
        Experiment::Reads => reads::run(place, plan, bar),
    }
}

/// Comes behind what is claimed but was measured in short, which says nothing.
pub(crate) const TOO_SHORT: &str = "too short to tell";

/// In what all experiments in the lab differ from the paper's.
fn lab_differs(figure: &mut Figure, capture: Option<&Path>) {
    figure.differs(
        "one machine instead of two Tofino switches and ten servers: switch, stores and hosts \
         are processes in network namespaces, joined by veth pairs, and share its processors",
    );
    figure.differs(match Processors::here() {
        Some(processors) => format!("processors are shared out: {processors}"),
        None => "all processes run on one processor".to_owned(),
    });
    figure.differs(match Awake::keep() {
        Some(_) => "idle processors do not sleep meanwhile, as a switch's do not",
        None => "idle processors sleep, and waking up is part of the times",
    });
    figure.differs(match capture.and_then(Path::file_name) {
        Some(name) => format!(
            "UDP packets with the flows and lengths of {}, at a steady rate, all in one direction",
            name.display()
        ),
        None => "UDP packets of one size at a steady rate, not the paper's captures".to_owned(),
    });
}

/// In what the experiments in memory differ from the paper's.
fn memory_differs(figure: &mut Figure) {
    figure.differs(
        "in memory and in virtual time: the switch and the three replicas are the cores that \
         ship, the links have a delay and no bound on their rate",
    );
}

/// A trial's packets: flows of 64 packets each, so that as many packets as in a short flow of
/// a data centre are a flow's first.
pub(crate) fn paced(application: Application, plan: Plan) -> ProbeArguments {
    ProbeArguments {
        application,
        frames: if plan.quick { 600 } else { 8000 },
        warm_up: 0,
        rate: if plan.quick { 1000 } else { 2000 },
        flood_ms: 0,
        capture: None,
        window: 64,
        flow_packets: 64,
        padding: 0,
        updates: 0,
    }
}

/// Builds a network, warms it up, and measures once.
fn once(
    place: &Place,
    setup: &Setup,
    arguments: &ProbeArguments,
    name: &str,
) -> Result<Outcome, EvalError> {
    let mut trial = Trial::begin(place, setup, name)?;
    let outcome = trial.probe(arguments)?;
    trial.end()?;
    Ok(outcome)
}
