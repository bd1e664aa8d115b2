//! A software switch without IO: it owns ports, queues, mirror sessions, multicast
//! groups and time, and drives an [`Engine`](stateplane_runtime::Engine) that
//! executes the P4 program.
//!
//! ```text
//!  handle_frame ─► ingress ─┬─► resubmit ──► ingress
//!   generators ─►           ├─► multicast ─┐
//!                           ├─► unicast ───┼─► egress queue ─► egress ─┬─► poll_transmit
//!                           └─► clone ─► hold ─┘       ▲               ├─► recirculate ─► ingress
//!                                                      └──── hold ◄────┴─► clone
//! ```
//!
//! The order of decisions is that of v1model's reference switch (BMv2,
//! `docs/simple_switch.md`): after ingress clone, resubmit, multicast, drop,
//! unicast; after egress clone, drop, recirculate. Beyond it a mirror session has
//! a hold time: its copies wait that long before they enter egress, which is how a
//! data plane waits for a retransmission.
//!
//! Invariants:
//!
//! * Time is an argument in microseconds; equal calls give equal results.
//! * Every queue is bounded, and every packet that ends without being transmitted
//!   is counted under one [`DropReason`]. [`Counters::born`] minus
//!   [`Counters::ended`] is [`Occupancy::total`] after every call.
//! * The work of one call is bounded by [`Limits::work`]; what is left is announced
//!   by [`Switch::poll_timeout`] as due at once.
//! * The switch knows no protocol: frames are bytes to it.

mod config;
mod counters;
mod error;
mod fellows;
mod hold;
mod ports;
mod queue;
mod switch;
mod watch;

pub use config::{
    ETHERTYPE_GENERATED, Generator, Limits, MAX_BATCH, MAX_FRAME, MAX_HOLD_US, MIN_FRAME,
    MirrorSession, Replica, SwitchConfig, Watch,
};
pub use counters::{Counters, DropReason, Occupancy, PortCounters};
pub use error::SwitchError;
pub use fellows::{Alone, Fellows};
pub use stateplane_runtime::Port;
pub use switch::{Switch, Transmit};

#[cfg(test)]
mod tests;
