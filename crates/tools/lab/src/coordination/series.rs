//! Many runs, one after the other.

use super::fault::Frames;
use super::{Options, run};
use crate::error::LabError;
use indicatif::{ProgressBar, ProgressStyle};
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
    /// Folder of the histories, `history-SEED.jsonl`.
    pub directory: PathBuf,
    /// Operations of all runs.
    pub operations: usize,
    /// Operations of the run with the fewest.
    pub fewest_operations: usize,
    /// Faults of all runs.
    pub faults: usize,
    /// Operations whose outcome nobody knows.
    pub unknown: usize,
    /// Frames that ports lost and doubled.
    pub frames: Frames,
    /// Workers whose clients died with operations under way.
    pub died: usize,
    /// Lists of a group's records that came to their end.
    pub lists: usize,
    /// Changes that clients told which watch all groups.
    pub told: usize,
    /// Times at which they told that changes are missing.
    pub compacted: usize,
    /// Longest time in ms from an invocation to its response.
    pub longest_ms: u64,
    /// Groups that lost all their members, with the seeds of their runs.
    pub lost: Vec<(u64, String)>,
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
        writeln!(
            f,
            "coordination, {} runs from seed {}",
            self.runs, self.first_seed
        )?;
        writeln!(
            f,
            "  operations  {}, {} in the run with the fewest, {} of unknown outcome",
            self.operations, self.fewest_operations, self.unknown
        )?;
        writeln!(f, "  faults      {}", self.faults)?;
        writeln!(
            f,
            "  frames      {} lost, {} doubled",
            self.frames.lost, self.frames.doubled
        )?;
        writeln!(
            f,
            "  clients     {} workers died, {} lists of a group",
            self.died, self.lists
        )?;
        writeln!(
            f,
            "  watches     {} changes told, {} times told that some are missing",
            self.told, self.compacted
        )?;
        writeln!(f, "  longest     {} ms until a response", self.longest_ms)?;
        for (seed, group) in &self.lost {
            writeln!(
                f,
                "  lost        seed {seed}: {group}: a member was killed while all others seemed dead"
            )?;
        }
        for (seed, violation) in &self.violations {
            writeln!(f, "  VIOLATION   seed {seed}: {violation}")?;
        }
        let verdict = match self.violations.len() {
            0 => "nothing objected to".to_owned(),
            count => format!("{count} violations"),
        };
        writeln!(f, "  verdict     {verdict}")?;
        let histories = self.directory.join("history-SEED.jsonl");
        writeln!(f, "  histories   {}", histories.display())
    }
}

/// Runs the service `runs` times under faults, with the seed of `options` and those after it.
///
/// # Errors
/// As [`run`]; the runs before it are lost but for their histories.
pub fn run_many(options: &Options, runs: u32) -> Result<SeriesReport, LabError> {
    let mut series = SeriesReport {
        first_seed: options.seed,
        runs,
        directory: options.directory.clone(),
        fewest_operations: usize::MAX,
        ..SeriesReport::default()
    };
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} runs {elapsed} {msg}");
    let bar = ProgressBar::new(u64::from(runs));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    for number in 0..u64::from(runs) {
        let options = Options {
            seed: options.seed.wrapping_add(number),
            ..options.clone()
        };
        let report = run(&options)?;
        series.operations += report.operations;
        series.fewest_operations = series.fewest_operations.min(report.operations);
        series.faults += report.faults.len();
        series.unknown += report.unknown;
        let frames = report.frames();
        series.frames.lost += frames.lost;
        series.frames.doubled += frames.doubled;
        series.died += report.died;
        series.lists += report.lists;
        series.told += report.told;
        series.compacted += report.compacted;
        series.longest_ms = series.longest_ms.max(report.longest_ms);
        let lost = report.lost.into_iter();
        series.lost.extend(lost.map(|group| (options.seed, group)));
        let violations = report.violations.into_iter();
        series
            .violations
            .extend(violations.map(|text| (options.seed, text)));
        bar.inc(1);
        bar.set_message(format!(
            "{} operations, {} violations",
            series.operations,
            series.violations.len()
        ));
    }
    bar.finish_and_clear();
    Ok(series)
}
