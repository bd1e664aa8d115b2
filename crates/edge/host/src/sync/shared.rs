//! The store that several engines share: it elects one of them and keeps its facts.

use std::collections::VecDeque;
use std::sync::Arc;

use stateplane_sync::election::{Answer, Request};

use super::{Progress, Window, WriteId};
use crate::remote::Remote;

/// Something that outlives an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A window that is kept.
    Window {
        /// The group's name.
        group: String,
        /// The window.
        window: Window,
        /// Number of the oldest window of the group that is kept: those before it are forgotten.
        oldest: u64,
    },
    /// The last window of each start of a switch, the latest start behind.
    Epochs {
        /// The group's name.
        group: String,
        /// Starts and numbers of cuts.
        epochs: Vec<(u32, u32)>,
    },
    /// Totals of counters, which take the place of those before.
    Totals {
        /// The group's name.
        group: String,
        /// How often totals of the group were kept.
        number: u64,
        /// The totals, in a form that the engine knows.
        bytes: Arc<Vec<u8>>,
    },
    /// How far a write with an id has come.
    Write {
        /// Its place among all writes with ids. One that is
        /// [`MOST_WRITE_IDS`](super::MOST_WRITE_IDS) further is kept in its stead.
        number: u64,
        /// The id.
        id: WriteId,
        /// The progress.
        progress: Progress,
    },
}

/// Work for a [`SharedStore`].
#[derive(Debug)]
pub enum Ask {
    /// A step of the election.
    Elect(Request),
    /// All facts, for the engine with this term.
    Load {
        /// The term.
        term: u64,
    },
    /// Keep these facts, whole and in this order, as long as this term is the greatest one.
    Store {
        /// The term.
        term: u64,
        /// The facts.
        facts: Vec<Fact>,
    },
}

/// Outcome of work of a [`SharedStore`].
#[derive(Debug)]
pub enum Told {
    /// Of [`Ask::Elect`].
    Elected(Answer),
    /// Of [`Ask::Load`], for the engine with `term`: all facts; `None` if the store did not answer,
    /// or has something else than an engine wrote.
    Loaded {
        /// The term.
        term: u64,
        /// The facts, those of windows in the order of their numbers.
        facts: Option<Vec<Fact>>,
    },
    /// Of [`Ask::Store`], for the engine with `term`.
    Stored {
        /// The term.
        term: u64,
        /// False: the term is not the greatest one any more, and what was not kept never will be.
        kept: bool,
    },
}

/// Outcomes that an engine has not seen yet. It asks one thing of each kind at a time, so that they
/// are few.
#[derive(Debug, Default)]
pub struct Outcomes(VecDeque<Told>);

impl Outcomes {
    /// Adds one.
    pub fn push(&mut self, told: Told) {
        self.0.push_back(told);
    }

    /// The next one.
    pub fn pop(&mut self) -> Option<Told> {
        self.0.pop_front()
    }
}

/// A store that several engines reach. It does its work on threads of its own, and gives outcomes to
/// the [`Remote`] that it was made with.
pub trait SharedStore: Send {
    /// Begins to do this. Elections and facts do not wait for each other.
    fn ask(&mut self, ask: Ask);
}

/// Gives the engine an outcome.
pub fn tell(outcomes: &Arc<Remote<Outcomes>>, told: Told) {
    // An engine has one outcome of each kind outstanding, and so there is room.
    let _ = outcomes.post(Box::new(move |queue: &mut Outcomes| queue.push(told)));
}
