//! The loop that drives a replica with two UDP sockets.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde::Serialize;
use socket2::{Domain, Protocol, Socket, Type};
use stateplane_store::{Counters, Destination, Replica};

use super::{StoreError, StoreFile};
use crate::clock::boot_time_us;

/// Datagrams taken from one socket before what they caused is sent.
pub(super) const BURST: usize = 64;

/// Bytes of kernel buffer asked for in each direction; a burst of a whole link
/// window must fit.
const SOCKET_BUFFER: usize = 8 << 20;

/// Longest wait in µs, so that a request to stop is seen.
pub(super) const LONGEST_WAIT: u64 = 100_000;

/// µs between two reports that other threads may read.
pub const PUBLISH_EVERY: u64 = LONGEST_WAIT;

/// What happened at the sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct HostCounters {
    /// Chain datagrams from an address that is not in the chain.
    pub unknown_neighbour: u64,
    /// Datagrams that the system did not take.
    pub send_failed: u64,
}

/// All counts of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct StoreReport {
    /// At the sockets.
    pub host: HostCounters,
    /// In the replica.
    pub replica: Counters,
}

/// One replica with its sockets.
#[derive(Debug)]
pub struct StoreServer {
    replica: Replica,
    requests: UdpSocket,
    links: UdpSocket,
    chain: Vec<SocketAddrV4>,
    counters: HostCounters,
    /// Where others read the report, and when it is written next.
    published: Option<(Arc<Mutex<StoreReport>>, u64)>,
}

/// Runs a store server until `stop` is set.
///
/// # Errors
///
/// As [`StoreServer::bind`] and [`StoreServer::run`].
pub fn run_store(file: &StoreFile, stop: &AtomicBool) -> Result<StoreReport, StoreError> {
    StoreServer::bind(file)?.run(stop)
}

impl StoreServer {
    /// Opens both sockets for an empty replica. Datagrams that arrive from now on
    /// are taken by [`StoreServer::run`].
    ///
    /// # Errors
    ///
    /// What [`StoreFile::config`] finds; [`StoreError::AddressInUse`],
    /// [`StoreError::AddressNotAvailable`] or [`StoreError::Bind`];
    /// [`StoreError::Random`].
    pub fn bind(file: &StoreFile) -> Result<StoreServer, StoreError> {
        let config = file.config()?;
        let chain = file.chain.iter();
        Ok(StoreServer {
            replica: Replica::new(config, draw_incarnation()?)?,
            requests: open(SocketAddrV4::new(file.listen, file.request_port))?,
            links: open(SocketAddrV4::new(file.listen, file.chain_port))?,
            chain: chain
                .map(|address| SocketAddrV4::new(*address, file.chain_port))
                .collect(),
            counters: HostCounters::default(),
            published: None,
        })
    }

    /// Where switches reach the server.
    pub fn request_address(&self) -> Option<SocketAddr> {
        self.requests.local_addr().ok()
    }

    /// The replica, to look at.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// What happened so far.
    pub fn report(&self) -> StoreReport {
        StoreReport {
            host: self.counters,
            replica: *self.replica.counters(),
        }
    }

    /// The report for other threads to read, at most [`PUBLISH_EVERY`] µs old while the
    /// server runs; nobody else holds it any more once the server has ended.
    pub fn publish(&mut self) -> Weak<Mutex<StoreReport>> {
        let report = Arc::new(Mutex::new(self.report()));
        let shared = Arc::downgrade(&report);
        self.published = Some((report, 0));
        shared
    }

    fn publish_at(&mut self, now: u64) {
        if self.published.as_ref().is_none_or(|(_, due)| now < *due) {
            return;
        }
        let report = self.report();
        if let Some((shared, due)) = &mut self.published {
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = report;
            *due = now + PUBLISH_EVERY;
        }
    }

