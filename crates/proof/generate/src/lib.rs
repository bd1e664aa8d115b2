//! Random valid P4 programs with packets and table entries, and the comparison of two
//! engines on them.
//!
//! Two engines agree on what the checker and the lowering to IR, which they share, get
//! wrong. So [`semantics`] generates programs of another kind, in which the order of
//! evaluation shows, and compares the interpreter with `stateplane_semantics`, an
//! evaluator of syntax trees that is written from the language specification alone.

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
