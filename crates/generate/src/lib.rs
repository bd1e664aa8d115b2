//! Random valid P4 programs with packets and table entries, and the comparison of two
//! engines on them.

mod compare;
mod minimise;
mod session;
pub mod source;

pub use compare::{Difference, Mismatch, Outcome, compare, compare_program};
pub use minimise::minimise;
pub use session::{Arrival, LIMITS, Session, Write};

#[cfg(test)]
mod tests;
