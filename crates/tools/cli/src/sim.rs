//! `stateplane sim`: the whole world in virtual time.

mod coordination;
mod multicast;
mod seeds;
mod sync;

use crate::app::Folder;
use crate::exit::{CommandError, Failure};
use crate::program::{Disk, PreprocessArguments, included, source};
use crate::text_file;
use clap::Args;
use clap::builder::PossibleValuesParser;
use stateplane_compile::Source;
use stateplane_sim::{
    Chosen, EngineKind, Numbers, Options, Own, ProgramKind, Report, Rule, Scenario, SimError,
    Simulator,
};
use std::path::{Path, PathBuf};

/// Simulate switches, store, links and clocks in virtual time, and check the resulting history.
///
/// Equal seeds give equal runs. Exits with 1 if a checker finds a violation. The first run with a
/// violation is then made smaller (fewer nodes, flows, packets and faults, better links) as long as
/// the violation remains. The smallest run is printed from its beginning, with the command that
/// replays it.
///
/// With --p4 and --stf, switches run an annotated program in the form that `stateplane protect`
/// gives it, and hosts send the packets of a packet test. The test must pass with the original and
/// with the protected program; the frames that leave when switches fail must equal the output of
/// the original for each flow's packets in some order. In bounded-inconsistency mode each switch
/// must behave like the original, and the arrays at the store must equal those of a switch at a
/// time at most the bound ago.
#[derive(Args)]
pub struct SimArguments {
    /// Program on the switches
    #[arg(long, default_value = "counter", value_parser = PossibleValuesParser::new(programs()))]
    program: String,
    /// Your own program with registers annotated @replicated, in place of --program
    #[arg(
        long,
        value_name = "PROGRAM.p4",
        requires = "stf",
        conflicts_with = "program"
    )]
    p4: Option<PathBuf>,
    /// Folder of an application of your own, whose app.toml names an annotated program and its
    /// packet test, in place of --p4 and --stf
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["program", "p4"])]
    app: Option<PathBuf>,
    /// Packet test of that program: entries for its tables, and packets for hosts to send
    #[arg(long, value_name = "TEST.stf", requires = "p4")]
    stf: Option<PathBuf>,
    #[command(flatten)]
    preprocess: PreprocessArguments,
    /// Engine of the switches: machine code, or the reference interpreter
    #[arg(long, default_value = EngineKind::default().name(), value_parser = PossibleValuesParser::new(EngineKind::ALL.map(EngineKind::name)))]
    engine: String,
    /// Scenario: traffic, links and faults. The programs `coordination`, `multicast` and
    /// `sync` have scenarios of their own
    #[arg(long, default_value = "mixed", value_parser = PossibleValuesParser::new(scenarios()))]
    scenario: String,
    /// Change a setting of the scenario, such as flows=8 or chain_link.loss=0; may be given several
    /// times
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Run this seed only, and print the run
    #[arg(long, conflicts_with_all = ["first_seed", "seeds"])]
    seed: Option<u64>,
    /// First seed
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// Number of seeds
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Send only these of the seed's packets, such as 0-3,17 or none
    #[arg(long, value_name = "NUMBERS", requires = "seed")]
    packets: Option<Numbers>,
    /// Cause only these of the seed's faults
    #[arg(long, value_name = "NUMBERS", requires = "seed")]
    faults: Option<Numbers>,
    /// Maximum number of runs for making a violating run smaller; 0: leave it as it is
    #[arg(long, value_name = "RUNS", default_value_t = 1000)]
    shrink: usize,
    /// Disable a rule; the checkers should then find violations
    #[arg(long, value_parser = PossibleValuesParser::new(rules()))]
    without: Option<String>,
}

/// Names of all programs.
fn programs() -> Vec<&'static str> {
    let programs = ProgramKind::all().into_iter().map(ProgramKind::name);
    programs
        .chain([stateplane_coordination_sim::PROGRAM])
        .chain([stateplane_multicast_sim::PROGRAM])
        .chain([stateplane_sync_sim::PROGRAM])
        .collect()
}

/// Names that are in one list or the other, once each.
fn either(
    one: impl Iterator<Item = &'static str>,
    other: impl Iterator<Item = &'static str>,
) -> Vec<&'static str> {
    let mut names: Vec<_> = one.collect();
    let new: Vec<_> = other.filter(|name| !names.contains(name)).collect();
    names.extend(new);
    names
}

/// Names of the scenarios of all programs.
fn scenarios() -> Vec<&'static str> {
    let of_coordination = stateplane_coordination_sim::Scenario::ALL;
    let of_multicast = stateplane_multicast_sim::Scenario::ALL;
    let of_sync = stateplane_sync_sim::Scenario::ALL;
    let others = either(
        of_coordination.into_iter().map(|scenario| scenario.name),
        of_multicast.into_iter().map(|scenario| scenario.name),
    );
    let others = either(
        others.into_iter(),
        of_sync.into_iter().map(|scenario| scenario.name),
    );
    either(
        Scenario::ALL.into_iter().map(|scenario| scenario.name),
        others.into_iter(),
    )
}

/// Names of the rules of all programs.
fn rules() -> Vec<&'static str> {
    let of_coordination = stateplane_coordination_sim::Rule::ALL.iter();
    let of_multicast = stateplane_multicast_sim::Rule::ALL.iter();
    let of_sync = stateplane_sync_sim::Rule::ALL.iter();
    let others = either(
        of_coordination.map(|rule| rule.name()),
        of_multicast.map(|rule| rule.name()),
    );
    let others = either(others.into_iter(), of_sync.map(|rule| rule.name()));
    either(Rule::ALL.into_iter().map(Rule::name), others.into_iter())
}

