//! Ports on Linux: Ethernet interfaces read and written through packet sockets
//! (`packet(7)`).

mod error;
mod interface;
mod offload;
mod packet_socket;
mod port;

pub use error::PortError;
pub(crate) use packet_socket::Burst;
pub use port::{HostPortCounters, PacketPort};
