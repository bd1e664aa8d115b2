//! Report of a run.

use super::fault::Fault;
use crate::coordination::Frames;
use serde::Serialize;
use stateplane_history::multicast::{EventKind, Filled, History, MulticastEvent, judge};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Events of a violation that are shown at most.
const MOST_SHOWN: usize = 12;

/// Counts of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Operations of the store that clients called.
    pub called: usize,
    /// Operations of the store that were answered.
    pub answered: usize,
    /// Messages that senders sent.
    pub sent: usize,
    /// Messages that were complete.
    pub completed: usize,
    /// Messages that were refused.
    pub refused: usize,
    /// Deliveries to receivers.
    pub delivered: usize,
    /// Senders and receivers that were killed.
    pub died: usize,
    /// Receivers that were taken off their list, and replicas that were too far behind.
    pub taken_off: usize,
    /// Times that a receiver joined.
    pub joined: usize,
    /// Most messages in the queue of a receiver.
    pub longest_queue: u64,
    /// Longest time in ms from an operation to its answer.
    pub longest_answer_ms: u64,
    /// Longest time in ms from a message to its completion.
    pub longest_ms: u64,
    /// Longest time in ms between two deliveries of a receiver.
    pub longest_gap_ms: u64,
}

impl Counts {
    /// Counts the events of a history.
    pub fn of(history: &History) -> Self {
        let mut counts = Self::default();
        let mut sent = BTreeMap::new();
        let mut last = BTreeMap::new();
        let mut called = BTreeMap::new();
        for event in &history.events {
            let of = match &event.kind {
                EventKind::Died { .. } => {
                    counts.died += 1;
                    continue;
                }
                EventKind::Call { operation, .. } => {
                    counts.called += 1;
                    called.insert(*operation, event.at);
                    continue;
                }
                EventKind::Return { operation, .. } => {
                    counts.answered += 1;
                    let began = called.remove(operation).unwrap_or(event.at);
                    let took = (event.at - began) / 1000;
                    counts.longest_answer_ms = counts.longest_answer_ms.max(took);
                    continue;
                }
                EventKind::Of(of) => of,
                _ => continue,
            };
            match of {
                MulticastEvent::Sent { message, .. } => {
                    counts.sent += 1;
                    sent.insert(*message, event.at);
                }
                MulticastEvent::Completed { message, .. } => {
                    counts.completed += 1;
                    let began = sent.remove(message).unwrap_or(event.at);
                    counts.longest_ms = counts.longest_ms.max((event.at - began) / 1000);
                }
                MulticastEvent::Refused { .. } => counts.refused += 1,
                MulticastEvent::Delivered { node, .. } => {
                    counts.delivered += 1;
                    let before = last.insert(*node, event.at).unwrap_or(event.at);
                    let gap = (event.at - before) / 1000;
                    counts.longest_gap_ms = counts.longest_gap_ms.max(gap);
                }
                MulticastEvent::Joined { .. } => counts.joined += 1,
                MulticastEvent::Left { .. } => counts.taken_off += 1,
                MulticastEvent::Fills {
                    what: Filled::Queue,
                    count,
                    ..
                } => counts.longest_queue = counts.longest_queue.max(*count),
                _ => {}
            }
        }
        counts
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        self.called += other.called;
        self.answered += other.answered;
        self.sent += other.sent;
        self.completed += other.completed;
        self.refused += other.refused;
        self.delivered += other.delivered;
        self.died += other.died;
        self.taken_off += other.taken_off;
        self.joined += other.joined;
        self.longest_queue = self.longest_queue.max(other.longest_queue);
        self.longest_answer_ms = self.longest_answer_ms.max(other.longest_answer_ms);
        self.longest_ms = self.longest_ms.max(other.longest_ms);
        self.longest_gap_ms = self.longest_gap_ms.max(other.longest_gap_ms);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.called > 0 {
            writeln!(
                f,
                "  operations  {} called, {} answered, the slowest after {} ms",
                self.called, self.answered, self.longest_answer_ms
            )?;
            return writeln!(
                f,
                "  hosts       {} killed, {} times joined, {} times begun anew",
                self.died, self.joined, self.taken_off
            );
        }
        writeln!(
            f,
            "  messages    {} sent, {} complete, {} refused, {} deliveries",
            self.sent, self.completed, self.refused, self.delivered
        )?;
        writeln!(
            f,
            "  hosts       {} killed, {} times joined, {} taken off; {} messages in the longest \
             queue",
            self.died, self.joined, self.taken_off, self.longest_queue
        )?;
        writeln!(
            f,
            "  longest     {} ms until a message was complete, {} ms between two deliveries of a \
             receiver",
            self.longest_ms, self.longest_gap_ms
        )
    }
}

/// Frames that faults concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Touched {
    /// Frames that ports lost and doubled.
    #[serde(flatten)]
    pub frames: Frames,
    /// Frames that went a slow way round.
    pub reordered: u64,
}

impl Touched {
    fn of(faults: &[Fault]) -> Self {
        let mut touched = Self::default();
        for fault in faults {
            let frames = fault.frames.unwrap_or_default();
            touched.frames.lost += frames.lost;
            touched.frames.doubled += frames.doubled;
            touched.reordered += fault.detours.unwrap_or(0);
        }
        touched
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        self.frames.lost += other.frames.lost;
        self.frames.doubled += other.frames.doubled;
        self.reordered += other.reordered;
    }
}

impl fmt::Display for Touched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  frames      {} lost, {} doubled, {} sent a slow way round",
            self.frames.lost, self.frames.doubled, self.reordered
        )
    }
}

/// Report of a run of multicast.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The history's file.
    pub history: PathBuf,
    /// Counts of the history.
    #[serde(flatten)]
    pub counts: Counts,
    /// Frames that the faults concerned.
    #[serde(flatten)]
    pub touched: Touched,
    /// Faults, in their order.
    pub faults: Vec<Fault>,
    /// Objections of the checkers, with the events behind them.
    pub violations: Vec<String>,
}

/// Objections of the checkers to a history, with the events behind them.
pub(super) fn violations(history: &History) -> Vec<String> {
    let violations = judge(history).into_iter().map(|violation| {
        let mut text = violation.to_string();
        for index in violation.relevant(history, MOST_SHOWN) {
            text.push_str(&format!("\n  {}", history.events[index]));
        }
        text
    });
    violations.collect()
}

impl Report {
    pub(super) fn new(seed: u64, path: PathBuf, history: &History, faults: Vec<Fault>) -> Self {
        Self {
            seed,
            history: path,
            counts: Counts::of(history),
            touched: Touched::of(&faults),
            faults,
            violations: violations(history),
        }
    }

    /// True if no checker objected.
    pub fn met(&self) -> bool {
        self.violations.is_empty()
    }
}

/// The words of a verdict.
pub(super) fn verdict(violations: usize) -> String {
    match violations {
        0 => "nothing objected to".to_owned(),
        count => format!("{count} violations"),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "multicast, seed {}", self.seed)?;
        write!(f, "{}", self.counts)?;
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
        write!(f, "{}", self.touched)?;
        for violation in &self.violations {
            writeln!(f, "  VIOLATION   {violation}")?;
        }
        writeln!(f, "  verdict     {}", verdict(self.violations.len()))?;
        writeln!(f, "  history     {}", self.history.display())
    }
}
