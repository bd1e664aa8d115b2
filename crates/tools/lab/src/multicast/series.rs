//! Many runs, one after the other.

use super::report::{Counts, Touched, verdict};
use super::{Options, file_of, run};
use crate::error::LabError;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Report of many runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SeriesReport {
    /// First seed.
    pub first_seed: u64,
    /// Runs, each with the seed after that of the run before.
    pub runs: u32,
    /// Folder of the histories.
    pub directory: PathBuf,
    /// Names of the histories, with `SEED` for the seed.
    pub histories: String,
    /// Counts of all histories.
    #[serde(flatten)]
    pub counts: Counts,
    /// Messages, or operations of the store, of the run with the fewest.
    pub fewest: usize,
    /// Faults of all runs.
    pub faults: usize,
    /// Frames that the faults concerned.
    #[serde(flatten)]
    pub touched: Touched,
    /// Objections of the checkers, with the seeds of their runs.
    pub violations: Vec<(u64, String)>,
}

impl SeriesReport {
    /// True if no checker objected.
    pub fn met(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for SeriesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (runs, seed) = (self.runs, self.first_seed);
        writeln!(f, "multicast, {runs} runs from seed {seed}")?;
        write!(f, "{}", self.counts)?;
        writeln!(
            f,
            "  faults      {}; {} messages or operations in the run with the fewest",
            self.faults, self.fewest
        )?;
        write!(f, "{}", self.touched)?;
        for (seed, violation) in &self.violations {
            writeln!(f, "  VIOLATION   seed {seed}: {violation}")?;
        }
        writeln!(f, "  verdict     {}", verdict(self.violations.len()))?;
        let histories = self.directory.join(&self.histories);
        writeln!(f, "  histories   {}", histories.display())
    }
}

/// Runs the groups `runs` times under faults, with the seed of `options` and those after it.
///
/// # Errors
/// As [`run`]; the runs before it are lost but for their histories.
pub fn run_many(options: &Options, runs: u32) -> Result<SeriesReport, LabError> {
    let mut series = SeriesReport {
        first_seed: options.seed,
        runs,
        directory: options.directory.clone(),
        histories: file_of("SEED", options.load.store),
        fewest: usize::MAX,
        ..SeriesReport::default()
    };
    for number in 0..u64::from(runs) {
        let options = Options {
            seed: options.seed.wrapping_add(number),
            ..options.clone()
        };
        let report = run(&options)?;
        series.counts.add(&report.counts);
        let asked = report.counts.sent + report.counts.called;
        series.fewest = series.fewest.min(asked);
        series.faults += report.faults.len();
        series.touched.add(&report.touched);
        let violations = report.violations.into_iter();
        series
            .violations
            .extend(violations.map(|text| (options.seed, text)));
    }
    Ok(series)
}
