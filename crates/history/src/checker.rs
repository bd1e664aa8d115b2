//! One property of histories each, and the driver that feeds them.

use crate::event::{Event, EventKind, History, System};
use std::collections::BTreeSet;
use std::fmt;

/// One property of histories of a system.
pub trait Checker<S: System> {
    /// Its name in texts.
    fn name(&self) -> &'static str;

    /// Takes the next event, which has the number `index` in the history.
    fn handle(&mut self, system: &S, index: usize, event: &Event<S>);

    /// Its objections after the last event: at most one violation of each subject,
    /// the first.
    fn finish(self: Box<Self>, system: &S) -> Vec<Violation<S>>;
}

/// A property that a history lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation<S: System> {
    /// Name of the checker that objects.
    pub checker: &'static str,
    /// Subject of the objection.
    pub subject: S::Subject,
    /// Index of the event at which it shows.
    pub event: usize,
    /// The mistake, in words.
    pub because: String,
}

impl<S: System> Violation<S> {
    /// Indices of the last events, up to that at which the violation shows and at
    /// most `most`, that have to do with it.
    pub fn relevant(&self, history: &History<S>, most: usize) -> Vec<usize> {
        let end = history.events.len().min(self.event.saturating_add(1));
        let mut found: Vec<usize> = (0..end)
            .rev()
            .filter(|&index| self.concerns(&history.events[index]))
            .take(most)
            .collect();
        found.reverse();
        found
    }

    fn concerns(&self, event: &Event<S>) -> bool {
        matches!(event.kind, EventKind::Died { .. }) || S::concerns(&self.subject, &event.kind)
    }
}

impl<S: System> fmt::Display for Violation<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}: {} (event {})",
            self.checker, self.subject, self.because, self.event
        )
    }
}

/// The first objection of one checker to each subject, in the order of events.
#[derive(Clone, Debug)]
pub struct Objections<S: System> {
    checker: &'static str,
    guilty: BTreeSet<S::Subject>,
    found: Vec<Violation<S>>,
}

impl<S: System> Objections<S> {
    /// No objections yet of the checker of that name.
    pub fn new(checker: &'static str) -> Self {
        Self {
            checker,
            guilty: BTreeSet::new(),
            found: Vec::new(),
        }
    }

    /// Objects to `subject` at the event of number `event`, unless it did already.
    pub fn add(&mut self, subject: impl Into<S::Subject>, event: usize, because: String) {
        let subject = subject.into();
        if self.guilty.insert(subject.clone()) {
            self.found.push(Violation {
                checker: self.checker,
                subject,
                event,
                because,
            });
        }
    }

    /// The violations.
    pub fn into_violations(self) -> Vec<Violation<S>> {
        self.found
    }
}

/// Feeds `history` to each of `checkers`; what they object to, in their order.
pub fn judge_by<S: System>(
    history: &History<S>,
    mut checkers: Vec<Box<dyn Checker<S>>>,
) -> Vec<Violation<S>> {
    for (index, event) in history.events.iter().enumerate() {
        for checker in &mut checkers {
            checker.handle(&history.system, index, event);
        }
    }
    checkers
        .into_iter()
        .flat_map(|checker| checker.finish(&history.system))
        .collect()
}
