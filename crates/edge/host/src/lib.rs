//! Sockets, ports and clocks: what drives the cores on Linux.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod broken;
pub mod clock;
pub mod controller;
pub mod coordination_client;
pub mod datagram;
pub mod deployment;
pub mod files;
mod greeting;
mod lines;
#[cfg(test)]
mod log_lines;
pub mod metrics;
pub mod multicast_receiver;
pub mod multicast_sender;
pub mod multicast_state;
pub mod multicast_store;
mod poll;
pub mod ports;
pub mod random;
pub mod remote;
pub mod sealing;
pub mod store;
pub mod switch;
pub mod sync;
