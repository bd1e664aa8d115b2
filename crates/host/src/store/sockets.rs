//! The two sockets of a store server: what comes is taken fairly, and opened if messages
//! are sealed; what leaves is sealed.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

use serde::Serialize;
use socket2::{Domain, Protocol, Socket, Type};
use stateplane_seal::TRAILER_LENGTH;
use stateplane_store::Limits;
use stateplane_wire::replication::field::SWITCH_ID;

use super::StoreError;
use super::fair::FairQueue;
use crate::clock::boot_time_us;
use crate::sealing::{Guard, KeysError, open_datagram, send_datagram};

/// Requests taken from the system before some of them are served, so many times as are
/// served: it is here, where senders are told apart, that the excess is to be dropped.
const TAKEN: usize = 4;

/// Bytes of requests that wait for their turn.
const QUEUED_BYTES: usize = 4 << 20;

/// Bytes of kernel buffer asked for in each direction; a burst of a whole link
/// window must fit.
const SOCKET_BUFFER: usize = 8 << 20;

/// Longest wait in µs, so that a request to stop is seen.
pub(super) const LONGEST_WAIT: u64 = 100_000;

/// What happened at the sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct HostCounters {
    /// Chain datagrams from an address that is not in the chain.
    pub unknown_neighbour: u64,
    /// Datagrams that the system did not take.
    pub send_failed: u64,
    /// Requests dropped: their sender had its share of what waits.
    pub over_share: u64,
}

/// Counts of sealed messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SealReport {
    /// By what became of them.
    #[serde(flatten)]
    pub messages: stateplane_seal::Counters,
    /// Dropped: from an address that is not its sender's.
    pub wrong_address: u64,
    /// Requests dropped: they name another switch than the one that sealed them.
    pub wrong_switch: u64,
}

/// Which of the two sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Port {
    /// For switches.
    Requests,
    /// For neighbours and the controller.
    Links,
}

/// Both sockets of a server.
#[derive(Debug)]
pub(super) struct Sockets {
    requests: UdpSocket,
    links: UdpSocket,
    buffer: Vec<u8>,
    waiting: FairQueue,
    guard: Option<Guard>,
    wrong_switch: u64,
    counters: HostCounters,
}

impl Sockets {
    /// Opens both at `listen`; with a guard only sealed messages are taken and sent.
    pub(super) fn open(
        listen: Ipv4Addr,
        request_port: u16,
        chain_port: u16,
        guard: Option<Guard>,
    ) -> Result<Sockets, StoreError> {
        Ok(Sockets {
            requests: open(SocketAddrV4::new(listen, request_port))?,
            links: open(SocketAddrV4::new(listen, chain_port))?,
            buffer: vec![0; 65_536],
            waiting: FairQueue::new(QUEUED_BYTES),
            guard,
            wrong_switch: 0,
            counters: HostCounters::default(),
        })
    }

    /// Leaves room for the seals in the datagrams of a replica.
    pub(super) fn make_room(&self, limits: &mut Limits) {
        if self.guard.is_some() {
            limits.make_room(TRAILER_LENGTH);
        }
    }

    /// Where switches reach the server.
    pub(super) fn request_address(&self) -> Option<SocketAddr> {
        self.requests.local_addr().ok()
    }

    pub(super) fn counters(&self) -> HostCounters {
        self.counters
    }

    /// What became of sealed messages, if any are.
    pub(super) fn seals(&self) -> Option<SealReport> {
        let guard = self.guard.as_ref()?;
        Some(SealReport {
            messages: *guard.counters(),
            wrong_address: guard.wrong_address(),
            wrong_switch: self.wrong_switch,
        })
    }

    /// Reads the file of keys again if it changed; `refused` is told why it is not taken.
    pub(super) fn look_at_keys(&mut self, now: u64, refused: &mut dyn FnMut(&KeysError)) {
        if let Some(Err(error)) = self.guard.as_mut().map(|guard| guard.look(now)) {
            refused(&error);
        }
    }

    /// Waits until something came, or `due`, at most 100 ms.
    pub(super) fn wait(&self, due: Option<u64>) -> Result<(), StoreError> {
        let wait = match (self.waiting.is_empty(), due) {
            (false, _) => 0,
            (true, None) => LONGEST_WAIT,
            (true, Some(due)) => due.saturating_sub(boot_time_us()).min(LONGEST_WAIT),
        };
        let sockets = [self.links.as_raw_fd(), self.requests.as_raw_fd()];
        wait_readable(sockets, wait).map_err(StoreError::Receive)
    }

