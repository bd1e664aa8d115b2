//! Queue of future events, in the order of time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

struct Entry<T> {
    at: u64,
    /// Breaks ties in the order in which entries were made, which makes runs
    /// repeatable.
    number: u64,
    what: T,
}

impl<T> Entry<T> {
    fn key(&self) -> (u64, u64) {
        (self.at, self.number)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Things by the true time in µs at which they happen.
pub struct Schedule<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    next: u64,
}

impl<T> Default for Schedule<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Schedule<T> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            next: 0,
        }
    }

    /// Adds a thing that happens `at` then.
    pub fn add(&mut self, at: u64, what: T) {
        let number = self.next;
        self.next += 1;
        self.heap.push(Reverse(Entry { at, number, what }));
    }

    /// Time of the next thing.
    pub fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// The next thing and its time, if it happens before `end`.
    pub fn pop_before(&mut self, end: u64) -> Option<(u64, T)> {
        if self.next_at()? >= end {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn things_happen_in_the_order_of_time_then_of_making() {
        let mut schedule = Schedule::new();
        for (at, what) in [(5, 'a'), (3, 'b'), (5, 'c'), (9, 'd'), (3, 'e')] {
            schedule.add(at, what);
        }
        let mut order = Vec::new();
        while let Some((_, what)) = schedule.pop_before(9) {
            order.push(what);
        }
        assert_eq!(order, ['b', 'e', 'a', 'c']);
    }
}
