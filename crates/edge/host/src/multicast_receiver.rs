//! A receiver of multicast on a socket: drives a [`Receiver`] in the caller's thread.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use stateplane_multicast::{Delivery, FinalTime, MessageId, Receiver, ReceiverConfig};
use stateplane_wire::multicast::{MessageType, PORT, Packet, Repr};
use stateplane_wire::multicast_control::{Joined, Message, NO_NUMBER, joined};

use crate::clock::boot_time_us;
use crate::datagram::{Link, address_towards};
use crate::random::random_bits;
use crate::sealing::{Guard, KeysError, SealReport};

/// µs between two JOINs of a receiver that is not listed.
const ASK_US: u64 = 20_000;

/// µs between two JOINs of a receiver that is listed: signs of life.
const LIVE_US: u64 = 100_000;

/// µs after which RECEIVED is said again.
const TICK_US: u64 = 10_000;

/// How a receiver reaches its group.
#[derive(Debug, Clone)]
pub struct MulticastReceiverConfig {
    /// The controllers, at least one.
    pub controllers: Vec<SocketAddrV4>,
    /// The receiver's own address, at which no other receiver listens; without one, that from which
    /// the system would send to the first controller.
    pub address: Option<Ipv4Addr>,
    /// The group.
    pub group: u8,
    /// Most messages that wait to be fetched: then senders wait.
    pub queue: usize,
}

/// Reason why a receiver could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverError {
    /// The deployment has no such group.
    #[error("there is no group {0}")]
    NoGroup(u8),
    /// The list is full.
    #[error("group {0} has as many receivers as it can have")]
    Full(u8),
    /// The time passed.
    #[error("the controller did not list the receiver in time: no controller or no leader answers")]
    Silent,
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Event for the program, in the order that all receivers have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// The next message.
    Message {
        /// Its id.
        id: MessageId,
        /// Its place in the order.
        at: FinalTime,
        /// Map of the groups that it addressed.
        destinations: u32,
        /// Its payload.
        payload: Vec<u8>,
    },
    /// The receiver was taken off the group's list: it was silent or too slow. There are no more
    /// messages.
    TakenOff,
}

/// A receiver of one group, from the place in the order on at which it was listed. Times are µs of
/// [`boot_time_us`].
#[derive(Debug)]
pub struct MulticastReceiver {
    config: MulticastReceiverConfig,
    link: Link,
    nonce: u64,
    receiver: Option<Receiver>,
    number: u8,
    list: u16,
    /// Greatest final timestamp of what was told before the receiver was listed.
    after: u64,
    /// The receiver's own address.
    own: Ipv4Addr,
    /// Place of a peer's state, if the program began with one.
    behind: Option<FinalTime>,
    refusal: u8,
    /// Epoch and address of the leader.
    leader: Option<(u32, Ipv4Addr)>,
    join_at: u64,
    tick_at: u64,
}

impl MulticastReceiver {
    /// Opens a receiver, and waits until it is listed, until `end` at most. With a guard only sealed
    /// messages are sent and taken.
    ///
    /// # Errors
    ///
    /// [`ReceiverError`].
    pub fn connect(
        config: MulticastReceiverConfig,
        guard: Option<Guard>,
        end: u64,
    ) -> Result<MulticastReceiver, ReceiverError> {
        let address = match config.address {
            Some(address) => address,
            None => address_towards(&config.controllers)?,
        };
        let now = boot_time_us();
        let mut receiver = MulticastReceiver {
            link: Link::open(SocketAddrV4::new(address, PORT), guard)?,
            config,
            nonce: random_bits()?,
            receiver: None,
            number: NO_NUMBER,
            list: 0,
            after: 0,
            own: address,
            behind: None,
            refusal: joined::WAITS,
            leader: None,
            join_at: now,
            tick_at: now,
        };
        while receiver.receiver.is_none() {
            let group = receiver.config.group;
            match receiver.refusal {
                joined::NO_GROUP => return Err(ReceiverError::NoGroup(group)),
                joined::FULL if boot_time_us() >= end => return Err(ReceiverError::Full(group)),
                _ if boot_time_us() >= end => return Err(ReceiverError::Silent),
                _ => receiver.step(end)?,
            }
        }
        Ok(receiver)
    }

    /// The time.
    pub fn now(&self) -> u64 {
        boot_time_us()
    }

    /// Its own address.
    pub fn address(&self) -> Ipv4Addr {
        self.own
    }

    /// Its number in the group's list.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Final timestamp behind which it gets all messages.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// The program has a peer's [state](crate::multicast_state) of this place: what the state has is not
    /// given. To be called before anything is fetched.
    pub fn begin_behind(&mut self, place: FinalTime) {
        self.behind = Some(place);
    }

    /// Messages that wait to be fetched.
    pub fn queued(&self) -> usize {
        self.receiver.as_ref().map_or(0, Receiver::queued)
    }

