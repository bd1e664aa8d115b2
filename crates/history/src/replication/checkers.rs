//! The checkers of replication, by name.

use crate::checker::{Checker, judge_by};
use crate::outputs::Outputs;
use crate::replication::counter::CounterChecker;
use crate::replication::durable::Durable;
use crate::replication::event::{History, Replication, Violation};
use crate::replication::linearizable::Linearizable;
use crate::replication::nat::Nat;
use crate::replication::owner::SingleOwner;
use crate::replication::pool::Pool;
use crate::replication::progress::Progress;

/// Every output belongs to one input, and no input has two.
pub const OUTPUTS: &str = Outputs::<Replication>::NAME;
/// Outputs of a flow carry the values of a counter that is linearizable.
pub const COUNTER: &str = CounterChecker::NAME;
/// Outputs of a flow are those of the application that the history names.
pub const APPLICATION: &str = Linearizable::NAME;
/// Inside and public endpoints are mapped one to one.
pub const NAT: &str = Nat::NAME;
/// An exclusive lease overlaps no other.
pub const SINGLE_OWNER: &str = SingleOwner::NAME;
/// Every replica has what an output shows before it leaves.
pub const DURABLE: &str = Durable::NAME;
/// Public ports are neither handed out twice nor lost.
pub const POOL: &str = Pool::NAME;
/// Every write is acknowledged in the end.
pub const PROGRESS: &str = Progress::NAME;

/// A new one of each checker, in the order in which [`judge`] reports.
pub fn all() -> Vec<Box<dyn Checker<Replication>>> {
    vec![
        Box::<Outputs<Replication>>::default(),
        Box::<CounterChecker>::default(),
        Box::<Linearizable>::default(),
        Box::<Nat>::default(),
        Box::<SingleOwner>::default(),
        Box::<Durable>::default(),
        Box::<Pool>::default(),
        Box::<Progress>::default(),
    ]
}

/// The name of the checker that `name` names.
pub fn named(name: &str) -> Option<&'static str> {
    let mut names = all().into_iter().map(|checker| checker.name());
    names.find(|of| *of == name)
}

/// The names of all, divided by commas.
pub(crate) fn names() -> String {
    let names: Vec<_> = all().into_iter().map(|checker| checker.name()).collect();
    names.join(", ")
}

/// Objections of the checkers of replication.
pub fn judge(history: &History) -> Vec<Violation> {
    judge_by(history, all())
}
