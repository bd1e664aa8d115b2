//! A socket with what it takes and sends at once.

use super::{BURST, Burst, Outgoing};
use crate::poll::Readable;
use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use stateplane_seal::TRAILER_LENGTH;

/// A socket that takes and sends datagrams in bursts. Times are µs of
/// [`boot_time_us`](crate::clock::boot_time_us).
#[derive(Debug)]
pub struct Endpoint {
    socket: UdpSocket,
    readable: Readable,
    burst: Burst,
    outgoing: Outgoing,
    lost: u64,
}

impl Endpoint {
    /// Opens a socket at `address`, with large buffers.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn open(address: SocketAddrV4) -> io::Result<Endpoint> {
        let socket = super::open(address)?;
        Ok(Endpoint {
            readable: Readable::new([socket.as_raw_fd()])?,
            socket,
            burst: Burst::new(),
            outgoing: Outgoing::default(),
            lost: 0,
        })
    }

    /// Address of the socket.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn local_addr(&self) -> io::Result<SocketAddrV4> {
        match self.socket.local_addr()? {
            SocketAddr::V4(local) => Ok(local),
            SocketAddr::V6(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Datagrams that the system did not take.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Lets a datagram leave with the next [`flush`](Self::flush), or with as many as one system
    /// call sends.
    pub fn push(&mut self, to: SocketAddrV4, datagram: Arc<Vec<u8>>) {
        self.push_sealed(to, datagram, None);
    }

    /// As [`push`](Self::push), with a seal behind the datagram.
    pub fn push_sealed(
        &mut self,
        to: SocketAddrV4,
        datagram: Arc<Vec<u8>>,
        trailer: Option<[u8; TRAILER_LENGTH]>,
    ) {
        self.outgoing.push(to, datagram, trailer);
        if self.outgoing.is_full() {
            self.flush();
        }
    }

    /// Sends what waits.
    pub fn flush(&mut self) {
        self.lost += self.outgoing.send(&self.socket);
    }

    /// Waits until a datagram is there or until `due`; it may end earlier.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn wait_until(&mut self, due: u64) -> io::Result<()> {
        self.readable.wait_until(due)
    }

    /// Takes the datagrams that are there, at most as many as one system call takes. True if more
    /// may be there.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn take(&mut self) -> io::Result<bool> {
        self.burst.take(&self.socket)?;
        Ok(self.burst.len() == BURST)
    }

    /// The socket, by which [`open_datagram`](crate::sealing::open_datagram) answers.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// The datagrams that were taken last, and whence they came.
    pub fn taken(&self) -> impl Iterator<Item = (SocketAddrV4, &[u8])> {
        self.burst.iter()
    }
}
