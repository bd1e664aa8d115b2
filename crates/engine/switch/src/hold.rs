//! Copies that wait for their time.

use crate::queue::Queued;
use stateplane_invariant::{Invariants, invariant};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

struct Held<P> {
    due: u64,
    /// Breaks ties in the order of arrival, which makes runs repeatable.
    sequence: u64,
    bytes: u64,
    packet: Queued<P>,
}

impl<P> Held<P> {
    fn key(&self) -> (u64, u64) {
        (self.due, self.sequence)
    }
}

impl<P> PartialEq for Held<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Held<P> {}

impl<P> PartialOrd for Held<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Held<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// More copies are held, or more bytes, than counted.
pub(crate) struct Overfull;

/// Copies ordered by the time at which they are due, bounded in number and bytes.
pub(crate) struct HoldQueue<P> {
    heap: BinaryHeap<Reverse<Held<P>>>,
    next_sequence: u64,
    bytes: u64,
    max_packets: usize,
    max_bytes: u64,
}

impl<P> HoldQueue<P> {
    pub(crate) fn new(max_packets: u32, max_bytes: u64) -> Self {
        Self {
            heap: BinaryHeap::new(),
            next_sequence: 0,
            bytes: 0,
            max_packets: max_packets as usize,
            max_bytes,
        }
    }

    /// Counts no byte of what is held.
    #[cfg(test)]
    pub(crate) fn forget_bytes(&mut self) {
        self.bytes = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Time at which the first copy is due.
    pub(crate) fn first_due(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(held)| held.due)
    }

    /// Adds `packet`; returns false if there is no room.
    pub(crate) fn push(&mut self, due: u64, bytes: u64, packet: Queued<P>) -> bool {
        if self.heap.len() >= self.max_packets || self.bytes.saturating_add(bytes) > self.max_bytes
        {
            return false;
        }
        self.bytes += bytes;
        self.heap.push(Reverse(Held {
            due,
            sequence: self.next_sequence,
            bytes,
            packet,
        }));
        self.next_sequence += 1;
        true
    }

    /// Port of the first copy, if it is due at `now`.
    pub(crate) fn due_port(&self, now: u64) -> Option<u16> {
        self.heap
            .peek()
            .filter(|Reverse(held)| held.due <= now)
            .map(|Reverse(held)| held.packet.port)
    }

    /// Takes out the first copy; an error if more is held than may be, and the copy is dropped.
    pub(crate) fn pop(
        &mut self,
        invariants: &mut Invariants,
    ) -> Option<Result<Queued<P>, Overfull>> {
        let (held, bytes) = (self.heap.len(), self.bytes);
        let Reverse(first) = self.heap.pop()?;
        let rest = bytes.checked_sub(first.bytes);
        self.bytes = rest.unwrap_or(0);
        let within = invariant!(
            invariants,
            HeldCopies,
            rest.is_some() && held <= self.max_packets && bytes <= self.max_bytes,
            "{held} copies of {bytes} bytes are held, the first of {} bytes",
            first.bytes
        );
        Some(if within {
            Ok(first.packet)
        } else {
            Err(Overfull)
        })
    }
}
