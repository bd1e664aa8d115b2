//! Controller of the store: configurations of the shards' chains. What it knows of servers, and where
//! it places shards, is `stateplane-membership`.
//!
//! A [`Controller`] is driven from outside like every core: messages and the time go
//! in through `handle_*`, datagrams come out of `poll_transmit`. A new configuration
//! of a chain comes out of [`Controller::poll_record`] first and takes effect with
//! [`Controller::handle_stored`], when it lies in a log that outlives the process:
//! so no chain ever has two configurations of one number.
//!
//! Switches learn from it where the heads are ([`Rows`]).
//!
//! Why a partition never leaves two chains serving one shard is told in
//! `docs/replication-protocol.md`: every answer needs all members of a configuration,
//! and two configurations that follow each other have a member in common that
//! serves but one of them.

mod controller;
mod rows;
mod settings;

pub use controller::{Controller, ControllerCounters, ServerView, Transmit};
pub use rows::Rows;
pub use settings::{Settings, SettingsError};
