//! Ports on Linux: Ethernet interfaces, read and written through AF_XDP or packet sockets
//! (`packet(7)`), TAP devices, and capture files.

mod address;
mod capture;
mod error;
mod host_use;
mod interface;
mod interface_port;
mod interface_queue;
mod offload;
mod packet_socket;
mod partial;
mod port;
mod queue;
mod spec;
mod tap;
mod xdp;

pub use address::MacAddress;
pub use capture::{CapturedPacket, read_capture, read_packets};
pub use error::PortError;
pub use host_use::check_unused;
pub use port::{HostPortCounters, Port, PortNotice};
pub(crate) use queue::PortQueue;
pub use spec::{Access, PortMode, PortSpec};
pub use xdp::XdpRefusal;
