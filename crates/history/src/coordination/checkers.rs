//! The checkers of coordination, by name.

use crate::checker::{Checker, judge_by};
use crate::coordination::ends::{Ends, Serves};
use crate::coordination::event::{Coordination, History, Violation};
use crate::coordination::linearizable::Linearizable;
use crate::coordination::lists::Lists;
use crate::coordination::numbers::Numbers;
use crate::coordination::prefix::Prefix;
use crate::coordination::tokens::Tokens;
use crate::coordination::watches::Watches;
use crate::outputs::Outputs;

/// Every answer belongs to one call, and no call has two.
pub const OUTPUTS: &str = Outputs::<Coordination>::NAME;
/// Each entry has a number of its own, which grows as operations follow each other.
pub const NUMBERS: &str = Numbers::NAME;
/// Answers are those of a log in the order of numbers.
pub const LINEARIZABLE: &str = Linearizable::NAME;
/// The search for such a log was given up; reported by the same checker.
pub const UNDECIDED: &str = Linearizable::UNDECIDED;
/// The tokens of a lock never fall.
pub const TOKENS: &str = Tokens::NAME;
/// The entries of members are beginnings of each other.
pub const PREFIX: &str = Prefix::NAME;
/// Every operation of a living client ends in time.
pub const ENDS: &str = Ends::NAME;
/// Faults over, every group serves.
pub const SERVES: &str = Serves::NAME;
/// Watches tell each change once, in order, or that some are missing.
pub const WATCHES: &str = Watches::NAME;
/// Lists have each record that was there all the time.
pub const LISTS: &str = Lists::NAME;

/// Names of all objections.
pub const NAMES: [&str; 10] = [
    OUTPUTS,
    NUMBERS,
    LINEARIZABLE,
    UNDECIDED,
    TOKENS,
    PREFIX,
    ENDS,
    SERVES,
    WATCHES,
    LISTS,
];

/// A new one of each checker, in the order in which [`judge`] reports.
pub fn all() -> Vec<Box<dyn Checker<Coordination>>> {
    vec![
        Box::<Outputs<Coordination>>::default(),
        Box::<Numbers>::default(),
        Box::<Linearizable>::default(),
        Box::<Tokens>::default(),
        Box::<Prefix>::default(),
        Box::<Ends>::default(),
        Box::<Serves>::default(),
        Box::<Watches>::default(),
        Box::<Lists>::default(),
    ]
}

/// The name of an objection that `name` names.
pub fn named(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|of| *of == name)
}

/// Objections of the checkers of coordination.
pub fn judge(history: &History) -> Vec<Violation> {
    judge_by(history, all())
}
