//! The engine of sync as a target of gNMI (specification 0.10): the service `gnmi.gNMI` over the
//! tree of `yang/stateplane-sync.yang`.
//!
//! The protocol is a core without IO: [`get`] answers a request from [`Facts`], and
//! [`Subscriptions`] makes of facts at given times the messages of one subscriber. [`service`] is
//! the gRPC service around both, to be served beside stateplane.sync.v1.View.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the service has clocks and tasks"
)]

mod facts;
mod get;
mod path;
mod refusal;
mod request;
mod schema;
mod service;
mod subscriptions;
mod value;

pub use facts::{Facts, GroupFacts, GroupInfo, Needs, WindowNext};
pub use get::{Tree, get};
pub use refusal::Refusal;
pub use service::{GnmiService, MODEL_TEXT, capabilities, service};
pub use subscriptions::{Moment, Subscriptions};

/// Messages, client and server of the packages gnmi and gnmi_ext.
pub mod proto {
    /// gnmi.
    #[expect(missing_docs, reason = "the definition in proto/ has the comments")]
    #[allow(
        clippy::all,
        clippy::too_many_lines,
        deprecated,
        reason = "generated code"
    )]
    pub mod gnmi {
        include!(concat!(env!("OUT_DIR"), "/gnmi.rs"));
    }

    /// gnmi_ext.
    #[expect(missing_docs, reason = "the definition in proto/ has the comments")]
    #[allow(clippy::all, clippy::too_many_lines, reason = "generated code")]
    pub mod gnmi_ext {
        include!(concat!(env!("OUT_DIR"), "/gnmi_ext.rs"));
    }
}
