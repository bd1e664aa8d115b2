//! Applications under traffic while something fails: `stateplane lab run`.
//!
//! A scenario is an application of `apps` on two switches in network namespaces
//! (`lab/apps.toml`). Its hosts ([`crate::agent::hosts`]) speak all the time, real TCP
//! connections go through it where it lets them, and one fault follows the other.
//! The hosts' histories are judged by the application's checker (`stateplane-history`).
//! One scenario has a network of its own, in which an engine of sync looks on (`lab/view.toml`).

mod fault;
mod figures;
mod list;
mod report;
mod sessions;
mod sketch;
mod trial;
mod view;

pub use fault::Fault;
pub(crate) use list::watched;
pub use list::{Scenario, Sessions, Side, Sketches, scenarios};
pub use report::{FaultReport, Move, ScenarioReport, SessionsReport};
pub use sketch::{HeavyFlow, SketchReport, TenantReport};
pub use view::{GroupReport, NAME as VIEW, ReaderArguments, ViewReport, reader};

use crate::error::LabError;
use crate::topology::Topology;
use crate::{interrupt, tool};
use clap::Args;
use stateplane_history::LONGEST_SEARCH;
use std::path::PathBuf;

/// Flows that the hosts have at most: groups in `apps/sequencer/switch.toml`.
const MOST_FLOWS: usize = 12;

/// Least milliseconds between two packets of a flow for faults that last for seconds: 25 packets of
/// a flow that were sent meanwhile can be ordered, 50 cannot always.
const LONG_FAULT_INTERVAL_MS: u64 = 200;

/// Options of scenarios.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Scenarios to run, one after the other (`lab list` names them), or `all`.
    #[arg(required = true)]
    pub scenarios: Vec<String>,
    /// Faults, in this order. Those of the store, and those of 5 s, happen only if they are named.
    #[arg(long, value_delimiter = ',', default_values_t = Fault::USUAL)]
    pub faults: Vec<Fault>,
    /// Milliseconds from one fault to the next.
    #[arg(long, default_value_t = 3000)]
    pub phase_ms: u64,
    /// Flows of the hosts.
    #[arg(long, default_value_t = MOST_FLOWS)]
    pub flows: usize,
    /// Milliseconds between two packets of a flow.
    #[arg(long, default_value_t = 50)]
    pub interval_ms: u64,
    /// Seed of the hosts' random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Topology file, with a variant for each scenario.
    #[arg(long, default_value = "lab/apps.toml")]
    pub topology: PathBuf,
    /// Directory for the logs of every process and the histories, a folder each.
    #[arg(long, default_value = "target/lab")]
    pub logs: PathBuf,
    /// Threads of each switch (`stateplane run --workers`), 1 to 64.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub switch_workers: u8,
    /// Print the reports as one JSON array.
    #[arg(long)]
    pub json: bool,
}

impl Options {
    fn check(&self) -> Result<(), LabError> {
        let refuse = |problem: String| Err(LabError::Options(problem));
        if !(1..=MOST_FLOWS).contains(&self.flows) {
            return refuse(format!("--flows must be 1 to {MOST_FLOWS}"));
        }
        if !(1000..=60_000).contains(&self.phase_ms) {
            return refuse("--phase-ms must be 1000 to 60000".to_owned());
        }
        if !(5..=1000).contains(&self.interval_ms) {
            return refuse("--interval-ms must be 5 to 1000".to_owned());
        }
        let is_long = self.faults.iter().any(|fault| fault.is_long());
        if is_long && self.interval_ms < LONG_FAULT_INTERVAL_MS {
            return refuse(format!(
                "a fault of 5 s needs --interval-ms {LONG_FAULT_INTERVAL_MS} at least: checkers do \
                 not find the order of more packets that wait at once"
            ));
        }
        let longest = trial::longest_ms(self) / self.interval_ms;
        if longest > LONGEST_SEARCH as u64 {
            return refuse(format!(
                "the run has {longest} packets of a flow, and the checker takes \
                 {LONGEST_SEARCH}: use fewer --faults, a shorter --phase-ms or a longer \
                 --interval-ms"
            ));
        }
        Ok(())
    }

    /// The scenarios that are named.
    fn named(&self) -> Result<Vec<Scenario>, LabError> {
        if self.scenarios.iter().any(|name| name == "all") {
            return Ok(scenarios());
        }
        let known = scenarios();
        let names: Vec<_> = known.iter().map(|scenario| scenario.name).collect();
        let find = |name: &String| {
            let found = known.iter().find(|scenario| scenario.name == name);
            found.cloned().ok_or_else(|| LabError::Unknown {
                kind: "scenario",
                name: name.clone(),
                known: names.join(", "),
            })
        };
        self.scenarios.iter().map(find).collect()
    }
}

/// Runs the scenarios. [`ScenarioReport::met`] tells whether all expectations were met.
///
/// # Errors
/// `LAB009` for an unknown scenario, `LAB013` for contradictory options, and everything
/// that [`Lab::up`](crate::Lab::up) refuses. Nothing is left behind.
pub fn run(options: &Options) -> Result<Vec<ScenarioReport>, LabError> {
    run_in(&Topology::load(&options.topology)?, options)
}

/// Runs the scenarios in a network that was read already; the options' topology is ignored. The
/// network has the nodes of `lab/apps.toml` that the scenarios' traffic names, and the switch `s1`.
///
/// # Errors
/// As [`run`].
pub fn run_in(topology: &Topology, options: &Options) -> Result<Vec<ScenarioReport>, LabError> {
    options.check()?;
    let scenarios = options.named()?;
    prepare()?;
    scenarios
        .iter()
        .map(|scenario| trial::run(topology, options, scenario))
        .collect()
}

/// Runs the scenario in which an engine of sync follows what the switches count. The network has
/// the nodes of `lab/view.toml`.
///
/// # Errors
/// As [`run`].
pub fn run_view(topology: &Topology, options: &Options) -> Result<ScenarioReport, LabError> {
    options.check()?;
    prepare()?;
    let scenario = watched().ok_or_else(|| {
        let problem = format!("lab/apps/{VIEW}/app.toml has no section `[lab]`");
        LabError::Options(problem)
    })?;
    trial::run(topology, options, &scenario)
}

fn prepare() -> Result<(), LabError> {
    interrupt::install();
    tool::require_root()?;
    tool::require(&tool::BUILDING)
}
