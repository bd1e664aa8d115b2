//! Every header that Stateplane speaks, as a view over bytes and as a meaning.
//!
//! Each module describes one header. `Packet` is a view over bytes that were
//! checked once, by `Packet::new_checked`; its getters read fields where they
//! lie. `Repr` is what the header means; `Repr::parse` reads it from a view and
//! `Repr::emit` writes it.
//!
//! # No-panic contract
//!
//! `new_checked`, `parse` and `emit` accept any input: they give a value or an
//! [`Error`], and never panic. A view that `new_checked` gave can be asked for
//! every field.
//!
//! For every `Repr` that `emit` accepts, parsing the emitted bytes gives that
//! `Repr` back; every proper prefix of those bytes that lacks a promised byte is
//! refused.

//! # One table a header
//!
//! A field's place, width, type and meaning are said in one line of one
//! table (the macro `header!` in `src/table.rs`, whose page shows by an example how a header
//! is added). [`LAYOUTS`] lists the tables as data.

mod big_endian;
pub mod chain;
pub mod checksum;
pub mod control;
pub mod coordination;
pub mod coordination_control;
mod error;
pub mod ethernet;
pub mod greeting;
pub mod ipv4;
pub mod layout;
pub mod multicast;
pub mod multicast_control;
pub mod numbers;
pub mod observe;
mod reader;
pub mod replication;
pub mod round_trip;
pub mod sync;
mod table;
pub mod tcp;
pub mod term;
pub mod udp;
mod value;

pub use error::{Error, Header};

/// The fields of every header.
pub const LAYOUTS: &[&layout::Layout] = &[
    &ethernet::LAYOUT,
    &ipv4::LAYOUT,
    &udp::LAYOUT,
    &tcp::LAYOUT,
    &replication::LAYOUT,
    &greeting::LAYOUT,
    &greeting::SETTING_LAYOUT,
    &term::HEARTBEAT_LAYOUT,
    &term::REPLY_LAYOUT,
    &term::QUESTION_LAYOUT,
    &term::ANSWER_LAYOUT,
    &term::ROW_LAYOUT,
    &observe::OBSERVE_LAYOUT,
    &observe::OBSERVED_LAYOUT,
    &observe::OBSERVED_RECORD_LAYOUT,
    &chain::LAYOUT,
    &chain::ENTRY_LAYOUT,
    &chain::SHARD_LAYOUT,
    &chain::RECORD_LAYOUT,
    &chain::HOLDER_LAYOUT,
    &chain::POOL_LAYOUT,
    &chain::END_LAYOUT,
    &control::LAYOUT,
    &control::HEARTBEAT_LAYOUT,
    &control::MEMBER_LAYOUT,
    &control::STATUS_LAYOUT,
    &control::CONFIGURE_LAYOUT,
    &control::CONFIG_LAYOUT,
    &control::SUBSCRIBE_LAYOUT,
    &control::ROWS_LAYOUT,
    &control::ROW_LAYOUT,
    &coordination::LAYOUT,
    &coordination_control::LAYOUT,
    &coordination_control::LEARN_LAYOUT,
    &coordination_control::CHAINS_LAYOUT,
    &coordination_control::CHAIN_LAYOUT,
    &coordination_control::OPEN_LAYOUT,
    &coordination_control::OPENED_LAYOUT,
    &coordination_control::CLOSE_LAYOUT,
    &coordination_control::ENDED_LAYOUT,
    &coordination_control::LIST_LAYOUT,
    &coordination_control::SESSIONS_LAYOUT,
    &coordination_control::SESSION_LAYOUT,
    &sync::LAYOUT,
    &sync::VALUE_LAYOUT,
    &multicast::LAYOUT,
    &multicast_control::LAYOUT,
    &multicast_control::BEAT_LAYOUT,
    &multicast_control::STANDING_LAYOUT,
    &multicast_control::VIEW_LAYOUT,
    &multicast_control::GROUP_LAYOUT,
    &multicast_control::MEMBER_LAYOUT,
    &multicast_control::RECEIVER_LAYOUT,
    &multicast_control::SESSION_LAYOUT,
    &multicast_control::LEARN_LAYOUT,
    &multicast_control::LEADERS_LAYOUT,
    &multicast_control::LEADER_LAYOUT,
    &multicast_control::OPEN_LAYOUT,
    &multicast_control::OPENED_LAYOUT,
    &multicast_control::CLOSE_LAYOUT,
    &multicast_control::CLOSED_LAYOUT,
    &multicast_control::JOIN_LAYOUT,
    &multicast_control::JOINED_LAYOUT,
];
