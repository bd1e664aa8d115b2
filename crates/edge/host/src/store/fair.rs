//! Fair queues: received requests wait for service, separately for each sender, so that a sender
//! with too many requests loses its own and delays no other sender.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};

use stateplane_invariant::{Broken, BrokenCounts, Invariants, invariant};

/// Bytes that each datagram counts beside its own, for what keeping it takes.
pub(super) const OVERHEAD: usize = 128;

/// Emptied buffers that are kept for reuse.
const MOST_SPARE: usize = 1024;

/// A datagram and where it came from.
pub(super) type Datagram = (SocketAddrV4, Vec<u8>);

#[derive(Debug, Default)]
struct Sender {
    bytes: usize,
    datagrams: VecDeque<Datagram>,
}

/// Datagrams by sender, taken in turn: one of each sender that has any. A sender may fill
/// as many bytes as are still free, so that a single one never has more than half, and
/// each further one finds room (dynamic thresholds, Choudhury and Hahne 1998).
#[derive(Debug)]
pub(super) struct FairQueue {
    most_bytes: usize,
    bytes: usize,
    senders: BTreeMap<Ipv4Addr, Sender>,
    /// Senders that have datagrams, in the order of their turns.
    turns: VecDeque<Ipv4Addr>,
    spare: Vec<Vec<u8>>,
    spare_senders: Vec<Sender>,
    invariants: Invariants,
}

impl FairQueue {
    /// A queue of at most `most_bytes`.
    pub(super) fn new(most_bytes: usize) -> FairQueue {
        FairQueue {
            most_bytes,
            bytes: 0,
            senders: BTreeMap::new(),
            turns: VecDeque::new(),
            spare: Vec::new(),
            spare_senders: Vec::new(),
            invariants: Invariants::new(false),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Keeps a copy of `bytes`; `false` if their sender has more than its share.
    pub(super) fn push(&mut self, from: SocketAddrV4, bytes: &[u8]) -> bool {
        let cost = bytes.len() + OVERHEAD;
        let address = *from.ip();
        let used = self.senders.get(&address).map_or(0, |it| it.bytes);
        if used + cost > self.most_bytes.saturating_sub(self.bytes) {
            return false;
        }
        let spare_senders = &mut self.spare_senders;
        let sender = self.senders.entry(address).or_insert_with(|| {
            self.turns.push_back(address);
            spare_senders.pop().unwrap_or_default()
        });
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(bytes);
        sender.bytes += cost;
        self.bytes += cost;
        sender.datagrams.push_back((from, kept));
        true
    }

    /// The datagram whose turn it is. Give its buffer back with [`FairQueue::recycle`].
    pub(super) fn pop(&mut self) -> Option<Datagram> {
        let address = self.turns.pop_front()?;
        let sender = self.senders.get_mut(&address)?;
        let datagram = sender.datagrams.pop_front()?;
        let cost = datagram.1.len() + OVERHEAD;
        let rest = sender
            .bytes
            .checked_sub(cost)
            .zip(self.bytes.checked_sub(cost));
        invariant!(
            self.invariants,
            RequestQueue,
            rest.is_some() && self.bytes <= self.most_bytes,
            "{} bytes wait, {} of the sender, and {cost} leave",
            self.bytes,
            sender.bytes
        );
        let Some((left, all)) = rest else {
            // Their switches send all of them again.
            self.turns.clear();
            self.senders.clear();
            self.bytes = 0;
            return None;
        };
        (sender.bytes, self.bytes) = (left, all);
        if !sender.datagrams.is_empty() {
            self.turns.push_back(address);
        } else if let Some(sender) = self.senders.remove(&address)
            && self.spare_senders.len() < MOST_SPARE
        {
            self.spare_senders.push(sender);
        }
        Some(datagram)
    }

    /// The next broken invariant to report; each is given once.
    pub(super) fn poll_broken(&mut self) -> Option<Broken> {
        self.invariants.poll()
    }

    /// Counters of broken invariants since the start.
    pub(super) fn broken(&self) -> BrokenCounts {
        self.invariants.counts()
    }

    /// Takes back a buffer.
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < MOST_SPARE {
            self.spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(number: u8) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, number), 4793)
    }

    /// Rounds in which sender 1 floods and sender 2 asks twice; returns how many of
    /// the second one's were served, and of how many.
    fn flooded(most_bytes: usize, served_per_round: usize) -> (usize, usize) {
        let mut queue = FairQueue::new(most_bytes);
        let (mut asked, mut served) = (0, 0);
        for _ in 0..1000 {
            for number in 0..500 {
                queue.push(sender(1), &[1; 400]);
                if number % 250 == 249 {
                    asked += 1;
                    queue.push(sender(2), &[2; 400]);
                }
            }
            for _ in 0..served_per_round {
                let Some((from, bytes)) = queue.pop() else {
                    break;
                };
                served += usize::from(from == sender(2));
                queue.recycle(bytes);
            }
        }
        (served, asked)
    }

    #[test]
    fn a_flood_takes_nothing_from_others() {
        assert_eq!(flooded(1 << 20, 64), (2000, 2000));
        assert_eq!(flooded(1 << 14, 4), (2000, 2000));
    }

    #[test]
    fn each_senders_order_is_kept_and_bytes_are_bounded() {
        let mut queue = FairQueue::new(10_000);
        let mut kept = [Vec::new(), Vec::new()];
        for number in 0..100u8 {
            for side in [0, 1] {
                if queue.push(sender(side), &[number; 100]) {
                    kept[usize::from(side)].push(number);
                }
                assert!(queue.bytes <= 10_000);
            }
        }
        assert!(kept.iter().all(|kept| kept.len() >= 10 && kept.len() < 50));
        let mut taken = [Vec::new(), Vec::new()];
        while let Some((from, bytes)) = queue.pop() {
            taken[usize::from(from.ip().octets()[3])].push(bytes[0]);
        }
        assert_eq!(taken, kept);
        assert!(queue.is_empty() && queue.senders.is_empty() && queue.bytes == 0);
    }

    #[test]
    fn one_alone_gets_half() {
        let mut queue = FairQueue::new(100 * (100 + OVERHEAD));
        let kept = (0..1000)
            .filter(|_| queue.push(sender(1), &[0; 100]))
            .count();
        assert_eq!(kept, 50);
        assert!(queue.push(sender(2), &[0; 100]));
    }

    /// One request waits, and none of its bytes is counted.
    fn miscounted() -> FairQueue {
        let mut queue = FairQueue::new(10_000);
        queue.push(sender(1), &[1; 400]);
        queue.push(sender(2), &[1; 400]);
        queue.bytes = 0;
        assert_eq!(queue.pop(), None);
        queue
    }

    #[test]
    #[should_panic(expected = "SI015")]
    fn a_miscounted_queue_panics() {
        miscounted();
    }

    #[test]
    fn in_production_a_miscounted_queue_is_emptied_and_goes_on() {
        stateplane_invariant::in_production(|| {
            let mut queue = miscounted();
            assert!(queue.is_empty());
            assert_eq!(queue.broken().total(), 1);
            assert_eq!(queue.poll_broken().unwrap().invariant.code(), "SI015");
            assert!(queue.push(sender(1), &[1; 400]));
            assert!(queue.pop().is_some());
        });
    }
}
