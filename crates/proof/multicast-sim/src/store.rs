//! Sockets of the store.

use core::net::{Ipv4Addr, SocketAddrV4};

/// UDP port of replicas and clients.
const PORT: u16 = 4801;

/// Address of a replica or a client at a host.
pub(crate) fn store_socket(host: Ipv4Addr) -> SocketAddrV4 {
    SocketAddrV4::new(host, PORT)
}
