//! Report of a run.

use crate::event;
use crate::options::Options;
use stateplane_history::multicast::{History, Violation};
use std::fmt;

/// Events shown of each violation.
const SHOWN_EVENTS: usize = 40;
/// Violations shown of each run.
const SHOWN_VIOLATIONS: usize = 3;

/// Event counts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Messages that senders sent.
    pub sent: u64,
    /// Messages that their senders learned to be complete.
    pub completed: u64,
    /// Messages that receivers delivered, each once for each receiver.
    pub delivered: u64,
    /// Operations of the store that were answered.
    pub answered: u64,
    /// Deaths of switches.
    pub deaths: u64,
    /// Leaders appointed.
    pub appointed: u64,
    /// Receivers that joined with a peer's state.
    pub joined: u64,
    /// Messages that came to a dead node.
    pub lost: u64,
    /// `multicast_events` of all switches together, by [`event`].
    pub events: [u64; EVENTS],
}

/// Indices of `multicast_events` (`MULTICAST_EVENTS` of the library).
const EVENTS: usize = 34;

impl Default for Coverage {
    fn default() -> Self {
        Self {
            sent: 0,
            completed: 0,
            delivered: 0,
            answered: 0,
            deaths: 0,
            appointed: 0,
            joined: 0,
            lost: 0,
            events: [0; EVENTS],
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
    /// Numbers of planned messages and faults.
    pub planned: (usize, usize),
}

impl Report {
    /// True if nobody objects.
    pub fn is_good(&self) -> bool {
        self.violations.is_empty() && self.anomalies.is_empty()
    }

    /// The first to object: a checker, or the world itself.
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
            sent,
            completed,
            delivered,
            answered,
            deaths,
            appointed,
            joined,
            events,
            ..
        } = self.coverage;
        write!(
            f,
            "seed {} in {}: {sent} messages, {completed} complete, {delivered} deliveries; {deaths} deaths, {appointed} leaders appointed, {joined} receivers joined",
            self.seed, self.options.scenario.name
        )?;
        if answered > 0 {
            write!(f, ", {answered} operations answered")?;
        }
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
