//! The evaluation of the RedPlane paper (SIGCOMM 2021, §7) with this project's switches and
//! stores: `stateplane eval redplane`, one experiment a figure. `stateplane eval hazards` does the
//! same for the paper on state that takes several cycles, with the model of `stateplane-hazards`,
//! `stateplane eval netchain` for the paper on coordination, `stateplane eval approsync` for that on
//! views of registers, and `stateplane eval p4mcast` for the poster on ordered multicast.
//!
//! Experiments about time and failures run in the lab's network namespaces, with real
//! processes; those about bytes, buffers and code run in memory, in virtual time. Each writes
//! a table as text, CSV and JSON, and a plot, and says in what it differs from the paper's.
//! `docs/evaluation.md` sets paper and measurement side by side.

pub mod approsync;
mod command;
mod controller;
mod error;
mod experiments;
mod figure;
mod hazards;
mod machine;
mod memory;
mod netchain;
mod network;
mod nodes;
mod options;
mod p4mcast;
mod plot;
mod probe;
mod processors;
mod series;
pub mod statistics;
mod table;
mod trial;

pub use command::Command;
pub use error::EvalError;
pub use figure::Figure;
