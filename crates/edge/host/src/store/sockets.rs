//! The two sockets of a store server: what comes is taken in bursts and fairly, and opened
//! if messages are sealed; what leaves is sealed.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use serde::Serialize;
use stateplane_seal::TRAILER_LENGTH;
use stateplane_store::Limits;
use stateplane_wire::replication::field::SWITCH_ID;
use stateplane_wire::term::{HEARTBEAT_LENGTH, is_term};

use super::StoreError;
use super::fair::{Datagram, FairQueue, OVERHEAD};
use crate::clock::boot_time_us;
use crate::datagram::{self, BURST, Burst, Outgoing};
use crate::sealing::{Guard, KeysError, SealReport, open_datagram};
use stateplane_invariant::{Broken, BrokenCounts};

/// Ratio of bursts received from the system to bursts served: the excess has to be dropped here,
/// where senders are told apart.
const TAKEN: usize = 4;

/// Bytes of heartbeats that wait for their turn.
const BEAT_BYTES: usize = 1 << 20;

/// Heartbeats that are served before anything else is.
const BEATS_AT_ONCE: usize = 16 * BURST;

/// Bytes of neighbours' messages that are kept while the disk is waited for.
const HELD_BYTES: usize = 8 << 20;

/// Bytes of requests that wait for their turn.
const QUEUED_BYTES: usize = 4 << 20;

/// Counters at the sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct HostCounters {
    /// Datagrams that the system did not take.
    pub send_failed: u64,
    /// Requests dropped: their sender had its share of what waits.
    pub over_share: u64,
}

/// One of the two sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Port {
    /// For switches.
    Requests,
    /// For neighbours and the controller.
    Links,
}

/// Messages of neighbours and of the controller that came while the disk was waited for. Each is
/// handled as of when it is taken out: until then the server answered as if it had not come.
#[derive(Debug, Default)]
struct Held {
    messages: VecDeque<Datagram>,
    bytes: usize,
}

impl Held {
    /// Keeps a copy of `bytes`, if there is room; what is too much is lost as on a wire.
    fn push(&mut self, from: SocketAddrV4, bytes: &[u8]) {
        let cost = bytes.len() + OVERHEAD;
        if self.bytes + cost <= HELD_BYTES {
            self.bytes += cost;
            self.messages.push_back((from, bytes.to_vec()));
        }
    }

    fn pop(&mut self) -> Option<Datagram> {
        let (from, bytes) = self.messages.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes.len() + OVERHEAD);
        Some((from, bytes))
    }
}

