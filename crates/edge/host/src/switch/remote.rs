//! Work from other threads, done between two bursts of packets.

use super::SwitchServer;

/// A handle by which other threads reach a switch that runs. No packet is taken while it
/// does their work.
pub type Remote<E> = crate::remote::Remote<SwitchServer<E>>;

/// The server's end of a [`Remote`].
pub type RemoteCalls<E> = crate::remote::RemoteCalls<SwitchServer<E>>;