    /// Serves until `stop` is set, which is seen within 100 ms.
    ///
    /// # Errors
    ///
    /// [`StoreError::Receive`] if the system refuses to wait or to receive.
    pub fn run(mut self, stop: &AtomicBool) -> Result<StoreReport, StoreError> {
        let mut buffer = vec![0; 65_536];
        while !stop.load(Ordering::Relaxed) {
            let now = boot_time_us();
            let due = self.replica.poll_timeout();
            let wait = due.map_or(LONGEST_WAIT, |due| due.saturating_sub(now));
            let sockets = [self.links.as_raw_fd(), self.requests.as_raw_fd()];
            wait_readable(sockets, wait.min(LONGEST_WAIT)).map_err(StoreError::Receive)?;
            self.receive_links(&mut buffer)?;
            self.receive_requests(&mut buffer)?;
            self.replica.handle_timeout(boot_time_us());
            self.send_all();
            self.publish_at(now);
        }
        Ok(self.report())
    }

    fn receive_links(&mut self, buffer: &mut [u8]) -> Result<(), StoreError> {
        for _ in 0..BURST {
            let Some((length, from)) = receive(&self.links, buffer)? else {
                break;
            };
            match self.chain.iter().position(|address| *address == from) {
                Some(position) => {
                    self.replica
                        .handle_chain(boot_time_us(), position as u8, &buffer[..length])
                }
                None => self.counters.unknown_neighbour += 1,
            }
        }
        Ok(())
    }

    fn receive_requests(&mut self, buffer: &mut [u8]) -> Result<(), StoreError> {
        for _ in 0..BURST {
            let Some((length, from)) = receive(&self.requests, buffer)? else {
                break;
            };
            self.replica
                .handle_request(boot_time_us(), from, &buffer[..length]);
        }
        Ok(())
    }

    /// Sends what the replica has to send. A datagram that the system does not
    /// take is lost as on a wire: links resend, and switches ask again.
    fn send_all(&mut self) {
        while let Some(transmit) = self.replica.poll_transmit(boot_time_us()) {
            let sent = match transmit.to {
                Destination::Switch(address) => self.requests.send_to(&transmit.bytes, address),
                Destination::Replica(position) => match self.chain.get(usize::from(position)) {
                    Some(address) => self.links.send_to(&transmit.bytes, address),
                    None => continue,
                },
            };
            if sent.is_err() {
                self.counters.send_failed += 1;
            }
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

/// A number that this machine's earlier starts most likely did not have.
#[allow(unsafe_code)]
pub(super) fn draw_incarnation() -> Result<u32, StoreError> {
    let mut bytes = [0u8; 4];
    // SAFETY: `bytes` is as long as stated. Up to 256 bytes come whole.
    let outcome = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if outcome < 0 {
        return Err(StoreError::Random(io::Error::last_os_error()));
    }
    Ok(u32::from_ne_bytes(bytes).max(1))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn file(listen: Ipv4Addr, port: u16) -> StoreFile {
        let text = format!("listen = \"{listen}\"\nchain = [\"{listen}\"]\nrequest_port = {port}");
        StoreFile::parse("store.toml".as_ref(), &text).unwrap()
    }

    #[test]
    fn an_address_in_use_is_named() {
        let taken = UdpSocket::bind("127.0.0.31:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = StoreServer::bind(&file(Ipv4Addr::new(127, 0, 0, 31), port)).unwrap_err();
        assert_eq!(error.code(), "H109");
        assert!(error.to_string().contains("127.0.0.31"), "{error}");
    }

    #[test]
    fn an_address_of_another_machine_is_named() {
        let error = StoreServer::bind(&file(Ipv4Addr::new(192, 0, 2, 1), 0)).unwrap_err();
        assert_eq!(error.code(), "H110");
    }

    #[test]
    fn it_stops_when_asked() {
        let mut file = file(Ipv4Addr::new(127, 0, 0, 32), 0);
        file.chain_port = 0;
        let report = run_store(&file, &AtomicBool::new(true)).unwrap();
        assert_eq!(report, StoreReport::default());
    }
}
