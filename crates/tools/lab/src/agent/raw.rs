//! Sockets for whole datagrams and frames, by which one process speaks for many hosts.

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use stateplane_wire::ipv4;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

/// A datagram with a header of its own, which the kernel sends as it is.
const WITH_HEADER: i32 = 255;
const ALL_FRAMES: u16 = 0x0003;
/// Linux's number for a full queue.
const ENOBUFS: i32 = 105;

/// The Ethernet address of an interface.
///
/// # Errors
/// If there is no such interface.
pub fn mac_of(interface: &str) -> io::Result<[u8; 6]> {
    let text = std::fs::read_to_string(format!("/sys/class/net/{interface}/address"))?;
    let mac: crate::Mac = text.trim().parse().map_err(io::Error::other)?;
    Ok(mac.0)
}

/// A socket for IPv4 datagrams that leave by `interface`.
///
/// # Errors
/// The system's error.
pub fn sender(interface: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(WITH_HEADER)))?;
    socket.bind_device(Some(interface.as_bytes()))?;
    Ok(socket)
}

/// Sends a whole datagram to where its header says. A full queue loses it, as a link does.
///
/// # Errors
/// The system's error; a datagram without an IPv4 header.
pub fn send(socket: &Socket, datagram: &[u8]) -> io::Result<()> {
    let to = ipv4::Packet::new_checked(datagram).map(|datagram| datagram.destination());
    let to = SocketAddr::V4(SocketAddrV4::new(to.map_err(io::Error::other)?, 0));
    match socket.send_to(datagram, &SockAddr::from(to)) {
        Err(error) if error.raw_os_error() != Some(ENOBUFS) => Err(error),
        _ => Ok(()),
    }
}

/// A socket that reads every frame at every interface, in both directions; a read gives up after 50
/// ms (`WouldBlock`).
///
/// # Errors
/// The system's error.
pub fn receiver() -> io::Result<Socket> {
    let protocol = Protocol::from(i32::from(ALL_FRAMES.to_be()));
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(protocol))?;
    socket.set_recv_buffer_size(4 << 20)?;
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    Ok(socket)
}
