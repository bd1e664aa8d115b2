//! What a compiled program runs on: tables, registers, counters, hashes and
//! checksums, and the [`Engine`] interface that the interpreter and the code
//! generator implement.

pub mod engine;

pub use engine::*;

/// Tables, registers, counters and meters of a loaded program.
pub struct TargetState {}
