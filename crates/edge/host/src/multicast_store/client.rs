//! Clients of the store behind one sender.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use stateplane_multicast::{Call, Event, SendError};
use stateplane_multicast_store::{Busy, Client, ClientConfig, Operation, Reply};

use super::unpadded;
use crate::clock::boot_time_us;
use crate::datagram::{Link, address_towards};
use crate::multicast_sender::{MulticastSender, MulticastSenderConfig, SenderError};
use crate::sealing::{Guard, KeysError, SealReport};

/// µs for which a look at answers waits.
const GLANCE_US: u64 = 1_000;

/// Lanes of the sender for each client: an operation may be repeated before it is complete.
const LANES: usize = 2;

/// How clients reach the store.
#[derive(Debug, Clone)]
pub struct StoreClientConfig {
    /// The controllers, at least one.
    pub controllers: Vec<SocketAddrV4>,
    /// The clients' own address, to which replicas answer; without one, that from which the system
    /// would send to the first controller.
    pub address: Option<Ipv4Addr>,
    /// Shards of the store.
    pub shards: u8,
    /// Number of each client, at least of one: random bits, or what else nobody has.
    pub clients: Vec<u64>,
    /// µs after which an operation without an answer is sent again; the time doubles with each.
    pub repeat_us: u64,
    /// Longest time between two of them, in µs.
    pub longest_repeat_us: u64,
    /// µs after which multicast gives a message up.
    pub give_up_us: u64,
}

impl StoreClientConfig {
    /// Clients that repeat an operation after 100 ms, at least once a second.
    pub fn new(controllers: Vec<SocketAddrV4>, shards: u8, clients: Vec<u64>) -> StoreClientConfig {
        StoreClientConfig {
            controllers,
            address: None,
            shards,
            clients,
            repeat_us: 100_000,
            longest_repeat_us: 1_000_000,
            give_up_us: 10_000_000,
        }
    }
}