    /// Gives what came to the chain port to `take`, with the time and where it came from;
    /// `take` says whether a neighbour is there. At most `most` datagrams.
    pub(super) fn receive_links(
        &mut self,
        most: usize,
        mut take: impl FnMut(u64, SocketAddrV4, &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        for _ in 0..most {
            let Some((length, from)) = receive(&self.links, &mut self.buffer)? else {
                break;
            };
            let (now, bytes) = (boot_time_us(), &self.buffer[..length]);
            let guard = self.guard.as_mut();
            if let Some(received) = open_datagram(guard, now, &self.links, from, bytes)
                && !take(now, from, received.message)
            {
                self.counters.unknown_neighbour += 1;
            }
        }
        Ok(())
    }

    /// Takes requests from the system, and gives `most` of them to `take`, with the time
    /// and where they came from: one of each sender in turn.
    pub(super) fn receive_requests(
        &mut self,
        most: usize,
        mut take: impl FnMut(u64, SocketAddrV4, &[u8]),
    ) -> Result<(), StoreError> {
        for _ in 0..TAKEN * most {
            let Some((length, from)) = receive(&self.requests, &mut self.buffer)? else {
                break;
            };
            if !self.waiting.push(from, &self.buffer[..length]) {
                self.counters.over_share += 1;
            }
        }
        for _ in 0..most {
            let Some((from, bytes)) = self.waiting.pop() else {
                break;
            };
            let now = boot_time_us();
            let guard = self.guard.as_mut();
            if let Some(received) = open_datagram(guard, now, &self.requests, from, &bytes) {
                let named = received.message.get(SWITCH_ID..SWITCH_ID + 4);
                let is_wrong = |peer: u32| named.is_some_and(|named| *named != peer.to_be_bytes());
                if received.peer.is_some_and(is_wrong) {
                    self.wrong_switch += 1;
                } else {
                    take(now, from, received.message);
                }
            }
            self.waiting.recycle(bytes);
        }
        Ok(())
    }

    /// Sends `message` from one of the sockets. A datagram that the system does not take is
    /// lost as on a wire: links resend, and switches ask again.
    pub(super) fn send(&mut self, port: Port, to: SocketAddrV4, message: &[u8]) {
        let socket = match port {
            Port::Requests => &self.requests,
            Port::Links => &self.links,
        };
        if send_datagram(self.guard.as_mut(), socket, to, message).is_err() {
            self.counters.send_failed += 1;
        }
    }
}

/// The next datagram, if one is there. Errors that an earlier datagram caused
/// (an unreachable neighbour) are passed over.
pub(crate) fn receive(
    socket: &UdpSocket,
    buffer: &mut [u8],
) -> Result<Option<(usize, SocketAddrV4)>, StoreError> {
    loop {
        match socket.recv_from(buffer) {
            Ok((length, SocketAddr::V4(from))) => return Ok(Some((length, from))),
            Ok((_, SocketAddr::V6(_))) => {}
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(None),
                io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable => {}
                _ => return Err(StoreError::Receive(error)),
            },
        }
    }
}

pub(super) fn open(address: SocketAddrV4) -> Result<UdpSocket, StoreError> {
    let open = || {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        enlarge_buffers(&socket);
        socket.bind(&SocketAddr::V4(address).into())?;
        Ok(socket.into())
    };
    open().map_err(|cause: io::Error| match cause.kind() {
        io::ErrorKind::AddrInUse => StoreError::AddressInUse { address },
        io::ErrorKind::AddrNotAvailable => StoreError::AddressNotAvailable { address },
        _ => StoreError::Bind { address, cause },
    })
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

/// Waits until a socket can be read, at most `wait` µs.
#[allow(unsafe_code)]
fn wait_readable(sockets: [RawFd; 2], wait: u64) -> io::Result<()> {
    let mut polled = sockets.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    let timeout = libc::timespec {
        tv_sec: (wait / 1_000_000) as libc::time_t,
        tv_nsec: (wait % 1_000_000 * 1_000) as libc::c_long,
    };
    // SAFETY: `polled` and `timeout` live through the call, the count is that of
    // `polled`, and a null signal mask leaves the mask as it is.
    let outcome = unsafe {
        libc::ppoll(
            polled.as_mut_ptr(),
            polled.len() as libc::nfds_t,
            &raw const timeout,
            std::ptr::null(),
        )
    };
    if outcome < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}
