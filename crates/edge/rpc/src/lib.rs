//! P4Runtime 1.4: control planes drive a switch over gRPC.
//!
//! The protocol is a core without IO, [`Core`]: requests go in, each
//! [`Core::work`] does a bounded part of what waits on a [`Switch`], and
//! [`Core::poll`] gives what is to be told to whom. Requests are served one after
//! another in the order in which they came, so a reader sees a batch as a whole or not at
//! all, and a change of the primary falls between two batches.
//!
//! [`serve`] is the gRPC server around it. A [`Driver`] is the core's end of the channel between
//! the two; the thread that runs the switch calls it between bursts of packets.
//!
//! [`Switch`]: stateplane_switch::Switch

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the server has sockets, and its share of the switch's time is measured"
)]

mod bytes;
pub mod client;
mod connection;
mod core;
mod data;
mod device_config;
mod digest;
mod driver;
mod entity;
mod fit;
mod gather;
mod names;
mod packet;
mod pipeline;
mod read;
mod reconcile;
mod refusal;
mod service;
mod session;
mod status;
mod uses;
mod write;

pub use crate::connection::{Call, ConnectionCounts};
pub use crate::core::VERSION as P4RUNTIME_VERSION;
pub use crate::core::{Core, Loader, Options, Outcome, PipelineAction, Prepared, StreamId, Ticket};
pub use driver::{Driver, channel};
pub use packet::PacketHeader;
pub use pipeline::Pipeline;
pub use refusal::{Refusal, WriteRefusal};
pub use service::{Client, Compile, MAX_MESSAGE, Server, ServerError, Tls, serve, serve_routes};

/// Messages of the package p4.v1, and those it uses.
pub mod proto {
    /// p4.config.v1.
    pub use stateplane_p4info::proto as config;

    pub use google::rpc;
    pub use p4::v1;

    /// Packages of P4.
    pub mod p4 {
        /// p4.v1.
        #[expect(missing_docs, reason = "the definitions in proto/ have the comments")]
        #[allow(clippy::all, clippy::too_many_lines, reason = "generated code")]
        pub mod v1 {
            include!(concat!(env!("OUT_DIR"), "/p4.v1.rs"));
        }
    }

    /// Packages of our own.
    pub mod stateplane {
        /// stateplane.v1.
        #[expect(missing_docs, reason = "the definitions in proto/ have the comments")]
        #[allow(clippy::all, clippy::too_many_lines, reason = "generated code")]
        pub mod v1 {
            include!(concat!(env!("OUT_DIR"), "/stateplane.v1.rs"));
        }
    }

    /// Packages of Google.
    pub mod google {
        /// google.rpc.
        #[expect(missing_docs, reason = "the definitions in proto/ have the comments")]
        #[allow(clippy::all, clippy::too_many_lines, reason = "generated code")]
        pub mod rpc {
            include!(concat!(env!("OUT_DIR"), "/google.rpc.rs"));
        }
    }
}
