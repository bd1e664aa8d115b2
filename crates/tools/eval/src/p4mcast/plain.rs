//! Senders and receivers of datagrams: of the limit, of the poster's protocol and of that like
//! PrimCast. Receivers give the ids of what they delivered back to the senders, which have no more
//! than their window in flight.

use super::frame::{Buffers, Header, kind};
use super::host::{Receives, Sends};
use super::order::GROUPS;
use super::system::{self, PORT, RECEIVERS, SENDERS, Shape, System};
use stateplane_host::clock::boot_time_us;
use stateplane_host::datagram::Endpoint;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;

/// Messages of which a receiver tells a sender together, unless the window is small.
const CREDIT: usize = 32;
/// Messages of which a sender knows whether they were delivered; more than any window has.
const KNOWN: usize = 4096;

fn io(error: std::io::Error) -> String {
    error.to_string()
}

/// A sender.
pub struct PlainSender {
    endpoint: Endpoint,
    buffers: Buffers,
    number: u8,
    leaders: [SocketAddrV4; GROUPS],
    /// The leader of one group has the message for all.
    one_switch: bool,
    /// Messages that were sent.
    sent: u32,
    /// Receivers that lack a message, by its place.
    lacking: Vec<u8>,
    under_way: usize,
}

impl PlainSender {
    /// Opens the socket of the sender `number`.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(system: System, shape: Shape, number: u8) -> Result<Self, String> {
        // One switch reaches all groups.
        let one_switch = system == System::Limit;
        let leader = |group| {
            let place = if one_switch { 0 } else { shape.leader(group) };
            SocketAddrV4::new(system::place(place), PORT)
        };
        Ok(Self {
            endpoint: Endpoint::open(system::sender(number)).map_err(io)?,
            buffers: Buffers::default(),
            number,
            leaders: [leader(0), leader(1)],
            one_switch,
            sent: 0,
            lacking: vec![0; KNOWN],
            under_way: 0,
        })
    }

    fn take(&mut self) -> Result<bool, String> {
        let more = self.endpoint.take().map_err(io)?;
        for (_, datagram) in self.endpoint.taken() {
            let Some((&[kind::CREDIT, ..], ids)) = datagram.split_first_chunk::<4>() else {
                continue;
            };
            for id in ids.as_chunks::<4>().0 {
                let at = (u32::from_be_bytes(*id) >> 1) as usize % KNOWN;
                if let Some(lacking) = self.lacking[at].checked_sub(1) {
                    self.lacking[at] = lacking;
                    self.under_way -= usize::from(lacking == 0);
                }
            }
        }
        Ok(more)
    }
}

impl Sends for PlainSender {
    fn under_way(&self) -> usize {
        self.under_way
    }

    fn send(&mut self, to: u32, _: u64, payload: &[u8]) -> Result<bool, String> {
        let at = (self.sent + 1) as usize % KNOWN;
        if self.lacking[at] > 0 {
            return Ok(false);
        }
        self.sent += 1;
        self.under_way += 1;
        self.lacking[at] = to.count_ones() as u8 * RECEIVERS;
        let header = Header {
            kind: kind::START,
            destinations: to as u8,
            id: self.sent << 1 | u32::from(self.number),
            ..Header::default()
        };
        let datagram = self.buffers.datagram(&header, payload);
        for (group, leader) in self.leaders.iter().enumerate() {
            if to >> group & 1 == 1 {
                self.endpoint.push(*leader, datagram.clone());
                if self.one_switch {
                    break;
                }
            }
        }
        Ok(true)
    }

    fn step(&mut self, until: u64) -> Result<(), String> {
        self.endpoint.flush();
        self.endpoint.wait_until(until).map_err(io)?;
        while self.take()? {}
        Ok(())
    }
}

/// A receiver.
pub struct PlainReceiver {
    endpoint: Endpoint,
    order: Option<Order>,
    /// Ids of what was delivered and not told, by sender.
    owed: [Vec<u8>; SENDERS as usize],
    /// Ids that are told together.
    together: usize,
}