/// Reason why clients could not begin.
#[derive(Debug, thiserror::Error)]
pub enum StoreClientError {
    /// The sender could not begin.
    #[error(transparent)]
    Sender(#[from] SenderError),
    /// The deployment has no group for each shard.
    #[error("there are fewer groups than {0} shards")]
    NoGroup(u8),
    /// An operation is too long for a message.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The file of keys is refused.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The time passed.
    #[error("no replica of each shard answers; nothing was changed")]
    Silent,
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Clients of the store, each with one operation at a time. Times are µs of [`boot_time_us`].
pub struct StoreClient {
    clients: Vec<Client>,
    sender: MulticastSender,
    link: Link,
    /// Clients whose messages are under way.
    under_way: BTreeMap<Call, usize>,
}

impl StoreClient {
    /// Opens clients, and waits until all are known to a replica of each shard, until `end` at most.
    /// With a file of `keys` only sealed messages are sent and taken.
    ///
    /// # Errors
    ///
    /// [`StoreClientError`].
    pub fn connect(
        config: StoreClientConfig,
        keys: Option<&Path>,
        end: u64,
    ) -> Result<StoreClient, StoreClientError> {
        let address = match config.address {
            Some(address) => address,
            None => address_towards(&config.controllers)?,
        };
        // Two ends, of which each has peers of its own: switches and controllers, and replicas.
        let guard = || keys.map(Guard::read).transpose();
        let (switches, replicas) = (guard()?, guard()?);
        let lanes = u8::try_from(LANES * config.clients.len()).unwrap_or(u8::MAX);
        let sender = MulticastSenderConfig {
            address: Some(address),
            lanes,
            give_up_us: config.give_up_us,
            ..MulticastSenderConfig::new(config.controllers)
        };
        let sender = MulticastSender::connect(sender, switches, end)?;
        let last = config.shards.checked_sub(1);
        let there = last.is_some_and(|last| (sender.groups() >> last) & 1 == 1);
        if !there {
            return Err(StoreClientError::NoGroup(config.shards));
        }
        let link = Link::open(SocketAddrV4::new(address, 0), replicas)?;
        let reply = link.local_addr()?;
        let client = |client: &u64| {
            let config = ClientConfig {
                client: *client,
                shards: config.shards,
                reply,
                repeat_us: config.repeat_us,
                longest_repeat_us: config.longest_repeat_us,
            };
            Client::new(boot_time_us(), config)
        };
        let mut clients = StoreClient {
            clients: config.clients.iter().map(client).collect(),
            sender,
            link,
            under_way: BTreeMap::new(),
        };
        while !clients.clients.iter().all(Client::is_idle) {
            if boot_time_us() >= end {
                return Err(StoreClientError::Silent);
            }
            clients.step(end)?;
        }
        for at in 0..clients.clients.len() {
            // That it is known.
            clients.poll_reply(at);
        }
        Ok(clients)
    }

    /// Number of clients.
    pub fn count(&self) -> usize {
        self.clients.len()
    }

    /// True if a client, by its place, can begin an operation.
    pub fn is_idle(&self, at: usize) -> bool {
        self.clients.get(at).is_some_and(Client::is_idle)
    }

    /// Begins an operation of a client, by its place, with the next [`StoreClient::step`]; gives its
    /// number.
    ///
    /// # Errors
    ///
    /// [`Busy`], also if there is no such client.
    pub fn call(&mut self, at: usize, operation: Operation) -> Result<u64, Busy> {
        let client = self.clients.get_mut(at).ok_or(Busy::UnderWay)?;
        client.call(boot_time_us(), operation)
    }

    /// The answer of a client's operation, once.
    pub fn poll_reply(&mut self, at: usize) -> Option<Reply> {
        let reply = self.clients.get_mut(at)?.poll_reply()?;
        // Messages that the host sends from here on are behind it.
        self.sender.handle_final(reply.at.time);
        Some(reply)
    }

    /// Counts of sealed messages, if messages are sealed: with switches and controllers, and with
    /// replicas.
    pub fn seals(&self) -> Option<[SealReport; 2]> {
        Some([self.sender.seals()?, self.link.seals()?])
    }

    /// Reads the file of keys again if it changed, at most once a second.
    ///
    /// # Errors
    ///
    /// The new file's, once for each change; the keys so far stay.
    pub fn look(&mut self) -> Result<(), KeysError> {
        // Both ends have to see a change.
        let sender = self.sender.look();
        self.link.look().and(sender)
    }

    /// Sends what is due, waits for a moment or until `until`, and takes what came.
    ///
    /// # Errors
    ///
    /// [`StoreClientError::Send`], [`StoreClientError::Io`].
    pub fn step(&mut self, until: u64) -> Result<(), StoreClientError> {
        let now = boot_time_us();
        for (at, client) in self.clients.iter_mut().enumerate() {
            client.handle_timeout(now);
            if let Some((groups, payload)) = client.poll_send() {
                match self.sender.send(groups, payload) {
                    Ok(call) => _ = self.under_way.insert(call, at),
                    Err(SendError::NoLane) => client.handle_no_lane(),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.sender.step(until.min(now + GLANCE_US))?;
        while let Some(event) = self.sender.poll_event() {
            let (call, refused) = match event {
                Event::Complete { call, .. } => (call, false),
                Event::Refused { call, .. } => (call, true),
                // It stays under way.
                Event::Unknown { .. } => continue,
            };
            let client = self.under_way.remove(&call);
            if let Some(client) = client.and_then(|at| self.clients.get_mut(at))
                && refused
            {
                client.handle_refusal(boot_time_us());
            }
        }
        let (clients, sealed) = (&mut self.clients, self.link.seals().is_some());
        self.link.receive(0, |_, _, bytes| {
            let message = if sealed { unpadded(bytes) } else { Some(bytes) };
            let Some(message) = message else {
                return;
            };
            for client in clients.iter_mut() {
                client.handle_datagram(message);
            }
        })?;
        Ok(())
    }

    /// Ends the sender's session, and waits for that until `end`.
    pub fn close(self, end: u64) {
        self.sender.close(end);
    }
}
