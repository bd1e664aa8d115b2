//! Datagrams that leave at once.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use stateplane_seal::TRAILER_LENGTH;

use super::{BURST, NOWHERE};

/// A datagram that waits to leave.
#[derive(Debug)]
struct Waiting {
    to: SocketAddrV4,
    message: Arc<Vec<u8>>,
    trailer: Option<[u8; TRAILER_LENGTH]>,
}

/// Datagrams that leave at once, in their order.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    waiting: Vec<Waiting>,
}

impl Outgoing {
    /// Lets `message`, with what is put behind it, leave with the next
    /// [`send`](Self::send).
    pub(crate) fn push(
        &mut self,
        to: SocketAddrV4,
        message: Arc<Vec<u8>>,
        trailer: Option<[u8; TRAILER_LENGTH]>,
    ) {
        self.waiting.push(Waiting {
            to,
            message,
            trailer,
        });
    }

    /// True if the waiting datagrams fill one system call.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= BURST
    }

    /// Sends all that wait; gives how many of them the system did not take, which are lost
    /// as on a wire.
    pub(crate) fn send(&mut self, socket: &UdpSocket) -> u64 {
        let mut failed = 0;
        let mut rest = &self.waiting[..];
        while !rest.is_empty() {
            let burst = &rest[..rest.len().min(BURST)];
            let sent = match send_burst(socket, burst) {
                Ok(sent) => sent.clamp(1, burst.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                // It is the first one's.
                Err(_) => {
                    failed += 1;
                    1
                }
            };
            rest = &rest[sent..];
        }
        self.waiting.clear();
        failed
    }
}

/// Sends the first datagrams of `burst`, which has at most [`BURST`]; gives how many.
#[allow(unsafe_code)]
fn send_burst(socket: &UdpSocket, burst: &[Waiting]) -> io::Result<usize> {
    let mut to = [NOWHERE; BURST];
    for (address, waiting) in to.iter_mut().zip(burst) {
        address.sin_addr.s_addr = waiting.to.ip().to_bits().to_be();
        address.sin_port = waiting.to.port().to_be();
    }
    let part = |bytes: &[u8]| libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let parts: [[libc::iovec; 2]; BURST] = std::array::from_fn(|at| match burst.get(at) {
        Some(waiting) => {
            let trailer = waiting.trailer.as_ref();
            [
                part(&waiting.message),
                part(trailer.map_or(&[], |trailer| &trailer[..])),
            ]
        }
        None => [part(&[]); 2],
    });
    let mut headers: [libc::mmsghdr; BURST] = std::array::from_fn(|at| libc::mmsghdr {
        msg_hdr: libc::msghdr {
            msg_name: (&raw mut to[at]).cast(),
            msg_namelen: size_of::<libc::sockaddr_in>() as libc::socklen_t,
            msg_iov: (&raw const parts[at][0]).cast_mut(),
            msg_iovlen: 2,
            msg_control: std::ptr::null_mut(),
            msg_controllen: 0,
            msg_flags: 0,
        },
        msg_len: 0,
    });
    // SAFETY: each of the first headers, as many as said, names an address and two parts
    // that live through the call and that the system only reads.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            burst.len().min(BURST) as libc::c_uint,
            libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
