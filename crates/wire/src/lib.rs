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

mod big_endian;
pub mod chain;
pub mod checksum;
pub mod control;
mod error;
pub mod ethernet;
pub mod ipv4;
pub mod replication;
pub mod tcp;
pub mod udp;

pub use error::{Error, Header};
