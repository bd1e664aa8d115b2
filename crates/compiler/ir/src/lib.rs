//! Typed intermediate representation of a checked P4-16 program.
//!
//! Invariants, which make an interpreter short and a code generator direct:
//!
//! * **Static storage.** P4 has no recursion (spec §6.7), so every parameter and
//!   local of every block is one program-wide variable ([`VarId`]); there are no
//!   frames. On entry to a callable its `locals` are reset to their default
//!   value: zero, `false`, invalid header, empty stack.
//! * **One callable per instance.** Generics and constructor parameters are
//!   resolved; each instance of a parser or control is its own [`Parser`] or
//!   [`Control`], whose tables and extern objects carry full control-plane names.
//! * **Expressions have no side effects.** Calls, `table.apply()` and packet
//!   operations are statements; the lowering keeps the source's order of
//!   evaluation with temporaries.
//! * **Copy-in, copy-out** (spec §6.8) at every call: `in` arguments are
//!   expressions, `out` and `inout` arguments are places, written back from left
//!   to right when the callee ends, also by `exit`.
//! * **Types are resolved**: typedefs, newtypes, serialisable enums and tuples are
//!   gone (an enum with an underlying type is its bits, a tuple is a struct).

pub mod annotation;
pub mod beside;
pub mod builder;
pub mod entities;
pub mod expr;
mod graph;
pub mod interface;
mod p4_text;
pub mod parse;
pub mod passes;
mod place;
mod print;
pub mod program;
pub mod stmt;
pub mod types;
pub mod units;
pub mod verify;

#[cfg(test)]
mod sample;

pub use annotation::*;
pub use entities::*;
pub use expr::*;
pub use interface::*;
pub use p4_text::p4_text;
pub use parse::{ParseError, parse};
pub use program::*;
pub use stmt::*;
pub use types::*;
pub use units::*;
pub use verify::{
    MAX_LEAVES, MAX_NESTING, MAX_TYPE_DEPTH, MAX_VARBIT_WIDTH, MAX_WIDTH, VerifyError, verify,
};
