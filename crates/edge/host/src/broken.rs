//! Reports of broken invariants.

use stateplane_invariant::Broken;

/// Reports a broken invariant on standard error.
pub(crate) fn say_broken(broken: &Broken) {
    eprintln!("error[{}]: {broken}", broken.invariant.code());
}
