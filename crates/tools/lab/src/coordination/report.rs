//! Report of a run.

use super::Finished;
use super::fault::{Fault, Frames};
use super::line::{Line, UNKNOWN};
use serde::Serialize;
use stateplane_history::coordination::{Scanned, Told, checkers};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Events of a violation that are shown at most.
const MOST_SHOWN: usize = 12;

/// Report of a run of the coordination service.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The history's file.
    pub history: PathBuf,
    /// Operations that were asked.
    pub operations: usize,
    /// Operations by outcome.
    pub outcomes: BTreeMap<String, usize>,
    /// Operations that were given up, be it that their outcome came to be known later.
    pub given_up: usize,
    /// Operations whose outcome nobody knows.
    pub unknown: usize,
    /// Clients that ended with operations under way.
    pub died: usize,
    /// Lists of a group's records that came to their end.
    pub lists: usize,
    /// Changes that a client told which watches all groups.
    pub told: usize,
    /// Times at which it told that changes are missing.
    pub compacted: usize,
    /// Longest time in ms from an invocation to its response.
    pub longest_ms: u64,
    /// Faults, in their order.
    pub faults: Vec<Fault>,
    /// Groups that lost all their members: one was killed while the others seemed dead.
    pub lost: Vec<String>,
    /// Objections of the checkers, with the events behind them.
    pub violations: Vec<String>,
}

impl Report {
    pub(super) fn new(seed: u64, path: PathBuf, finished: &Finished, faults: Vec<Fault>) -> Self {
        let Finished { lines, history, .. } = finished;
        let mut outcomes = BTreeMap::<String, usize>::new();
        let (mut operations, mut given_up, mut longest_ns) = (0, 0, 0);
        let (mut died, mut lists, mut told, mut compacted) = (0, 0, 0, 0);
        for line in lines {
            let line = match line {
                Line::Operation(line) => line,
                Line::Scan(scan) => {
                    lists += usize::from(scan.scanned == Scanned::End.name());
                    continue;
                }
                Line::Told(event) => {
                    told += usize::from(event.key.is_some());
                    compacted += usize::from(event.told == Told::Compacted.name());
                    continue;
                }
                Line::Died { .. } => {
                    died += 1;
                    continue;
                }
                Line::Whole { .. } => continue,
            };
            operations += 1;
            *outcomes.entry(line.outcome.clone()).or_default() += 1;
            given_up += usize::from(line.unknown_ns.is_some());
            let waited = line.responded_ns.map_or(0, |at| at - line.invoked_ns);
            longest_ns = longest_ns.max(waited);
        }
        let violations = checkers::judge(history).into_iter().map(|violation| {
            let mut text = violation.to_string();
            for index in violation.relevant(history, MOST_SHOWN) {
                let event = &history.events[index];
                text.push_str(&format!("\n  {} {:?}", event.at, event.kind));
            }
            text
        });
        let unwatched = finished.unwatched();
        let unwatched = unwatched.map(|group| format!("the watch of {group} never began"));
        Self {
            seed,
            history: path,
            operations,
            unknown: outcomes.get(UNKNOWN).copied().unwrap_or(0),
            outcomes,
            given_up,
            died,
            lists,
            told,
            compacted,
            longest_ms: longest_ns / 1_000_000,
            faults,
            lost: finished.lost.clone(),
            violations: violations.chain(unwatched).collect(),
        }
    }

    /// Frames that ports lost and doubled.
    pub fn frames(&self) -> Frames {
        let frames = self.faults.iter().filter_map(|fault| fault.frames);
        frames.fold(Frames::default(), |sum, of| Frames {
            lost: sum.lost + of.lost,
            doubled: sum.doubled + of.doubled,
        })
    }

    /// True if no checker objected.
    pub fn met(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "coordination, seed {}", self.seed)?;
        write!(f, "  operations  {}:", self.operations)?;
        for (outcome, count) in &self.outcomes {
            write!(f, " {count} {outcome}")?;
        }
        writeln!(f)?;
        for fault in &self.faults {
            writeln!(
                f,
                "  fault       {:15} {:10} {:6} to {:6} ms",
                fault.kind.to_string(),
                fault.target,
                fault.from_ms,
                fault.until_ms
            )?;
        }
        let frames = self.frames();
        writeln!(
            f,
            "  frames      {} lost, {} doubled",
            frames.lost, frames.doubled
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
        let share = |part: usize| 100.0 * part as f64 / self.operations.max(1) as f64;
        writeln!(f, "  longest     {} ms until a response", self.longest_ms)?;
        writeln!(
            f,
            "  unknown     {:.2} % in the end, {:.2} % for a time",
            share(self.unknown),
            share(self.given_up)
        )?;
        for group in &self.lost {
            writeln!(
                f,
                "  lost        {group}: a member was killed while all others seemed dead"
            )?;
        }
        for violation in &self.violations {
            writeln!(f, "  VIOLATION   {violation}")?;
        }
        let verdict = match self.violations.len() {
            0 => "nothing objected to".to_owned(),
            count => format!("{count} violations"),
        };
        writeln!(f, "  verdict     {verdict}")?;
        writeln!(f, "  history     {}", self.history.display())
    }
}
