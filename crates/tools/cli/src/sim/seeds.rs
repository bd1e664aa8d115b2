//! Seeds one after another, whatever they simulate.

use super::SimArguments;
use crate::exit::{CommandError, Failure};
use indicatif::ProgressBar;
use std::fmt::Display;

/// A simulator with its options.
pub(super) trait Runs {
    /// Report of a run.
    type Report: Display;

    /// Runs a seed.
    fn run(&mut self, seed: u64) -> Result<Self::Report, CommandError>;

    /// True if nobody objects to a run.
    fn is_good(report: &Self::Report) -> bool;

    /// The same objection in a smaller run; `None` if the run is to be left as it is.
    fn shrink(
        &mut self,
        report: &Self::Report,
        runs: usize,
    ) -> Result<Option<Self::Report>, CommandError>;
}

/// Runs the seeds that `arguments` name, and prints those to which a checker objects.
pub(super) fn run<R: Runs>(arguments: &SimArguments, runs: &mut R) -> Result<(), CommandError> {
    if let Some(seed) = arguments.seed {
        let report = runs.run(seed)?;
        print!("{report}");
        if R::is_good(&report) {
            return Ok(());
        }
        shrink(runs, &report, arguments.shrink)?;
        return Err(CommandError::explained(Failure::Expectation));
    }
    let bar = ProgressBar::new(arguments.seeds);
    let mut bad = 0u64;
    let mut first_bad = None;
    for seed in arguments.first_seed..arguments.first_seed.saturating_add(arguments.seeds) {
        let report = runs.run(seed)?;
        if !R::is_good(&report) {
            bad += 1;
            bar.suspend(|| print!("{report}"));
            first_bad.get_or_insert(report);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    println!("{} seeds, {bad} with objections", arguments.seeds);
    if let Some(report) = &first_bad {
        shrink(runs, report, arguments.shrink)?;
    }
    match bad {
        0 => Ok(()),
        _ => Err(CommandError::explained(Failure::Expectation)),
    }
}

/// Makes a run smaller, and prints the result.
fn shrink<R: Runs>(runs: &mut R, report: &R::Report, most: usize) -> Result<(), CommandError> {
    if most > 0
        && let Some(shrunk) = runs.shrink(report, most)?
    {
        print!("\nthe same objection in a smaller world:\n{shrunk}");
    }
    Ok(())
}
