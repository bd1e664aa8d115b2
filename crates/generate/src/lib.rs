//! Random valid P4 programs with packets and table entries, and the comparison of two
//! engines on them.

pub mod arithmetic;
mod choices;
mod compare;
pub mod evaluate;
pub mod expr;
mod minimise;
mod program;
pub mod properties;
pub mod semantics;
mod session;
pub mod source;

pub use choices::Choices;
pub use compare::{Difference, Mismatch, Outcome, compare, compare_program};
pub use minimise::minimise;
pub use program::{Generated, PORTS, constant_expressions, generate, generate_from};
pub use session::{Arrival, Change, LIMITS, Session, Update, Write};

#[cfg(test)]
mod tests;
