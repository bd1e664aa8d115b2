//! Answers of the coordination service as histories have them.

mod listing;
mod watching;

pub use listing::{Listing, Progress};
pub use watching::{Tale, Watching};

use stateplane_coordination::Answer;
use stateplane_history::coordination::{Kind, Outcome, Response, Seen};
use stateplane_wire::coordination as wire;

/// Response of an operation that took no effect, and never will.
pub fn never() -> Response {
    Response {
        outcome: Outcome::Never,
        number: 0,
        token: None,
        seen: None,
    }
}

/// An outcome as histories have it; [`Outcome::Never`] for those that leave nothing numbered.
pub fn outcome(outcome: wire::Outcome) -> Outcome {
    match outcome {
        wire::Outcome::Done => Outcome::Done,
        wire::Outcome::Mismatch => Outcome::Mismatch,
        wire::Outcome::Absent => Outcome::Absent,
        wire::Outcome::Taken => Outcome::Taken,
        wire::Outcome::Queued => Outcome::Queued,
        wire::Outcome::Full => Outcome::Full,
        wire::Outcome::StaleToken => Outcome::StaleToken,
        wire::Outcome::Guarded => Outcome::Guarded,
        wire::Outcome::NotOwner => Outcome::NotOwner,
        wire::Outcome::WrongKind => Outcome::WrongKind,
        _ => Outcome::Never,
    }
}

/// An answer as histories have it: with the number of its entry if the operation is `numbered`, else
/// with that of the newest entry of the answerer. `locks` is true of operations on locks.
pub fn response(answer: &Answer, numbered: bool, locks: bool) -> Response {
    let seen = answer.record.as_ref().map(|record| {
        let (kind, number) = match record.kind {
            wire::Kind::None => (Kind::None, 0),
            wire::Kind::Value => (Kind::Value, record.number),
            wire::Kind::Lock => (Kind::Lock, record.number),
            wire::Kind::Empty => (Kind::Empty, record.number),
        };
        let value = (kind == Kind::Value).then(|| record.value.as_slice().into());
        Seen {
            kind,
            number,
            value,
        }
    });
    // Of a value it is the highest token that the record has seen.
    let is_lock = seen.as_ref().is_some_and(|seen| seen.kind == Kind::Lock);
    let told_lock = matches!(
        answer.outcome,
        wire::Outcome::Queued | wire::Outcome::Taken | wire::Outcome::NotOwner
    );
    let lock = is_lock || (locks && told_lock);
    Response {
        outcome: outcome(answer.outcome),
        number: if numbered {
            answer.number
        } else {
            answer.newest
        },
        token: (lock && answer.token != 0).then_some(answer.token),
        seen,
    }
}
