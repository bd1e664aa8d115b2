//! Sockets for datagrams, and bursts of them: a system call takes or sends many.
//!
//! Each datagram leaves separately, not as a segment of a longer one (`UDP_SEGMENT`): its path may
//! contain a switch's port, and a packet socket shows the longer one whole.

mod burst;
mod endpoint;
mod link;
mod outgoing;

pub(crate) use burst::Burst;
pub use endpoint::Endpoint;
pub(crate) use link::{Link, address_towards};
pub(crate) use outgoing::Outgoing;

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

use socket2::{Domain, Protocol, Socket, Type};

/// Maximum number of datagrams that one system call receives or sends.
pub(crate) const BURST: usize = 64;

/// Bytes of kernel buffer asked for in each direction; what a whole window of a link
/// brings must fit.
const SOCKET_BUFFER: usize = 8 << 20;

/// A socket at `address` that never waits, with large buffers.
pub(crate) fn open(address: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    enlarge_buffers(&socket);
    socket.bind(&SocketAddr::V4(address).into())?;
    Ok(socket.into())
}

/// Asks for large buffers: beyond the system's limit if the process may, else up
/// to it. Less is not an error, since links resend.
#[allow(unsafe_code)]
fn enlarge_buffers(socket: &Socket) {
    let size = SOCKET_BUFFER as libc::c_int;
    for (force, plain) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ] {
        for option in [force, plain] {
            // SAFETY: the descriptor is open, and `size` is an int as these
            // options expect.
            let outcome = unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_SOCKET,
                    option,
                    (&raw const size).cast(),
                    size_of::<libc::c_int>() as libc::socklen_t,
                )
            };
            if outcome == 0 {
                break;
            }
        }
    }
}

/// The next datagram, if one is there. Errors that an earlier datagram caused
/// (an unreachable neighbour) are passed over.
pub(crate) fn receive(
    socket: &UdpSocket,
    buffer: &mut [u8],
) -> io::Result<Option<(usize, SocketAddrV4)>> {
    loop {
        match socket.recv_from(buffer) {
            Ok((length, SocketAddr::V4(from))) => return Ok(Some((length, from))),
            Ok((_, SocketAddr::V6(_))) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => pass_over(error)?,
        }
    }
}

/// Returns `Ok` if `error` is no reason to stop receiving.
fn pass_over(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable => Ok(()),
        _ => Err(error),
    }
}

/// Unspecified address.
const NOWHERE: libc::sockaddr_in = libc::sockaddr_in {
    sin_family: libc::AF_INET as libc::sa_family_t,
    sin_port: 0,
    sin_addr: libc::in_addr { s_addr: 0 },
    sin_zero: [0; 8],
};

#[cfg(test)]
mod tests;