impl PlainReceiver {
    /// Opens the socket of the receiver `number`; each sender has `in_flight` messages in flight at
    /// most.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(system: System, number: u8, in_flight: u8) -> Result<Self, String> {
        let owed = || vec![kind::CREDIT, 0, 0, 0];
        Ok(Self {
            endpoint: Endpoint::open(system::receiver(number)).map_err(io)?,
            order: (system == System::Poster).then(Order::default),
            owed: [owed(), owed()],
            // Receivers of two groups may owe different ones.
            together: CREDIT.min(usize::from(in_flight) / 4).max(1),
        })
    }

    fn take(&mut self, take: &mut dyn FnMut(u64, &[u8])) -> Result<bool, String> {
        let more = self.endpoint.take().map_err(io)?;
        let owed = &mut self.owed;
        let mut deliver = |id: u32, payload: &[u8]| {
            take(boot_time_us(), payload);
            owed[id as usize & 1].extend(id.to_be_bytes());
        };
        for (_, datagram) in self.endpoint.taken() {
            let Some((header, payload)) = Header::parse(datagram) else {
                continue;
            };
            match &mut self.order {
                _ if header.kind != kind::DELIVER => {}
                Some(order) => {
                    order.insert(&header, payload);
                    while let Some((id, payload)) = order.next() {
                        deliver(id, &payload);
                    }
                }
                None => deliver(header.id, payload),
            }
        }
        for (number, owed) in (0..).zip(&mut self.owed) {
            if owed.len() >= 4 * (1 + self.together) {
                let credit = owed.clone().into();
                self.endpoint.push(system::sender(number), credit);
                owed.truncate(4);
            }
        }
        self.endpoint.flush();
        Ok(more)
    }
}

impl Receives for PlainReceiver {
    fn step(&mut self, until: u64, take: &mut dyn FnMut(u64, &[u8])) -> Result<(), String> {
        self.endpoint.wait_until(until).map_err(io)?;
        while self.take(take)? {}
        Ok(())
    }
}

/// Messages of the poster's protocol by their final timestamps. One may be delivered when all
/// proposals of the own group's leader have come of which the switch knew when it decided it: later
/// ones are greater than its final timestamp.
#[derive(Debug, Default)]
struct Order {
    /// Proposal up to which all have come, and those beyond.
    all: u32,
    beyond: BTreeSet<u32>,
    /// Messages that wait, by final timestamp and id: the proposal up to which all must have come, and
    /// the payload.
    waiting: BTreeMap<(u64, u32), (u32, Vec<u8>)>,
}

impl Order {
    fn insert(&mut self, header: &Header, payload: &[u8]) {
        self.beyond.insert(header.sequence);
        while self.beyond.remove(&(self.all + 1)) {
            self.all += 1;
        }
        let waits = (header.known, payload.to_vec());
        self.waiting.insert((header.timestamp, header.id), waits);
    }

    fn next(&mut self) -> Option<(u32, Vec<u8>)> {
        let first = self.waiting.first_entry()?;
        (first.get().0 <= self.all).then(|| {
            let ((_, id), (_, payload)) = first.remove_entry();
            (id, payload)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_waits_for_all_proposals_that_may_be_before_it() {
        let mut order = Order::default();
        let mut insert = |timestamp, id, sequence, known| {
            let header = Header {
                timestamp,
                id,
                sequence,
                known,
                ..Header::default()
            };
            order.insert(&header, &[id as u8]);
            let delivered = std::iter::from_fn(|| order.next());
            delivered.map(|(id, _)| id).collect::<Vec<u32>>()
        };
        assert!(insert(7, 12, 2, 3).is_empty());
        assert_eq!(insert(5, 11, 1, 1), [11]);
        assert_eq!(insert(9, 13, 3, 3), [12, 13]);
        assert!(insert(12, 15, 5, 5).is_empty());
        assert_eq!(insert(12, 14, 4, 5), [14, 15]);
    }
}
