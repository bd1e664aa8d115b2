//! Report of a run.

use crate::judge::Violation;
use crate::options::Options;
use std::fmt;

/// Violations shown of each run.
const SHOWN: usize = 5;

/// Event counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Bounds that were told and judged.
    pub told: u64,
    /// Of them, those that were unbounded.
    pub unbounded: u64,
    /// Messages that marked a moment.
    pub marks: u64,
    /// Lost positions that the switch named.
    pub repaired: u64,
    /// Windows that were delivered.
    pub windows: u64,
    /// Writes that ended.
    pub written: u64,
    /// Staged writes that ended.
    pub staged: u64,
    /// Writes whose outcome is unknown.
    pub unknown: u64,
    /// Messages that the switch refused.
    pub refused: u64,
    /// Views that began.
    pub generations: u64,
    /// Engines that stood by and began to lead.
    pub led: u64,
    /// Greatest bound told.
    pub greatest: u64,
    /// Totals of counters that were judged as exact.
    pub continued: u64,
    /// Of exact views, totals that told a discontinuity.
    pub discontinuities: u64,
}

/// Outcome of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The options.
    pub options: Options,
    /// The objection.
    pub violations: Vec<Violation>,
    /// Event counts.
    pub coverage: Coverage,
    /// A number over everything that happened: equal for equal runs.
    pub trace: u64,
    /// Faults and their times.
    pub faults: Vec<(u64, String)>,
}

impl Report {
    /// True if nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.violations.is_empty()
    }

    /// Which promise was broken first.
    pub fn objection(&self) -> Option<&'static str> {
        self.violations.first().map(|violation| violation.promise)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Coverage {
            told,
            unbounded,
            marks,
            repaired,
            windows,
            written,
            staged,
            unknown,
            refused,
            generations,
            led,
            greatest,
            continued,
            discontinuities,
        } = self.coverage;
        writeln!(
            f,
            "seed {} in {}: {told} bounds told, {unbounded} unbounded, the greatest {greatest}; \
             {marks} marks, {repaired} repairs, {windows} windows, {written} writes, {staged} staged, {unknown} \
             unknown, {refused} refusals, {generations} views, {led} elected, {continued} totals, {discontinuities} discontinuities; trace {:016x}",
            self.seed, self.options.scenario.name, self.trace
        )?;
        if self.is_good() {
            return Ok(());
        }
        for (at, fault) in &self.faults {
            writeln!(f, "    {at}: {fault}")?;
        }
        for violation in self.violations.iter().take(SHOWN) {
            writeln!(f, "violated: {violation}")?;
        }
        if let Some(more) = self.violations.len().checked_sub(SHOWN + 1) {
            writeln!(f, "and {} more violations", more + 1)?;
        }
        writeln!(f, "run it again: {}", self.options.command(self.seed))
    }
}
