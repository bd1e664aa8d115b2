//! Report of a run.

use crate::event;
use crate::options::Options;
use stateplane_history::coordination::{History, Violation};
use std::fmt;

/// Events shown of each violation.
const SHOWN_EVENTS: usize = 40;
/// Violations shown of each run.
const SHOWN_VIOLATIONS: usize = 3;
/// Event counts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Operations that clients began.
    pub asked: u64,
    /// Operations that were answered.
    pub answered: u64,
    /// Operations given up.
    pub unknown: u64,
    /// Deaths of switches.
    pub deaths: u64,
    /// Groups founded anew.
    pub refounded: u64,
    /// Configurations made.
    pub configurations: u64,
    /// Messages that came to a dead node.
    pub lost: u64,
    /// Sessions that the reaper ended.
    pub ended: u64,
    /// Changes that watches told.
    pub told: u64,
    /// Times that watches told that entries are missing.
    pub compacted: u64,
    /// Lists of a group's records that came to their end.
    pub listed: u64,
    /// `coordination_events` of all switches together, by [`event`].
    pub events: [u64; 64],
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            asked: 0,
            answered: 0,
            unknown: 0,
            deaths: 0,
            refounded: 0,
            configurations: 0,
            lost: 0,
            ended: 0,
            told: 0,
            compacted: 0,
            listed: 0,
            events: [0; 64],
        }
    }
}

/// Outcome of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The options.
    pub options: Options,
    /// The history of the run.
    pub history: History,
    /// Objections of the checkers.
    pub violations: Vec<Violation>,
    /// Further mistakes that were seen.
    pub anomalies: Vec<String>,
    /// Event counts.
    pub coverage: Coverage,
    /// A number over everything that happened: equal for equal runs.
    pub trace: u64,
    /// Faults and their times.
    pub faults: Vec<(u64, String)>,
    /// Numbers of planned operations and faults.
    pub planned: (usize, usize),
}

impl Report {
    /// True if nobody objects.
    pub fn is_good(&self) -> bool {
        self.violations.is_empty() && self.anomalies.is_empty()
    }

    /// The first that objects: a checker, or the world itself.
    pub fn objection(&self) -> Option<String> {
        match self.violations.first() {
            Some(violation) => Some(violation.checker.to_owned()),
            None => (!self.anomalies.is_empty()).then(|| "the world".to_owned()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Coverage {
            asked,
            answered,
            unknown,
            deaths,
            configurations,
            ended,
            told,
            compacted,
            listed,
            events,
            ..
        } = self.coverage;
        write!(
            f,
            "seed {} in {}: {asked} operations, {answered} answered, {unknown} given up; {deaths} deaths, {configurations} configurations, {ended} sessions ended, {told} changes told, {compacted} times that some are missing, {listed} lists",
            self.seed, self.options.scenario.name
        )?;
        for (index, words) in event::WORDS {
            if events[*index] > 0 {
                write!(f, ", {} {words}", events[*index])?;
            }
        }
        writeln!(f, "; trace {:016x}", self.trace)?;
        if self.is_good() {
            return Ok(());
        }
        for (at, fault) in &self.faults {
            writeln!(f, "    {at}: {fault}")?;
        }
        for anomaly in &self.anomalies {
            writeln!(f, "wrong: {anomaly}")?;
        }
        for violation in self.violations.iter().take(SHOWN_VIOLATIONS) {
            writeln!(f, "violated: {violation}")?;
            for index in violation.relevant(&self.history, SHOWN_EVENTS) {
                writeln!(f, "    {index:6}: {}", self.history.events[index])?;
            }
        }
        if let Some(more) = self.violations.len().checked_sub(SHOWN_VIOLATIONS + 1) {
            writeln!(f, "and {} more violations", more + 1)?;
        }
        writeln!(f, "run it again: {}", self.options.command(self.seed))
    }
}
