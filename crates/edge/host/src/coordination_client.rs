//! The coordination service's clients on a socket: drives a [`Connection`] in the caller's thread.

mod lock;
mod opened;
mod session;

pub use lock::LockClient;
pub use opened::{ConnectError, Opened};
pub use session::SessionClient;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;

use stateplane_coordination::{Connection, ConnectionEvent, Settings};

use crate::clock::boot_time_us;
use crate::datagram::Endpoint;
use crate::random::random_bits;
use crate::sealing::{Guard, KeysError, SealReport, open_datagram};

/// A connection on a socket of its own. Times are µs of [`boot_time_us`].
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    endpoint: Endpoint,
    guard: Option<Guard>,
}

/// How a client reaches the service.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The controllers, at least one.
    pub controllers: Vec<SocketAddrV4>,
    /// The client's own address, to which switches answer; without one, that from which the
    /// system would send to the first controller.
    pub address: Option<Ipv4Addr>,
    /// Lanes wanted; with 0 the client only reads.
    pub lanes: u16,
    /// Time that an operation has, in µs.
    pub deadline_us: u64,
}

impl Client {
    /// Opens a socket and begins to ask the controllers.
    ///
    /// # Errors
    ///
    /// The system gives no socket, address or random bits; or there is no controller.
    pub fn open(config: &ClientConfig) -> io::Result<Client> {
        Client::open_sealed(config, None)
    }

    /// As [`Client::open`]; with a guard only sealed messages are sent and taken.
    ///
    /// # Errors
    ///
    /// Those of [`Client::open`].
    pub fn open_sealed(config: &ClientConfig, guard: Option<Guard>) -> io::Result<Client> {
        let address = match config.address {
            Some(address) => address,
            None => address_towards(&config.controllers)?,
        };
        let endpoint = Endpoint::open(SocketAddrV4::new(address, 0))?;
        let settings = Settings {
            deadline_us: config.deadline_us,
            ..Settings::new(endpoint.local_addr()?, 1)
        };
        let now = boot_time_us();
        let (controllers, seed) = (&config.controllers, random_bits()?);
        Ok(Client {
            connection: Connection::new(now, controllers, settings, config.lanes, seed),
            endpoint,
            guard,
        })
    }

    /// The time.
    pub fn now(&self) -> u64 {
        boot_time_us()
    }

    /// The connection, to which operations are submitted.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Datagrams that the system did not take.
    pub fn lost(&self) -> u64 {
        self.endpoint.lost()
    }

    /// Counts of sealed messages, if messages are sealed.
    pub fn seals(&self) -> Option<SealReport> {
        let guard = self.guard.as_ref()?;
        Some(SealReport::of(guard, 0))
    }

    /// Reads the file of keys again if it changed, at most once a second.
    ///
    /// # Errors
    ///
    /// The new file's, once for each change; the keys so far stay.
    pub fn look(&mut self) -> Result<(), KeysError> {
        match &mut self.guard {
            Some(guard) => guard.look(boot_time_us()),
            None => Ok(()),
        }
    }

    /// The next event, if there is one without waiting.
    pub fn poll_event(&mut self) -> Option<ConnectionEvent> {
        self.connection.poll_event(boot_time_us())
    }

    /// Sends what waits; then waits until a datagram comes, something is due, or `until`; and takes
    /// what came. Recipes whose timeouts are due earlier name that as `until`.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn step(&mut self, until: u64) -> io::Result<()> {
        self.flush();
        let due = self
            .connection
            .poll_timeout()
            .unwrap_or(u64::MAX)
            .min(until);
        // A timer takes a number of seconds that the system knows; an hour is as good as ever.
        let now = boot_time_us();
        self.endpoint.wait_until(due.min(now + 3_600_000_000))?;
        loop {
            let more = self.endpoint.take()?;
            let now = boot_time_us();
            for (from, bytes) in self.endpoint.taken() {
                let guard = self.guard.as_mut();
                let opened = open_datagram(guard, now, self.endpoint.socket(), from, bytes);
                if let Some(received) = opened {
                    self.connection.handle_datagram(now, from, received.message);
                }
            }
            if !more {
                break;
            }
        }
        let now = boot_time_us();
        self.connection.handle_timeout(now);
        self.flush();
        Ok(())
    }

    fn flush(&mut self) {
        while let Some((to, message)) = self.connection.poll_transmit() {
            let trailer = match &mut self.guard {
                None => None,
                // The guard counts a message to an unknown peer, which is not sent.
                Some(guard) => match guard.seal(*to.ip(), &message) {
                    None => continue,
                    trailer => trailer,
                },
            };
            self.endpoint.push_sealed(to, Arc::new(message), trailer);
        }
        self.endpoint.flush();
    }
}

/// The address from which the system would send to the first of `targets`.
fn address_towards(targets: &[SocketAddrV4]) -> io::Result<Ipv4Addr> {
    let target = targets.first().ok_or(io::ErrorKind::InvalidInput)?;
    let probe = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    probe.connect(target)?;
    match probe.local_addr()? {
        SocketAddr::V4(local) => Ok(*local.ip()),
        SocketAddr::V6(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}
