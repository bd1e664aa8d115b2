//! Fuzz targets: each takes any bytes, and panics if an invariant does not hold. `fuzz/` at the
//! root of the repository gives them to cargo-fuzz; [`mutate`] makes inputs for short runs without
//! it.

pub mod corpus;
pub mod mutate;
mod targets;

pub use targets::{TARGETS, Target, run};
