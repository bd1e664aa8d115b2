//! Datagrams that were taken at once.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

use super::{BURST, NOWHERE, pass_over};

/// Room of each datagram: the longest that UDP has, and so much that not all of them begin
/// in the same set of a cache.
const ROOM: usize = 65_536 + 320;

/// Datagrams that were taken at once.
#[derive(Debug)]
pub(crate) struct Burst {
    /// Bytes of all datagrams; each begins at a multiple of [`ROOM`].
    bytes: Vec<u8>,
    /// Whence they came, and their lengths.
    taken: Vec<(SocketAddrV4, usize)>,
}

impl Burst {
    pub(crate) fn new() -> Burst {
        Burst {
            bytes: vec![0; BURST * ROOM],
            taken: Vec::with_capacity(BURST),
        }
    }

    /// Forgets the datagrams taken before, and takes those that are there, at most
    /// [`BURST`].
    ///
    /// # Errors
    ///
    /// The system refuses. What an earlier datagram caused is passed over.
    #[allow(unsafe_code)]
    pub(crate) fn take(&mut self, socket: &UdpSocket) -> io::Result<()> {
        self.taken.clear();
        let mut from = [NOWHERE; BURST];
        let parts: [libc::iovec; BURST] = std::array::from_fn(|at| libc::iovec {
            iov_base: self.bytes[at * ROOM..].as_mut_ptr().cast(),
            iov_len: ROOM,
        });
        let mut headers: [libc::mmsghdr; BURST] = std::array::from_fn(|at| libc::mmsghdr {
            msg_hdr: libc::msghdr {
                msg_name: (&raw mut from[at]).cast(),
                msg_namelen: size_of::<libc::sockaddr_in>() as libc::socklen_t,
                msg_iov: (&raw const parts[at]).cast_mut(),
                msg_iovlen: 1,
                msg_control: std::ptr::null_mut(),
                msg_controllen: 0,
                msg_flags: 0,
            },
            msg_len: 0,
        });
        let count = loop {
            // SAFETY: each header names a room of `bytes` of the length said, which no other
            // one names, and an address; all of them live through the call. There are as
            // many headers as said, and a null timeout is none.
            let count = unsafe {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    headers.as_mut_ptr(),
                    BURST as libc::c_uint,
                    libc::MSG_DONTWAIT,
                    std::ptr::null_mut(),
                )
            };
            if let Ok(count) = usize::try_from(count) {
                break count;
            }
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::WouldBlock {
                break 0;
            }
            pass_over(error)?;
        };
        for (from, header) in from.iter().zip(&headers).take(count) {
            let address = Ipv4Addr::from_bits(u32::from_be(from.sin_addr.s_addr));
            let from = SocketAddrV4::new(address, u16::from_be(from.sin_port));
            let length = (header.msg_len as usize).min(ROOM);
            self.taken.push((from, length));
        }
        Ok(())
    }

    /// The datagrams, and whence they came.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SocketAddrV4, &[u8])> {
        let rooms = self.bytes.chunks(ROOM);
        let taken = self.taken.iter().zip(rooms);
        taken.map(|((from, length), room)| (*from, &room[..*length]))
    }

    pub(crate) fn len(&self) -> usize {
        self.taken.len()
    }
}
