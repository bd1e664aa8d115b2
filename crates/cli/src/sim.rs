//! `stateplane sim`: the whole world in virtual time.

use crate::exit::{CommandError, Failure};
use clap::Args;
use clap::builder::PossibleValuesParser;
use indicatif::ProgressBar;
use stateplane_sim::{EngineKind, Options, ProgramKind, Rule, Scenario, Simulator};

/// Simulate switches, store, links and clocks in virtual time, and judge what happened.
///
/// Everything follows from the seed: an equal seed gives an equal run. Exits with 1 if a
/// checker objects.
#[derive(Args)]
pub struct SimArguments {
    /// What runs on the switches
    #[arg(long, default_value = "counter", value_parser = PossibleValuesParser::new(ProgramKind::ALL.map(ProgramKind::name)))]
    program: String,
    /// What runs the program: machine code, or the reference interpreter
    #[arg(long, default_value = EngineKind::default().name(), value_parser = PossibleValuesParser::new(EngineKind::ALL.map(EngineKind::name)))]
    engine: String,
    /// How the world behaves
    #[arg(long, default_value = "mixed", value_parser = PossibleValuesParser::new(Scenario::ALL.map(|s| s.name)))]
    scenario: String,
    /// Run this one seed and show it
    #[arg(long, conflicts_with_all = ["first_seed", "seeds"])]
    seed: Option<u64>,
    /// The first of several seeds
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// How many seeds
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Turn a rule off, to see the checkers object
    #[arg(long, value_parser = PossibleValuesParser::new(Rule::ALL.map(Rule::name)))]
    without: Option<String>,
}

/// Runs the command.
pub fn run(arguments: &SimArguments) -> Result<(), CommandError> {
    let unknown = || CommandError::explained(Failure::Input);
    let program = ProgramKind::from_name(&arguments.program).ok_or_else(unknown)?;
    let scenario = Scenario::from_name(&arguments.scenario).ok_or_else(unknown)?;
    let engine = EngineKind::from_name(&arguments.engine).ok_or_else(unknown)?;
    let mut options = Options::new(program).scenario(scenario).engine(engine);
    if let Some(rule) = &arguments.without {
        options = options.without(Rule::from_name(rule).ok_or_else(unknown)?);
    }
    let failed = |error| CommandError::new(Failure::Program, error);
    let simulator = Simulator::new(options).map_err(failed)?;
    if let Some(seed) = arguments.seed {
        let report = simulator.run(seed).map_err(failed)?;
        print!("{report}");
        return match report.is_good() {
            true => Ok(()),
            false => Err(CommandError::explained(Failure::Expectation)),
        };
    }
    let bar = ProgressBar::new(arguments.seeds);
    let (mut bad, mut taken, mut freed) = (0u64, 0, 0);
    for seed in arguments.first_seed..arguments.first_seed.saturating_add(arguments.seeds) {
        let report = simulator.run(seed).map_err(failed)?;
        taken += report.coverage.ports_taken;
        freed += report.coverage.ports_freed;
        if !report.is_good() {
            bad += 1;
            bar.suspend(|| print!("{report}"));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    println!("{} seeds, {bad} with objections", arguments.seeds);
    if taken > 0 {
        println!("{taken} ports taken, {freed} given back");
    }
    match bad {
        0 => Ok(()),
        _ => Err(CommandError::explained(Failure::Expectation)),
    }
}