/// Runs the command.
pub fn run(arguments: &SimArguments) -> Result<(), CommandError> {
    let shipped = arguments.p4.is_none() && arguments.app.is_none();
    if shipped && arguments.program == stateplane_coordination_sim::PROGRAM {
        return coordination::run(arguments);
    }
    if shipped && arguments.program == stateplane_multicast_sim::PROGRAM {
        return multicast::run(arguments);
    }
    if shipped && arguments.program == stateplane_sync_sim::PROGRAM {
        return sync::run(arguments);
    }
    let unknown = |what: &str| {
        let problem = format!("{} has no such {what}", arguments.program);
        CommandError::new(Failure::Input, problem)
    };
    let program =
        ProgramKind::from_name(&arguments.program).ok_or_else(|| unknown("simulation"))?;
    let scenario = Scenario::from_name(&arguments.scenario).ok_or_else(|| unknown("scenario"))?;
    let scenario = scenario
        .with_settings(&arguments.set)
        .map_err(|error| CommandError::new(Failure::Input, format!("--set: {error}")))?;
    let engine = EngineKind::from_name(&arguments.engine).ok_or_else(|| unknown("engine"))?;
    let mut options = Options::new(program).scenario(scenario).engine(engine);
    options.own_program = own_program(arguments);
    options.chosen = arguments.chosen();
    if let Some(rule) = &arguments.without {
        options = options.without(Rule::from_name(rule).ok_or_else(|| unknown("rule"))?);
    }
    let simulator = match (&arguments.app, &arguments.p4, &arguments.stf) {
        (Some(folder), _, _) => {
            let own = of_folder(&Folder::read(folder)?)?;
            Simulator::own(own, options).map_err(failed)?
        }
        (None, Some(program), Some(test)) => {
            let own = own(arguments.preprocess.source(program), test)?;
            Simulator::own(own, options).map_err(failed)?
        }
        _ => Simulator::new(options).map_err(failed)?,
    };
    let mut ports = Ports {
        simulator,
        taken: 0,
        freed: 0,
    };
    let done = seeds::run(arguments, &mut ports);
    if ports.taken > 0 && arguments.seed.is_none() {
        println!("{} ports taken, {} given back", ports.taken, ports.freed);
    }
    done
}

impl SimArguments {
    /// The part of the plan that is executed.
    fn chosen(&self) -> Chosen {
        Chosen {
            packets: self.packets.clone(),
            faults: self.faults.clone(),
        }
    }
}

/// The simulator of replication, and the public ports of its runs.
struct Ports {
    simulator: Simulator,
    taken: u64,
    freed: u64,
}

impl seeds::Runs for Ports {
    type Report = Report;

    fn run(&mut self, seed: u64) -> Result<Report, CommandError> {
        let report = self.simulator.run(seed).map_err(failed)?;
        self.taken += report.coverage.ports_taken;
        self.freed += report.coverage.ports_freed;
        Ok(report)
    }

    fn is_good(report: &Report) -> bool {
        report.is_good()
    }

    fn shrink(&mut self, report: &Report, runs: usize) -> Result<Option<Report>, CommandError> {
        // A run chosen by hand is shown unchanged.
        if !report.options.chosen.is_all() {
            return Ok(None);
        }
        self.simulator
            .shrink(report, runs)
            .map(Some)
            .map_err(failed)
    }
}

fn failed(error: SimError) -> CommandError {
    CommandError::coded(Failure::Program, error.code(), error)
}

/// The options that name the user's program, if there is one.
fn own_program(arguments: &SimArguments) -> Option<String> {
    if let Some(folder) = &arguments.app {
        return Some(format!("--app {}", folder.display()));
    }
    let (program, test) = arguments.p4.as_ref().zip(arguments.stf.as_ref())?;
    let mut options = format!("--p4 {} --stf {}", program.display(), test.display());
    options.push_str(&arguments.preprocess.to_options());
    Some(options)
}

/// The program of an application's folder, whose `app.toml` says what the program does.
fn of_folder(folder: &Folder) -> Result<Own, CommandError> {
    let packets = folder.packets()?;
    let own = own(source(&folder.program(), &folder.macros()), &packets)?;
    let (has, said) = (own.class(), folder.replicated()?.class());
    if (has.id, has.state_length) == (said.id, said.state_length) {
        return Ok(own);
    }
    let problem = format!(
        "the class has id = {} and state_length = {}, where the program's flows have {} and {}",
        said.id, said.state_length, has.id, has.state_length
    );
    Err(folder.contradiction(
        problem,
        "say of the first [[replication.class]] what the program has",
    ))
}

/// A program of the user's, which passes its packet test before and after it is protected.
fn own(source: Source<Disk>, test: &Path) -> Result<Own, CommandError> {
    let name = test.display().to_string();
    let text = text_file::read(test)
        .map_err(|error| CommandError::new(Failure::Input, format!("{name}: {error}")))?;
    let script = stateplane_stf::parse_with(&name, &text, &|path| included(&name, path))
        .map_err(|error| CommandError::new(Failure::Input, error))?;
    let own = Own::new(
        source.loader(),
        source.main_file(),
        source.options(),
        &script,
    )
    .map_err(failed)?;
    let failures = own.packet_test().map_err(failed)?;
    if failures.is_empty() {
        Ok(own)
    } else {
        Err(CommandError::new(
            Failure::Expectation,
            failures.join("\nerror: "),
        ))
    }
}
