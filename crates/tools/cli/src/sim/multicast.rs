//! Multicast in virtual time.

use super::{SimArguments, seeds};
use crate::exit::{CommandError, Failure};
use stateplane_multicast_sim::{Options, Report, Rule, Scenario, SimError, Simulator};
use stateplane_sim::EngineKind;

/// Runs the command.
pub(super) fn run(arguments: &SimArguments) -> Result<(), CommandError> {
    let unknown = |what: &str| {
        let problem = format!("{} has no such {what}", arguments.program);
        CommandError::new(Failure::Input, problem)
    };
    let scenario = Scenario::from_name(&arguments.scenario).ok_or_else(|| unknown("scenario"))?;
    let scenario = scenario
        .with_settings(&arguments.set)
        .map_err(|error| CommandError::new(Failure::Input, format!("--set: {error}")))?;
    let engine = EngineKind::from_name(&arguments.engine).ok_or_else(|| unknown("engine"))?;
    let mut options = Options::new(scenario).engine(engine);
    options.chosen = arguments.chosen();
    if let Some(rule) = &arguments.without {
        options = options.without(Rule::from_name(rule).ok_or_else(|| unknown("rule"))?);
    }
    let mut simulator = Simulator::new(options).map_err(failed)?;
    seeds::run(arguments, &mut simulator)
}

fn failed(error: SimError) -> CommandError {
    CommandError::coded(Failure::Program, error.code(), error)
}

impl seeds::Runs for Simulator {
    type Report = Report;

    fn run(&mut self, seed: u64) -> Result<Report, CommandError> {
        Simulator::run(self, seed).map_err(failed)
    }

    fn is_good(report: &Report) -> bool {
        report.is_good()
    }

    fn shrink(&mut self, report: &Report, runs: usize) -> Result<Option<Report>, CommandError> {
        // A run chosen by hand is shown unchanged.
        if !report.options.chosen.is_all() {
            return Ok(None);
        }
        Simulator::shrink(self, report, runs)
            .map(Some)
            .map_err(failed)
    }
}
