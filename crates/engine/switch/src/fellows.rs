//! Switches that run one program with one configuration on several cores.
//!
//! The control plane works with the first while no packet is in any of them, and the others follow
//! it before packets go on: no packet sees one switch changed and another not.

use crate::switch::Switch;
use stateplane_runtime::Engine;

/// The other switches of a program, while a control plane works with the first. Packets are in none
/// of them.
pub trait Fellows<E: Engine> {
    /// Does `work` with each.
    fn each(&mut self, work: &mut dyn FnMut(&mut Switch<E>));

    /// Makes program, entries, mirror sessions and multicast groups of all as those of `first`.
    fn follow(&mut self, first: &mut Switch<E>);
}

/// No others: a switch that runs its program alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl<E: Engine> Fellows<E> for Alone {
    fn each(&mut self, _: &mut dyn FnMut(&mut Switch<E>)) {}

    fn follow(&mut self, _: &mut Switch<E>) {}
}