/// Both sockets of a server.
#[derive(Debug)]
pub(super) struct Sockets {
    requests: UdpSocket,
    links: UdpSocket,
    burst: Burst,
    waiting: FairQueue,
    /// Heartbeats of switches, which wait for nothing else.
    beats: FairQueue,
    held: Held,
    /// Requests that are served together.
    turn: Vec<Datagram>,
    replies: Outgoing,
    updates: Outgoing,
    guard: Option<Guard>,
    impersonated: u64,
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
            burst: Burst::new(),
            waiting: FairQueue::new(QUEUED_BYTES),
            beats: FairQueue::new(BEAT_BYTES),
            held: Held::default(),
            turn: Vec::with_capacity(BURST),
            replies: Outgoing::default(),
            updates: Outgoing::default(),
            guard,
            impersonated: 0,
            counters: HostCounters::default(),
        })
    }

    /// True if only sealed messages are taken.
    pub(super) fn is_sealed(&self) -> bool {
        self.guard.is_some()
    }

    /// Leaves room for the seals in the datagrams of a replica.
    pub(super) fn make_room(&self, limits: &mut Limits) {
        if self.guard.is_some() {
            limits.make_room(TRAILER_LENGTH);
        }
    }

    /// Address at which switches reach the server.
    pub(super) fn request_address(&self) -> Option<SocketAddr> {
        self.requests.local_addr().ok()
    }

    /// Descriptors of the link socket and of the request socket.
    pub(super) fn descriptors(&self) -> [RawFd; 2] {
        [self.links.as_raw_fd(), self.requests.as_raw_fd()]
    }

    /// True if requests wait in the senders' queues.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || self.has_beats() || self.has_held()
    }

    /// True if heartbeats wait.
    pub(super) fn has_beats(&self) -> bool {
        !self.beats.is_empty()
    }

    /// True if messages of neighbours wait that came while the disk was waited for.
    pub(super) fn has_held(&self) -> bool {
        !self.held.messages.is_empty()
    }

    pub(super) fn counters(&self) -> HostCounters {
        self.counters
    }

    /// The next broken invariant to report; each is given once.
    pub(super) fn poll_broken(&mut self) -> Option<Broken> {
        self.waiting
            .poll_broken()
            .or_else(|| self.beats.poll_broken())
    }

    /// Counters of broken invariants since the start.
    pub(super) fn broken(&self) -> BrokenCounts {
        let mut broken = self.waiting.broken();
        broken += self.beats.broken();
        broken
    }

    /// Counters of sealed messages, if messages are sealed.
    pub(super) fn seals(&self) -> Option<SealReport> {
        let guard = self.guard.as_ref()?;
        Some(SealReport::of(guard, self.impersonated))
    }

    /// Reads the key file again if it changed; `refused` gets the reason why it is refused.
    pub(super) fn look_at_keys(&mut self, now: u64, refused: &mut dyn FnMut(&KeysError)) {
        if let Some(Err(error)) = self.guard.as_mut().map(|guard| guard.look(now)) {
            refused(&error);
        }
    }

    /// Gives what came to the chain port to `take`, with the time and where it came from:
    /// at most `most` datagrams, a multiple of [`BURST`].
    pub(super) fn receive_links(
        &mut self,
        most: usize,
        mut take: impl FnMut(u64, SocketAddrV4, &[u8]),
    ) -> Result<(), StoreError> {
        while let Some((from, bytes)) = self.held.pop() {
            take(boot_time_us(), from, &bytes);
        }
        for _ in 0..most / BURST {
            self.burst.take(&self.links).map_err(StoreError::Receive)?;
            for (from, bytes) in self.burst.iter() {
                let (now, guard) = (boot_time_us(), self.guard.as_mut());
                if let Some(received) = open_datagram(guard, now, &self.links, from, bytes) {
                    take(now, from, received.message);
                }
            }
            if self.burst.len() < BURST {
                break;
            }
        }
        Ok(())
    }

    /// Gives what came to the chain port and concerns terms to `take`, and keeps the rest for
    /// [`receive_links`](Self::receive_links).
    pub(super) fn receive_terms(
        &mut self,
        mut take: impl FnMut(u64, SocketAddrV4, &[u8]),
    ) -> Result<(), StoreError> {
        self.burst.take(&self.links).map_err(StoreError::Receive)?;
        for (from, bytes) in self.burst.iter() {
            let (now, guard) = (boot_time_us(), self.guard.as_mut());
            let Some(received) = open_datagram(guard, now, &self.links, from, bytes) else {
                continue;
            };
            if is_term(received.message) {
                take(now, from, received.message);
            } else {
                self.held.push(from, received.message);
            }
        }
        Ok(())
    }

    /// Takes requests from the system that are to be served in their turn.
    pub(super) fn receive_requests(&mut self, most: usize) -> Result<(), StoreError> {
        for _ in 0..TAKEN * most / BURST {
            self.burst
                .take(&self.requests)
                .map_err(StoreError::Receive)?;
            for (from, bytes) in self.burst.iter() {
                let is_beat = is_term(bytes) && bytes.len() <= HEARTBEAT_LENGTH + TRAILER_LENGTH;
                let queue = if is_beat {
                    &mut self.beats
                } else {
                    &mut self.waiting
                };
                if !queue.push(from, bytes) {
                    self.counters.over_share += 1;
                }
            }
            if self.burst.len() < BURST {
                break;
            }
        }
        Ok(())
    }

    /// Gives heartbeats that wait to `serve`, at most [`BEATS_AT_ONCE`]: one of each sender in
    /// turn.
    pub(super) fn serve_beats(&mut self, mut serve: impl FnMut(&[Datagram])) {
        let now = boot_time_us();
        for _ in 0..BEATS_AT_ONCE {
            let Some((from, bytes)) = self.beats.pop() else {
                break;
            };
            if let Some(bytes) = self.open_request(now, from, bytes) {
                self.beats.recycle(bytes);
            }
        }
        if !self.turn.is_empty() {
            serve(&self.turn);
            for (_, bytes) in self.turn.drain(..) {
                self.beats.recycle(bytes);
            }
        }
    }

    /// Gives `most` of the requests that wait to `serve`, some at a time, with where they
    /// came from: one of each sender in turn.
    pub(super) fn serve_requests(&mut self, most: usize, mut serve: impl FnMut(&[Datagram])) {
        for _ in 0..most / BURST {
            let now = boot_time_us();
            for _ in 0..BURST {
                let Some((from, bytes)) = self.waiting.pop() else {
                    break;
                };
                if let Some(bytes) = self.open_request(now, from, bytes) {
                    self.waiting.recycle(bytes);
                }
            }
            if self.turn.is_empty() {
                break;
            }
            serve(&self.turn);
            for (_, bytes) in self.turn.drain(..) {
                self.waiting.recycle(bytes);
            }
        }
    }

    /// Adds a request to those that are served together, if it is one of its sender; else gives
    /// the buffer back.
    fn open_request(
        &mut self,
        now: u64,
        from: SocketAddrV4,
        mut bytes: Vec<u8>,
    ) -> Option<Vec<u8>> {
        let guard = self.guard.as_mut();
        let opened = open_datagram(guard, now, &self.requests, from, &bytes);
        let opened = opened.map(|received| (received.peer, received.message.len()));
        let Some((peer, length)) = opened else {
            return Some(bytes);
        };
        bytes.truncate(length);
        let named = bytes.get(SWITCH_ID..SWITCH_ID + 4);
        let is_wrong = |peer: u32| named.is_some_and(|named| *named != peer.to_be_bytes());
        if peer.is_some_and(is_wrong) {
            self.impersonated += 1;
            return Some(bytes);
        }
        self.turn.push((from, bytes));
        None
    }

    /// Sends `message` by one of the sockets, at the latest with the next [`flush`](Self::flush). A
    /// datagram that the system refuses is lost as on a wire: links resend, and switches ask again.
    /// If messages are sealed, one to an unknown peer is lost too, and the guard counts it.
    pub(super) fn send(&mut self, port: Port, to: SocketAddrV4, message: Arc<Vec<u8>>) {
        let trailer = match &mut self.guard {
            None => None,
            Some(guard) => match guard.seal(*to.ip(), &message) {
                None => return,
                sealed => sealed,
            },
        };
        let (socket, outgoing) = match port {
            Port::Requests => (&self.requests, &mut self.replies),
            Port::Links => (&self.links, &mut self.updates),
        };
        outgoing.push(to, message, trailer);
        if outgoing.is_full() {
            self.counters.send_failed += outgoing.send(socket);
        }
    }

    /// Lets all that is to leave do so.
    pub(super) fn flush(&mut self) {
        self.counters.send_failed += self.updates.send(&self.links);
        self.counters.send_failed += self.replies.send(&self.requests);
    }
}

fn open(address: SocketAddrV4) -> Result<UdpSocket, StoreError> {
    datagram::open(address).map_err(|cause| match cause.kind() {
        io::ErrorKind::AddrInUse => StoreError::AddressInUse { address },
        io::ErrorKind::AddrNotAvailable => StoreError::AddressNotAvailable { address },
        _ => StoreError::Bind { address, cause },
    })
}

#[cfg(test)]
mod tests;
