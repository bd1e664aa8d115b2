//! Reports of broken invariants.

use stateplane_invariant::Broken;

/// Logs a broken invariant.
pub(crate) fn say_broken(broken: &Broken) {
    tracing::error!(code = broken.invariant.code(), "{broken}");
}
