//! Network namespaces, scenarios with real processes, and the failover demonstration.
//!
//! A [`Topology`] is read from a TOML file; [`Lab::up`] builds it on this machine, one
//! network namespace a node, and takes it down when dropped; [`demo::run`] sends real
//! TCP traffic through it while a switch fails. [`scenario::run`] does so for every
//! application, with its own hosts and checker; [`agent`] is the traffic. [`scenario::run_view`] does
//! so while an engine of sync follows what the switches count. [`coordination::run`]
//! does so for the coordination service, [`multicast::run`] for multicast; [`locks::run`] shows a lock of it that survives failures.
//!
//! The lab calls `ip`, `bridge`, `tc`, `nft`, `ethtool`, `setpriv` and `iperf3`. It runs as root, or as root of a
//! user namespace that it makes for an ordinary user.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod address;
pub mod agent;
mod command;
pub mod coordination;
pub mod demo;
mod error;
mod expectation;
pub mod interrupt;
mod keys;
pub mod locks;
pub mod multicast;
mod page;
mod plot;
mod process;
mod rootless;
mod running;
pub mod runs;
pub mod scenario;
mod setup;
mod show;
mod standing;
mod tail;
mod template;
mod tool;
pub mod topology;

pub use address::{Mac, Prefix};
pub use command::Command;
pub use error::LabError;
pub use process::Process;
pub use rootless::become_root;
pub use running::{InterfaceTraffic, Lab, Setting};
pub use template::{fill, read as read_template};
pub use tool::{require, require_root};
pub use topology::Topology;
