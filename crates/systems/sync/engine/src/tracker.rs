//! Positions of the ring that came, those that were lost, and how much these may hide.

use std::collections::BTreeMap;
use std::ops::Range;

/// A lost position whose location the switch named (rule 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named {
    location: u32,
    /// A value of the location with a greater stamp supersedes what was lost.
    stamp: u64,
}

/// The positions of a switch's ring from where the view begins.
///
/// Every message says the sum of distances up to its first and behind its last position. These
/// sums are kept as *knots*; between two knots with a lost position the view may be off by their
/// difference, and it is off by nothing else than what was never sent (rules 4, 5).
#[derive(Clone, Debug)]
pub struct Tracker {
    /// All positions before it came or were named.
    next: u64,
    /// Behind the last position that was sent, as far as known.
    end: u64,
    knots: BTreeMap<u64, u64>,
    /// Runs that came, beyond `next`: first position to the one behind the last.
    came: BTreeMap<u64, u64>,
    named: BTreeMap<u64, Named>,
    /// Stamp by location and position of the same.
    by_location: BTreeMap<(u32, u64), u64>,
    /// Positions that were named so far.
    lost: u64,
}

impl Tracker {
    /// Positions from `start` on, at which the sum of distances was `sum`.
    pub fn new(start: u64, sum: u64) -> Tracker {
        Tracker {
            next: start,
            end: start,
            knots: BTreeMap::from([(start, sum)]),
            came: BTreeMap::new(),
            named: BTreeMap::new(),
            by_location: BTreeMap::new(),
            lost: 0,
        }
    }

    /// All positions before it came or were named: the credit for the switch (rule 9).
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Behind the last position that was sent, as far as known.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Positions that were lost so far, as the switch named them.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// A message with `count` values from `position` on came; `before` and `after` are the sums
    /// of distances at its ends.
    pub fn came(&mut self, position: u64, count: u64, before: u64, after: u64) {
        let end = position.saturating_add(count);
        if position
            < self
                .knots
                .first_key_value()
                .map_or(self.next, |(at, _)| *at)
        {
            return;
        }
        self.knots.insert(position, before);
        self.knots.insert(end, after);
        self.end = self.end.max(end);
        while let Some((&at, _)) = self.named.range(position..end).next() {
            self.close(at);
        }
        if position <= self.next {
            self.next = self.next.max(end);
        } else if count > 0 {
            let run = self.came.entry(position).or_default();
            *run = (*run).max(end);
        }
        self.advance();
    }

    /// The switch says that `position` held `location`; a value of it with a stamp above `stamp`
    /// supersedes what was lost. `newest` is the stamp of the location's present value.
    pub fn named(&mut self, position: u64, location: u32, stamp: u64, newest: u64) {
        if !self.is_missing(position) {
            return;
        }
        self.lost += 1;
        if newest > stamp {
            self.came.insert(position, position + 1);
        } else {
            self.named.insert(position, Named { location, stamp });
            self.by_location.insert((location, position), stamp);
        }
        self.advance();
    }

    /// A value of `location` with this stamp is in the view.
    pub fn applied(&mut self, location: u32, stamp: u64) {
        if self.by_location.is_empty() {
            return;
        }
        let of_location = (location, 0)..=(location, u64::MAX);
        let superseded = self.by_location.range(of_location);
        let superseded = superseded.filter(|(_, named)| **named < stamp);
        let superseded: Vec<u64> = superseded.map(|((_, at), _)| *at).collect();
        if superseded.is_empty() {
            return;
        }
        for at in superseded {
            let beyond = at >= self.next;
            self.close(at);
            if beyond {
                self.came.insert(at, at + 1);
            }
        }
        self.advance();
    }

    fn close(&mut self, at: u64) {
        if let Some(named) = self.named.remove(&at) {
            self.by_location.remove(&(named.location, at));
        }
    }

    fn is_missing(&self, position: u64) -> bool {
        let came = self.came.range(..=position).next_back();
        position >= self.next
            && position < self.end
            && came.is_none_or(|(_, end)| *end <= position)
            && !self.named.contains_key(&position)
    }

    /// Moves `next` over what came or was named, and forgets what tells nothing more.
    fn advance(&mut self) {
        loop {
            if let Some((&at, &end)) = self.came.first_key_value()
                && at <= self.next
            {
                self.came.remove(&at);
                self.next = self.next.max(end);
            } else if self.named.contains_key(&self.next) {
                self.next += 1;
            } else {
                break;
            }
        }
        // The knot at or before the first position that is not whole is the first that tells something.
        let whole = self.whole();
        while self.knots.keys().nth(1).is_some_and(|at| *at <= whole) {
            self.knots.pop_first();
        }
    }

    /// Ranges of positions that neither came nor were named.
    pub fn missing(&self) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut at = self.next;
        let named = self.named.range(self.next..).map(|(at, _)| (*at, *at + 1));
        let came = self.came.iter().map(|(at, end)| (*at, *end));
        let mut known: Vec<(u64, u64)> = named.chain(came).collect();
        known.sort_unstable();
        for (first, end) in known {
            if first > at {
                missing.push(at..first);
            }
            at = at.max(end);
        }
        if self.end > at {
            missing.push(at..self.end);
        }
        missing
    }

    /// How far values that were sent and are not in the view may move it, in all (rule 5).
    pub fn hidden(&self) -> u64 {
        if self.next >= self.end && self.named.is_empty() {
            return 0;
        }
        let missing = self.missing();
        let mut missing = missing.iter().peekable();
        let mut named = self.named.keys().peekable();
        let mut hidden = 0_u64;
        let knots = self.knots.iter().zip(self.knots.iter().skip(1));
        for ((&at, &before), (&end, &after)) in knots {
            while missing.next_if(|lost| lost.end <= at).is_some() {}
            while named.next_if(|named| **named < at).is_some() {}
            if named.peek().is_some_and(|named| **named < end)
                || missing.peek().is_some_and(|lost| lost.start < end)
            {
                hidden = hidden.saturating_add(after.saturating_sub(before));
            }
        }
        hidden
    }

    /// Sum of the distances of all values that were sent, as far as known.
    pub fn sum(&self) -> u64 {
        self.knots.last_key_value().map_or(0, |(_, sum)| *sum)
    }

    /// All positions before it came, or are superseded.
    pub fn whole(&self) -> u64 {
        let first = self.named.first_key_value().map(|(at, _)| *at);
        first.unwrap_or(self.next).min(self.next)
    }

    /// Lost positions that the switch named and that are not superseded.
    pub fn named_open(&self) -> usize {
        self.named.len()
    }

    /// Positions that are not in the view: lost, on their way, or named and not superseded.
    pub fn open(&self) -> u64 {
        let missing: u64 = self
            .missing()
            .iter()
            .map(|lost| lost.end - lost.start)
            .sum();
        missing + self.named.len() as u64
    }
}

#[cfg(test)]
mod tests;