    /// Timestamp up to which every message was fetched ([`Receiver::passed`]).
    pub fn passed(&self) -> Option<u64> {
        self.receiver.as_ref().and_then(Receiver::passed)
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

    /// The next event, in order.
    pub fn poll(&mut self) -> Option<Received> {
        loop {
            match self.receiver.as_mut()?.poll_deliver()? {
                // It was told to the others before this one was listed.
                Delivery::Message { at, .. } if at.time <= self.after => {}
                Delivery::Message { at, .. } if self.behind.is_some_and(|behind| at <= behind) => {}
                Delivery::Message {
                    id,
                    at,
                    destinations,
                    payload,
                } => {
                    return Some(Received::Message {
                        id,
                        at,
                        destinations,
                        payload,
                    });
                }
                Delivery::Evicted => return Some(Received::TakenOff),
            }
        }
    }

    /// Sends what waits; then waits until a datagram comes, something is due, or `until`; and takes
    /// what came.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn step(&mut self, until: u64) -> io::Result<()> {
        self.flush();
        let due = until.min(self.join_at).min(self.tick_at);
        let mut taken = Vec::new();
        self.link.receive(due, |_, from, message| {
            taken.push((from, message.to_vec()));
        })?;
        for (from, message) in taken {
            self.take(from, &message);
        }
        self.flush();
        Ok(())
    }

    fn take(&mut self, from: SocketAddrV4, bytes: &[u8]) {
        if Message::is_one(bytes) {
            if self.config.controllers.contains(&from)
                && let Ok(Message::Joined(joined)) = Message::parse(bytes)
                && joined.nonce == self.nonce
                && joined.group == self.config.group
            {
                self.joined(&joined);
            }
            return;
        }
        let Ok(packet) = Packet::new_checked(bytes) else {
            return;
        };
        let message = Repr::parse(&packet);
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        if from.port() != PORT || message.group != self.config.group {
            return;
        }
        // A message that the receiver ignores changes nothing.
        let _ = receiver.handle_message(&message);
        // The sender of the latest epoch's message leads.
        if self.leader.is_none_or(|(epoch, _)| epoch <= message.epoch) {
            self.leader = Some((message.epoch, *from.ip()));
        }
        if message.list_version.wrapping_sub(self.list).cast_signed() > 0 {
            // The leader counts no RECEIVED of an older list.
            self.join_at = self.join_at.min(boot_time_us());
        }
        let freed = message.base.wrapping_sub(receiver.position());
        if message.message_type == MessageType::Deliver && freed.cast_signed() > 0 {
            // The log went on without this receiver: it cannot have all any more.
            receiver.handle_eviction();
        }
    }

    fn joined(&mut self, joined: &Joined) {
        self.refusal = joined.state;
        match (joined.state, &mut self.receiver) {
            (joined::LISTED, None) => {
                self.number = joined.number;
                self.list = joined.list;
                self.after = joined.from_time;
                self.receiver = Some(Receiver::new(ReceiverConfig {
                    group: self.config.group,
                    number: joined.number,
                    list_version: joined.list,
                    position: joined.from_index,
                    window: joined.window,
                    queue: self.config.queue.max(1),
                }));
                // The controller learns that it knows its place.
                self.join_at = 0;
            }
            (joined::LISTED, Some(receiver)) if joined.list != self.list => {
                self.list = joined.list;
                receiver.handle_list(joined.list);
            }
            (joined::TAKEN_OFF, Some(receiver)) => receiver.handle_eviction(),
            _ => {}
        }
    }

    fn flush(&mut self) {
        let now = boot_time_us();
        if now >= self.join_at {
            let listed = self.receiver.is_some();
            self.join_at = now + if listed { LIVE_US } else { ASK_US };
            self.join(false);
        }
        if let Some(receiver) = &mut self.receiver {
            if now >= self.tick_at {
                self.tick_at = now + TICK_US;
                receiver.handle_tick();
            }
            if let Some((_, leader)) = self.leader {
                while let Some(received) = receiver.poll_transmit() {
                    if let Ok(bytes) = received.to_vec() {
                        self.link.send(SocketAddrV4::new(leader, PORT), bytes);
                    }
                }
            }
        } else {
            self.tick_at = now + TICK_US;
        }
        self.link.flush();
    }

    fn join(&mut self, leaves: bool) {
        let join = Message::Join {
            nonce: self.nonce,
            group: self.config.group,
            number: self.number,
            position: self.receiver.as_ref().map_or(0, Receiver::position),
            leaves,
        };
        let bytes = join.to_vec();
        for at in 0..self.config.controllers.len() {
            let to = self.config.controllers[at];
            self.link.send(to, bytes.clone());
        }
    }

    /// Leaves the list, and waits for that until `end`.
    pub fn leave(mut self, end: u64) {
        let (nonce, mut left) = (self.nonce, false);
        while !left && boot_time_us() < end {
            self.join(true);
            self.link.flush();
            let due = end.min(boot_time_us() + ASK_US);
            let outcome = self.link.receive(due, |_, _, bytes| {
                if let Ok(Message::Joined(joined)) = Message::parse(bytes) {
                    left |= joined.nonce == nonce && joined.state == joined::TAKEN_OFF;
                }
            });
            if outcome.is_err() {
                return;
            }
        }
    }
}
