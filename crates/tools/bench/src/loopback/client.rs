//! A switch that has many writes in flight, each in a datagram of its own.

use super::ROUND;
use crate::Sample;
use stateplane_wire::replication::{Key, MessageType, Packet, Repr};
use std::net::{SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

/// Silence after which requests in flight are sent again.
const SILENCE: Duration = Duration::from_millis(20);
/// Bytes of a packet that a write carries.
const PACKET: usize = 64;

/// One flow with one write in flight.
struct Slot {
    sequence: u32,
    lease_epoch: u32,
    sent: Instant,
    bytes: Vec<u8>,
    waits: bool,
}

/// A closed loop of requests over UDP.
pub struct Client {
    socket: UdpSocket,
    head: SocketAddrV4,
    slots: Vec<Slot>,
    /// True if the other end keeps what it is sent.
    stores: bool,
    nanoseconds: Vec<u32>,
    /// Requests answered so far.
    pub answered: u64,
    /// Requests sent again so far.
    pub resent: u64,
}

fn request(kind: MessageType, slot: usize) -> Repr<'static> {
    let mut key = [0; 16];
    key[..2].copy_from_slice(&[1, 17]);
    key[2..10].copy_from_slice(&(slot as u64).to_be_bytes());
    Repr {
        chain_epoch: 1,
        switch_id: 1,
        incarnation: 7,
        claim: slot as u32 + 1,
        request: slot as u32,
        ..Repr::new(kind, Key(key))
    }
}

impl Client {
    /// A client of the store whose head is at `head`, with a lease of each flow.
    pub fn of_store(head: SocketAddrV4, concurrency: usize) -> Client {
        let mut client = Client::new(head, concurrency, true);
        for slot in 0..concurrency {
            let lease = request(MessageType::LeaseRequest, slot).to_vec();
            let lease = lease.expect("a request fits");
            let mut buffer = [0; 2048];
            let length = loop {
                client.send(&lease);
                if let Ok(length) = client.socket.recv(&mut buffer) {
                    break length;
                }
            };
            let reply = Packet::new_checked(&buffer[..length]).expect("a reply");
            assert_eq!(reply.message_type(), MessageType::LeaseReply);
            client.slots[slot].lease_epoch = reply.lease_epoch();
            client.slots[slot].sequence = reply.sequence();
        }
        client
    }

    /// A client of an echo that begins at `head`.
    pub fn of_echo(head: SocketAddrV4, concurrency: usize) -> Client {
        Client::new(head, concurrency, false)
    }

    fn new(head: SocketAddrV4, concurrency: usize, stores: bool) -> Client {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port of loopback");
        socket.set_read_timeout(Some(SILENCE)).expect("a timeout");
        let slot = || Slot {
            sequence: 0,
            lease_epoch: 1,
            sent: Instant::now(),
            bytes: Vec::new(),
            waits: false,
        };
        Client {
            socket,
            head,
            slots: std::iter::repeat_with(slot).take(concurrency).collect(),
            stores,
            nanoseconds: Vec::new(),
            answered: 0,
            resent: 0,
        }
    }

    fn send(&self, bytes: &[u8]) {
        self.socket
            .send_to(bytes, self.head)
            .expect("loopback takes datagrams");
    }

    /// Sends the next write of a flow.
    fn write(&mut self, at: usize) {
        let packet = [0; PACKET];
        let slot = &mut self.slots[at];
        slot.sequence = slot.sequence.wrapping_add(1);
        let state = u64::from(slot.sequence).to_be_bytes();
        let write = Repr {
            lease_epoch: slot.lease_epoch,
            sequence: slot.sequence,
            state: &state,
            packet: Some(&packet),
            ..request(MessageType::WriteRequest, at)
        };
        slot.bytes.resize(write.buffer_len(), 0);
        write.emit(&mut slot.bytes).expect("a request fits");
        slot.waits = true;
        slot.sent = Instant::now();
        self.send(&self.slots[at].bytes);
    }

    /// True if `reply` answers the write that the flow waits for.
    fn answers(&self, at: usize, reply: &Packet<'_>) -> bool {
        let Some(slot) = self.slots.get(at) else {
            return false;
        };
        let expected = if self.stores {
            MessageType::WriteReply
        } else {
            MessageType::WriteRequest
        };
        slot.waits && reply.message_type() == expected && reply.sequence() == slot.sequence
    }

    /// Writes for half a second, and waits for the last answers.
    pub fn round(&mut self) -> Sample {
        let start = Instant::now();
        let mut answered = 0;
        for at in 0..self.slots.len() {
            self.write(at);
        }
        let mut under_way = self.slots.len();
        let mut buffer = [0; 2048];
        while under_way > 0 {
            let Ok(length) = self.socket.recv(&mut buffer) else {
                for slot in self.slots.iter().filter(|slot| slot.waits) {
                    self.resent += 1;
                    self.send(&slot.bytes);
                }
                continue;
            };
            let Ok(reply) = Packet::new_checked(&buffer[..length]) else {
                continue;
            };
            let at = reply.request() as usize;
            if !self.answers(at, &reply) {
                continue;
            }
            let slot = &mut self.slots[at];
            slot.waits = false;
            let spent = slot.sent.elapsed().as_nanos();
            self.nanoseconds
                .push(u32::try_from(spent).unwrap_or(u32::MAX));
            answered += 1;
            if start.elapsed() < ROUND {
                self.write(at);
            } else {
                under_way -= 1;
            }
        }
        self.answered += answered;
        Sample {
            items: answered,
            spent: start.elapsed(),
        }
    }

    /// µs within which the `share` of all writes so far was answered.
    pub fn latency(&mut self, share: f64) -> f64 {
        self.nanoseconds.sort_unstable();
        let at = (self.nanoseconds.len() as f64 * share) as usize;
        f64::from(self.nanoseconds[at.min(self.nanoseconds.len() - 1)]) / 1000.0
    }
}
