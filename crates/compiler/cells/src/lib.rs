//! A program's use of its registers, from a symbolic run of it.
//!
//! [`cells`] tells which registers a program reads, changes and writes together, and how many cycles
//! that takes. [`locks`] tells which locks its atomic blocks need on several workers.

mod locks;
mod program;
mod symbols;

pub use locks::{Access, Domain, Edge, Grain, KeySlice, LockPlan, Reason, key_slice, locks};
pub use program::{Cell, CellKey, PathStep, Profile, cells};
