//! A socket of a client, whose messages are sealed if it has keys.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;

use super::Endpoint;
use crate::clock::boot_time_us;
use crate::sealing::{Guard, KeysError, SealReport, open_datagram};

/// Longest wait: a timer takes a number of seconds that the system knows.
const LONGEST_WAIT: u64 = 3_600_000_000;

/// An [`Endpoint`] that seals what it sends and opens what it takes, if it has a guard.
#[derive(Debug)]
pub(crate) struct Link {
    endpoint: Endpoint,
    guard: Option<Guard>,
}

impl Link {
    /// Opens a socket at `address`.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn open(address: SocketAddrV4, guard: Option<Guard>) -> io::Result<Link> {
        Ok(Link {
            endpoint: Endpoint::open(address)?,
            guard,
        })
    }

    /// Address of the socket.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddrV4> {
        self.endpoint.local_addr()
    }

    /// Datagrams that the system did not take.
    pub(crate) fn lost(&self) -> u64 {
        self.endpoint.lost()
    }

    /// Counts of sealed messages, if messages are sealed.
    pub(crate) fn seals(&self) -> Option<SealReport> {
        let guard = self.guard.as_ref()?;
        Some(SealReport::of(guard, 0))
    }

    /// Reads the file of keys again if it changed, at most once a second.
    ///
    /// # Errors
    ///
    /// The new file's, once for each change; the keys so far stay.
    pub(crate) fn look(&mut self) -> Result<(), KeysError> {
        match &mut self.guard {
            Some(guard) => guard.look(boot_time_us()),
            None => Ok(()),
        }
    }

    /// Lets `message` leave with the next [`Link::flush`].
    pub(crate) fn send(&mut self, to: SocketAddrV4, message: Vec<u8>) {
        let trailer = match &mut self.guard {
            None => None,
            // The guard counts a message to an unknown peer, which is not sent.
            Some(guard) => match guard.seal(*to.ip(), &message) {
                None => return,
                trailer => trailer,
            },
        };
        self.endpoint.push_sealed(to, Arc::new(message), trailer);
    }

    /// Sends what waits.
    pub(crate) fn flush(&mut self) {
        self.endpoint.flush();
    }

    /// Waits until a datagram comes or until `due`, and gives what came to `take`.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn receive(
        &mut self,
        due: u64,
        mut take: impl FnMut(u64, SocketAddrV4, &[u8]),
    ) -> io::Result<()> {
        let now = boot_time_us();
        self.endpoint.wait_until(due.min(now + LONGEST_WAIT))?;
        loop {
            let more = self.endpoint.take()?;
            let now = boot_time_us();
            for (from, bytes) in self.endpoint.taken() {
                let guard = self.guard.as_mut();
                let opened = open_datagram(guard, now, self.endpoint.socket(), from, bytes);
                if let Some(received) = opened {
                    take(now, from, received.message);
                }
            }
            if !more {
                return Ok(());
            }
        }
    }
}

/// The address from which the system would send to the first of `targets`.
///
/// # Errors
///
/// There is no target, or the system has no way to it.
pub(crate) fn address_towards(targets: &[SocketAddrV4]) -> io::Result<Ipv4Addr> {
    let target = targets.first().ok_or(io::ErrorKind::InvalidInput)?;
    let probe = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    probe.connect(target)?;
    match probe.local_addr()? {
        SocketAddr::V4(local) => Ok(*local.ip()),
        SocketAddr::V6(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}
