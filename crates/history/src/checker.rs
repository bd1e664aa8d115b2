//! The checkers by name, and what they find.

use crate::event::{Endpoint, Event, Flow, History};
use crate::{application, counter, durable, nat, outputs, owner, pool, progress};
use std::fmt;

/// One property of histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Checker {
    /// Every output belongs to one input, and no input has two.
    Outputs,
    /// Outputs of a flow carry the values of a counter that is linearizable.
    Counter,
    /// Outputs of a flow are those of the application that the history names.
    Application,
    /// Inside and public endpoints are mapped one to one.
    Nat,
    /// An exclusive lease overlaps no other.
    SingleOwner,
    /// Every replica has what an output shows before it leaves.
    Durable,
    /// Public ports are neither handed out twice nor lost.
    Pool,
    /// Every write is acknowledged in the end.
    Progress,
}

impl Checker {
    /// All of them, in the order in which [`judge`] asks them.
    pub const ALL: [Self; 8] = [
        Self::Outputs,
        Self::Counter,
        Self::Application,
        Self::Nat,
        Self::SingleOwner,
        Self::Durable,
        Self::Pool,
        Self::Progress,
    ];

    /// Its name in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outputs => "outputs",
            Self::Counter => "counter",
            Self::Application => "application",
            Self::Nat => "nat",
            Self::SingleOwner => "single-owner",
            Self::Durable => "durable",
            Self::Pool => "pool",
            Self::Progress => "progress",
        }
    }

    /// The checker of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|checker| checker.name() == name)
    }

    /// What it objects to in `history`: at most one violation of each flow, endpoint
    /// or replica, the first.
    pub fn check(self, history: &History) -> Vec<Violation> {
        match self {
            Self::Outputs => outputs::check(history),
            Self::Counter => counter::check(history),
            Self::Application => application::check(history),
            Self::Nat => nat::check(history),
            Self::SingleOwner => owner::check(history),
            Self::Durable => durable::check(history),
            Self::Pool => pool::check(history),
            Self::Progress => progress::check(history),
        }
    }
}

impl fmt::Display for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a violation is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A flow.
    Flow(Flow),
    /// An inside or public endpoint.
    Endpoint(Endpoint),
    /// A replica of the store.
    Replica(u8),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow(flow) => write!(f, "flow {flow}"),
            Self::Endpoint(endpoint) => write!(f, "endpoint {endpoint}"),
            Self::Replica(replica) => write!(f, "replica {replica}"),
        }
    }
}

/// A property that a history lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Whose property it is.
    pub checker: Checker,
    /// What it is about.
    pub subject: Subject,
    /// Index of the event at which it shows.
    pub event: usize,
    /// What is wrong, in words.
    pub because: String,
}

impl Violation {
    /// Indices of the last events, up to that at which the violation shows and at
    /// most `most`, that have to do with it.
    pub fn relevant(&self, history: &History, most: usize) -> Vec<usize> {
        let end = history.events.len().min(self.event.saturating_add(1));
        let mut found: Vec<usize> = (0..end)
            .rev()
            .filter(|&index| self.concerns(&history.events[index]))
            .take(most)
            .collect();
        found.reverse();
        found
    }

    fn concerns(&self, event: &Event) -> bool {
        use crate::event::EventKind::{Died, Freed, Mapped, Remaining, Taken};
        if matches!(event.kind, Died { .. }) {
            return true;
        }
        match &self.subject {
            Subject::Flow(flow) => event.kind.flow() == Some(flow),
            Subject::Endpoint(endpoint) => {
                let named = [event.kind.public(), event.kind.inside()];
                named.contains(&Some(*endpoint))
            }
            Subject::Replica(of) => matches!(
                &event.kind,
                Taken { replica, .. }
                | Freed { replica, .. }
                | Mapped { replica, .. }
                | Remaining { replica, .. } if replica == of
            ),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}: {} (event {})",
            self.checker, self.subject, self.because, self.event
        )
    }
}

/// Asks every checker.
pub fn judge(history: &History) -> Vec<Violation> {
    Checker::ALL
        .into_iter()
        .flat_map(|checker| checker.check(history))
        .collect()
}
