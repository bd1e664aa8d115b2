//! Peers with which the project's services are compared: the services of `stateplane-peers`, and
//! datagrams that only pass hops.

#![allow(clippy::disallowed_types)]

mod echo;

pub use echo::Echo;
pub use stateplane_peers::{Asked, Etcd, Latencies, Redis};
