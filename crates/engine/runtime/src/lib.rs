//! Runtime objects of a compiled program: tables, registers, counters, meters, hashes and
//! checksums, and the [`Engine`] interface that the interpreter and the code generator implement.
//!
//! The control plane sees numbers of any size ([`Value`], [`KeyMatch`]) and names;
//! the data plane sees words ([`bits`]) and handles of the program.

mod adopt;
pub mod bits;
pub mod counter;
mod direct_meter;
pub mod engine;
pub mod error;
mod fellows;
pub mod hash;
mod indirect;
pub mod layout;
mod locks;
pub mod meter;
mod names;
pub mod parser;
pub mod profile;
pub mod register;
mod shared;
pub mod state;
pub mod storage;
pub mod table;
pub mod value;
pub mod value_set;

pub use adopt::Adopted;
pub use counter::{Count, Counter};
pub use engine::*;
pub use error::{Kind, StateError};
pub use layout::Layout;
pub use locks::LockBytes;
pub use meter::{Color, Meter, MeterConfig};
pub use profile::{Group, Profile};
pub use register::Register;
pub use state::{Digest, Events, Outbox, TargetState};
pub use storage::Storage;
pub use table::{
    ActionInfo, Entry, EntryId, IdleEntry, Invocation, KeyInfo, KeyMatch, Listed, Runs, SWEEP_US,
    Table,
};
pub use value::{Shape, Value, parse_value};
pub use value_set::ValueSet;
