//! Requests of a group that wait, and their answers.

use std::collections::BTreeSet;

use stateplane_sync::Ticket;
use stateplane_wire::sync::Outcome;

use super::{
    Change, ChangeDone, CutMade, CutRequest, ReadRequest, Reading, Reply, TotalsReading, ViewError,
};

/// Gives an answer, or this refusal in its stead.
type Give = Box<dyn FnOnce(Option<ViewError>) + Send>;

/// An answer that leaves when what it says is certain.
pub(in crate::sync) struct Answer {
    /// Position of the fact that it needs.
    pub(super) position: u64,
    pub(super) give: Give,
}

impl Answer {
    pub(in crate::sync) fn give(self) {
        (self.give)(None);
    }
}

pub(super) struct WaitingRead {
    pub(super) request: ReadRequest,
    /// Generation and poll that the mark must have.
    pub(super) poll: Option<(u64, u64)>,
    pub(super) end: u64,
    pub(super) reply: ReadReply,
}

/// Gets what was read.
pub(super) enum ReadReply {
    Values(Reply<Reading>),
    Totals(Reply<TotalsReading>),
}

impl ReadReply {
    /// Has it refused when the answers are given.
    pub(super) fn refuse(self, answers: &mut Vec<Answer>, error: ViewError) {
        match self {
            ReadReply::Values(reply) => answer(answers, 0, reply, Err(error)),
            ReadReply::Totals(reply) => answer(answers, 0, reply, Err(error)),
        }
    }
}

pub(super) struct WaitingChange {
    pub(super) change: Change,
    pub(super) next: usize,
    pub(super) pieces: u32,
    pub(super) tickets: BTreeSet<Ticket>,
    pub(super) outcome: Outcome,
    pub(super) is_unknown: bool,
    /// Position of the fact that it began.
    pub(super) begun: u64,
    pub(super) end: u64,
    pub(super) replies: Vec<Reply<ChangeDone>>,
}

pub(super) struct WaitingCut {
    pub(super) request: CutRequest,
    /// The core has it.
    pub(super) is_asked: bool,
    /// Epoch and term, once it was made.
    pub(super) made: Option<(u32, u64)>,
    /// The window, once it came, and the position of the fact that it is kept.
    pub(super) window: Option<CutMade>,
    pub(super) position: u64,
    pub(super) end: u64,
    pub(super) reply: Reply<CutMade>,
}

/// Has `reply` called with `said` when the fact at `position` is certain.
pub(super) fn answer<T: Send + 'static>(
    answers: &mut Vec<Answer>,
    position: u64,
    reply: Reply<T>,
    said: Result<T, ViewError>,
) {
    let give = Box::new(move |refusal: Option<ViewError>| match refusal {
        Some(error) => reply(Err(error)),
        None => reply(said),
    });
    answers.push(Answer { position, give });
}
