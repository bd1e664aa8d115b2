//! Copies that wait for their time.

use crate::queue::Queued;
use stateplane_invariant::{Invariants, invariant};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Queues that are kept for hold times of which no copy waits.
const SPARE_QUEUES: usize = 64;

struct Held<P> {
    due: u64,
    /// Breaks ties in the order of arrival, which makes runs repeatable.
    sequence: u64,
    bytes: u64,
    packet: Queued<P>,
}

/// Copies of one hold time in the order of their arrival, which is that of their times.
struct Waiting<P> {
    hold_us: u64,
    copies: VecDeque<Held<P>>,
}

/// More copies are held, or more bytes, than counted.
pub(crate) struct Overfull;

/// Copies ordered by the time at which they are due, bounded in number and bytes. A switch has few
/// hold times and many copies: those of each hold time are in a queue, of which the first ones alone
/// are compared.
pub(crate) struct HoldQueue<P> {
    queues: Vec<Waiting<P>>,
    /// Places of queues by their hold time.
    places: BTreeMap<u64, usize>,
    /// Of each queue that is not empty, time and sequence of the first copy, and the queue's place.
    first: BinaryHeap<Reverse<(u64, u64, usize)>>,
    next_sequence: u64,
    held: usize,
    bytes: u64,
    max_packets: usize,
    max_bytes: u64,
}

impl<P> HoldQueue<P> {
    pub(crate) fn new(max_packets: u32, max_bytes: u64) -> Self {
        Self {
            queues: Vec::new(),
            places: BTreeMap::new(),
            first: BinaryHeap::new(),
            next_sequence: 0,
            held: 0,
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
        self.held
    }

    /// Time at which the first copy is due.
    pub(crate) fn first_due(&self) -> Option<u64> {
        self.first.peek().map(|Reverse((due, ..))| *due)
    }

    /// Place of the queue of a hold time.
    fn place(&mut self, hold_us: u64) -> usize {
        if let Some(&place) = self.places.get(&hold_us) {
            return place;
        }
        let spare = self.queues.len() >= SPARE_QUEUES;
        let spare = spare
            .then(|| self.queues.iter().position(|it| it.copies.is_empty()))
            .flatten();
        let place = spare.unwrap_or(self.queues.len());
        if let Some(queue) = self.queues.get_mut(place) {
            self.places.remove(&queue.hold_us);
            queue.hold_us = hold_us;
        } else {
            self.queues.push(Waiting {
                hold_us,
                copies: VecDeque::new(),
            });
        }
        self.places.insert(hold_us, place);
        place
    }

    /// Adds `packet`, which waits from `now` for `hold_us`; returns false if there is no room. No call
    /// has a `now` before that of an earlier one.
    pub(crate) fn push(&mut self, now: u64, hold_us: u64, bytes: u64, packet: Queued<P>) -> bool {
        if self.held >= self.max_packets || self.bytes.saturating_add(bytes) > self.max_bytes {
            return false;
        }
        let place = self.place(hold_us);
        let due = now.saturating_add(hold_us);
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.bytes += bytes;
        self.held += 1;
        let copies = &mut self.queues[place].copies;
        if copies.is_empty() {
            self.first.push(Reverse((due, sequence, place)));
        }
        copies.push_back(Held {
            due,
            sequence,
            bytes,
            packet,
        });
        true
    }

    /// The copy that comes `behind` so many others out of the queue of the first one.
    pub(crate) fn behind(&self, behind: usize) -> Option<&Queued<P>> {
        let Reverse((_, _, place)) = self.first.peek()?;
        let held = self.queues[*place].copies.get(behind);
        held.map(|held| &held.packet)
    }

    /// Port of the first copy, if it is due at `now`.
    pub(crate) fn due_port(&self, now: u64) -> Option<u16> {
        let Reverse((due, _, place)) = self.first.peek()?;
        let first = self.queues[*place].copies.front();
        first.filter(|_| *due <= now).map(|held| held.packet.port)
    }

    /// Takes out the first copy; an error if more is held than may be, and the copy is dropped.
    pub(crate) fn pop(
        &mut self,
        invariants: &mut Invariants,
    ) -> Option<Result<Queued<P>, Overfull>> {
        let (held, bytes) = (self.held, self.bytes);
        let Reverse((_, _, place)) = self.first.pop()?;
        let copies = &mut self.queues[place].copies;
        let first = copies.pop_front()?;
        if let Some(next) = copies.front() {
            self.first.push(Reverse((next.due, next.sequence, place)));
        }
        self.held -= 1;
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

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_runtime::InstanceType;

    fn copy(number: u32) -> Queued<u32> {
        Queued::new(number, 0, InstanceType::IngressClone)
    }

    /// Numbers of the copies in the order in which they come out.
    fn out(queue: &mut HoldQueue<u32>) -> Vec<u32> {
        let mut invariants = Invariants::new(false);
        std::iter::from_fn(|| queue.pop(&mut invariants)?.ok())
            .map(|queued| queued.packet)
            .collect()
    }

    #[test]
    fn copies_come_in_the_order_of_their_times_and_then_of_arrival() {
        let mut queue = HoldQueue::new(100, 1000);
        let mut expected = Vec::new();
        for number in 0..40_u32 {
            let (now, hold) = (u64::from(number / 4), u64::from(number * 7 % 5 + 1));
            assert!(queue.push(now, hold, 1, copy(number)));
            expected.push((now + hold, number));
        }
        expected.sort_unstable();
        assert_eq!(queue.first_due(), Some(expected[0].0));
        assert_eq!(queue.due_port(expected[0].0 - 1), None);
        assert_eq!(queue.due_port(expected[0].0), Some(0));
        let numbers: Vec<u32> = expected.into_iter().map(|(_, number)| number).collect();
        assert_eq!(out(&mut queue), numbers);
        assert_eq!((queue.len(), queue.first_due()), (0, None));
    }

    #[test]
    fn copies_behind_the_first_one_are_those_of_its_hold_time() {
        let mut queue = HoldQueue::new(100, 1000);
        for (number, hold) in [(1, 10), (2, 50), (3, 10), (4, 10)] {
            assert!(queue.push(0, hold, 1, copy(number)));
        }
        let behind = |behind| queue.behind(behind).map(|it| it.packet);
        assert_eq!([0, 1, 2, 3].map(behind), [Some(1), Some(3), Some(4), None]);
        assert!(HoldQueue::<u32>::new(1, 1).behind(0).is_none());
    }

    #[test]
    fn queues_of_hold_times_that_are_over_are_used_again() {
        let mut queue = HoldQueue::new(1000, 1000);
        for round in 0..10 {
            for hold in 0..SPARE_QUEUES as u64 {
                let hold = round * 1000 + hold + 1;
                assert!(queue.push(round, hold, 1, copy(hold as u32)));
            }
            assert_eq!(out(&mut queue).len(), SPARE_QUEUES);
        }
        assert_eq!(
            (queue.queues.len(), queue.places.len()),
            (SPARE_QUEUES, SPARE_QUEUES)
        );
    }
}
