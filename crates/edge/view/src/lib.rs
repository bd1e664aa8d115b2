//! Views of an engine of sync over gRPC: the services `stateplane.sync.v1.View`, of register groups,
//! and `stateplane.sync.v1.Flows`, of flows that a store has.
//!
//! [`serve`] is the server. It reads what [`LocalViews`] give at once, and reaches the engine through
//! its [`Remote`] for all else, one short call for each request; packed values are shared with the
//! engine, not copied. [`connect`] gives a client of views,
//! [`flows_client`] one of flows. [`RedisCopies`] keeps copies in a Redis or Valkey
//! server.
//!
//! [`LocalViews`]: stateplane_host::sync::LocalViews
//! [`Remote`]: stateplane_host::remote::Remote

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "server and client have sockets"
)]

mod calls;
mod client;
mod copies;
mod flows;
mod flows_subscription;
mod messages;
mod refusal;
mod service;
mod subscription;

pub use client::{ConnectError, connect, flows_client, open, unpack, view_client};
pub use copies::{RedisCopies, UrlError};
pub use refusal::{CODE_KEY, LEADER_KEY, STANDBY_CODE, code_of, is_standby};
pub use service::{Service, serve};

/// Messages, client and server of the package stateplane.sync.v1.
pub mod proto {
    /// stateplane.sync.v1.
    #[expect(missing_docs, reason = "the definition in proto/ has the comments")]
    #[allow(clippy::all, clippy::too_many_lines, reason = "generated code")]
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/stateplane.sync.v1.rs"));
    }
}
