//! The coordination service's clients on a socket: drives a [`Connection`] in the caller's thread.

mod lock;
mod opened;
mod session;

pub use lock::LockClient;
pub use opened::{ConnectError, Opened};
pub use session::SessionClient;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use stateplane_coordination::{Connection, ConnectionEvent, Settings};

use crate::clock::boot_time_us;
use crate::datagram::{Link, address_towards};
use crate::random::random_bits;
use crate::sealing::{Guard, KeysError, SealReport};

/// A connection on a socket of its own. Times are µs of [`boot_time_us`].
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    link: Link,
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
        let link = Link::open(SocketAddrV4::new(address, 0), guard)?;
        let settings = Settings {
            deadline_us: config.deadline_us,
            ..Settings::new(link.local_addr()?, 1)
        };
        let now = boot_time_us();
        let (controllers, seed) = (&config.controllers, random_bits()?);
        Ok(Client {
            connection: Connection::new(now, controllers, settings, config.lanes, seed),
            link,
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
        self.link.lost()
    }

    /// Counts of sealed messages, if messages are sealed.
    pub fn seals(&self) -> Option<SealReport> {
        self.link.seals()
    }

    /// Reads the file of keys again if it changed, at most once a second.
    ///
    /// # Errors
    ///
    /// The new file's, once for each change; the keys so far stay.
    pub fn look(&mut self) -> Result<(), KeysError> {
        self.link.look()
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
        let connection = &mut self.connection;
        self.link.receive(due, |now, from, message| {
            connection.handle_datagram(now, from, message);
        })?;
        let now = boot_time_us();
        self.connection.handle_timeout(now);
        self.flush();
        Ok(())
    }

    fn flush(&mut self) {
        while let Some((to, message)) = self.connection.poll_transmit() {
            self.link.send(to, message);
        }
        self.link.flush();
    }
}
