//! Controller of the coordination service: chains of switches for its virtual groups, and sessions
//! with their lanes (`docs/coordination-protocol.md`, rules 9, 11, 12, 15 to 19).
//!
//! A [`Controller`] is driven from outside like every core: messages and the time go in through
//! `handle_*`, datagrams come out of [`Controller::poll_transmit`]. A decision comes out of
//! [`Controller::poll_record`] first and takes effect with [`Controller::handle_stored`], when it
//! lies where it outlives the process: so no group has two configurations of one number, and no
//! number of a session returns.
//!
//! `stateplane-membership` has the switches' health and the placement of groups.

mod controller;
mod decision;
mod lanes;
mod redirects;
mod settings;

pub use controller::{
    Controller, ControllerCounters, RefoundError, SwitchView, Transmit, UnsafeStop,
};
pub use decision::{Decision, GroupConfig, LaneBook, LaneRun, Member, OpenSession};
pub use settings::{Settings, SettingsError, Switch};

/// Seed of the keys of the groups' hashes: random bits that nobody else knows.
pub type Seed = [u8; 32];
